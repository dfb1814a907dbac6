/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

/** The surface on which charts are drawn. Units are CSS pixels, y downwards; colours are 0xRRGGBB. */
public interface Canvas {
    /** Position of a text relative to its point. */
    enum Anchor {
        /** Begins there. */
        START,
        /** Centred. */
        MIDDLE,
        /** Ends there. */
        END
    }

    /**
     * A filled rectangle.
     *
     * @param x      left
     * @param y      top
     * @param width  width
     * @param height height
     * @param colour fill
     * @param hint   text shown when pointed at, or null
     */
    void rectangle(double x, double y, double width, double height, int colour, String hint);

    /**
     * A straight line.
     *
     * @param x1     start
     * @param y1     start
     * @param x2     end
     * @param y2     end
     * @param colour colour
     * @param width  width of the line
     * @param dashed whether it is dashed
     */
    void line(double x1, double y1, double x2, double y2, int colour, double width, boolean dashed);

    /**
     * Connected lines.
     *
     * @param x      points
     * @param y      points
     * @param colour colour
     * @param width  width of the line
     * @param dashed whether it is dashed
     */
    void polyline(double[] x, double[] y, int colour, double width, boolean dashed);

    /**
     * A small hollow mark.
     *
     * @param x      centre
     * @param y      centre
     * @param square square or round
     * @param colour of its outline
     * @param hint   text shown when pointed at, or null
     */
    void mark(double x, double y, boolean square, int colour, String hint);

    /**
     * A line of text.
     *
     * @param x      see anchor
     * @param y      base line
     * @param size   height of the font
     * @param anchor horizontal place
     * @param bold   weight
     * @param colour colour
     * @param text   the text
     */
    void text(double x, double y, double size, Anchor anchor, boolean bold, int colour, String text);

    /**
     * A line of text turned by 90 degrees, reading upwards, centred on its point.
     *
     * @param x      base line
     * @param y      centre
     * @param size   height of the font
     * @param colour colour
     * @param text   the text
     */
    void textUpwards(double x, double y, double size, int colour, String text);
}
