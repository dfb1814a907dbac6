/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import java.util.Locale;

/** Draws SVG. The result needs no style sheet, font or script. Not thread-safe. */
public final class SvgCanvas implements Canvas {
    private final StringBuilder body = new StringBuilder(8192);
    private final double width;
    private final double height;
    private final String label;

    /**
     * An empty drawing.
     *
     * @param width  in CSS pixels
     * @param height in CSS pixels
     * @param label  what it shows, for screen readers
     */
    public SvgCanvas(final double width, final double height, final String label) {
        this.width = width;
        this.height = height;
        this.label = label;
    }

    @Override
    public void rectangle(final double x, final double y, final double w, final double h, final int colour,
        final String hint) {
        body.append("<rect x=\"").append(number(x)).append("\" y=\"").append(number(y)).append("\" width=\"")
            .append(number(w)).append("\" height=\"").append(number(h)).append("\" fill=\"").append(colour(colour));
        close("rect", hint);
    }

    @Override
    public void line(final double x1, final double y1, final double x2, final double y2, final int colour,
        final double stroke, final boolean dashed) {
        body.append("<line x1=\"").append(number(x1)).append("\" y1=\"").append(number(y1)).append("\" x2=\"")
            .append(number(x2)).append("\" y2=\"").append(number(y2));
        stroke(colour, stroke, dashed);
        close("line", null);
    }

    @Override
    public void polyline(final double[] x, final double[] y, final int colour, final double stroke,
        final boolean dashed) {
        body.append("<polyline points=\"");
        for (int i = 0; i < x.length; i++) {
            body.append(i == 0 ? "" : " ").append(number(x[i])).append(',').append(number(y[i]));
        }
        body.append("\" fill=\"none");
        stroke(colour, stroke, dashed);
        close("polyline", null);
    }

    @Override
    public void mark(final double x, final double y, final boolean square, final int colour, final String hint) {
        if (square) {
            body.append("<rect x=\"").append(number(x - 3.2)).append("\" y=\"").append(number(y - 3.2))
                .append("\" width=\"6.4\" height=\"6.4");
        } else {
            body.append("<circle cx=\"").append(number(x)).append("\" cy=\"").append(number(y)).append("\" r=\"3.6");
        }
        body.append("\" fill=\"#ffffff\" fill-opacity=\"0.01");
        stroke(colour, 1.3, false);
        close(square ? "rect" : "circle", hint);
    }

    @Override
    public void text(final double x, final double y, final double size, final Anchor anchor, final boolean bold,
        final int colour, final String text) {
        body.append("<text x=\"").append(number(x)).append("\" y=\"").append(number(y)).append("\" font-size=\"")
            .append(number(size)).append("\" text-anchor=\"").append(anchor.name().toLowerCase(Locale.ROOT))
            .append("\" fill=\"").append(colour(colour)).append(bold ? "\" font-weight=\"600\">" : "\">")
            .append(escape(text)).append("</text>\n");
    }

    @Override
    public void textUpwards(final double x, final double y, final double size, final int colour, final String text) {
        body.append("<text transform=\"translate(").append(number(x)).append(' ').append(number(y))
            .append(") rotate(-90)\" font-size=\"").append(number(size)).append("\" text-anchor=\"middle\" fill=\"")
            .append(colour(colour)).append("\">").append(escape(text)).append("</text>\n");
    }

    /** The drawing so far, as an element for HTML or, after an XML declaration, for a file; SVG text. */
    public String toSvg() {
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + ' ' + number(height)
            + "\" width=\"" + number(width) + "\" height=\"" + number(height)
            + "\" role=\"img\" font-family=\"system-ui, 'DejaVu Sans', Arial, sans-serif\" aria-label=\""
            + escape(label)
            + "\">\n" + body + "</svg>\n";
    }

    private void stroke(final int colour, final double stroke, final boolean dashed) {
        body.append("\" stroke=\"").append(colour(colour)).append("\" stroke-width=\"").append(number(stroke));
        if (dashed) {
            body.append("\" stroke-dasharray=\"5 3");
        }
    }

    private void close(final String element, final String hint) {
        if (hint == null) {
            body.append("\"/>\n");
        } else {
            body.append("\"><title>").append(escape(hint)).append("</title></").append(element).append(">\n");
        }
    }

    private static String colour(final int rgb) {
        return String.format(Locale.ROOT, "#%06x", rgb & 0xffffff);
    }

    private static String number(final double value) {
        final long hundredths = Math.round(value * 100);
        final String sign = hundredths < 0 ? "-" : "";
        final long magnitude = Math.abs(hundredths);
        if (magnitude % 100 == 0) {
            return sign + magnitude / 100;
        }
        return sign + magnitude / 100 + (magnitude % 100 < 10 ? ".0" : ".") + magnitude % 100;
    }

    /**
     * Text for SVG and HTML, inside or outside of attributes.
     *
     * @param text anything
     * @return the text with its special characters escaped
     */
    public static String escape(final String text) {
        final StringBuilder out = new StringBuilder(text.length() + 16);
        for (int i = 0; i < text.length(); i++) {
            final char c = text.charAt(i);
            switch (c) {
                case '&' -> out.append("&amp;");
                case '<' -> out.append("&lt;");
                case '>' -> out.append("&gt;");
                case '"' -> out.append("&quot;");
                case '\'' -> out.append("&#39;");
                default -> out.append(c < ' ' && c != '\n' && c != '\t' ? '\ufffd' : c);
            }
        }
        return out.toString();
    }
}
