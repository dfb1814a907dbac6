/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Font;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.geom.AffineTransform;
import java.awt.geom.Ellipse2D;
import java.awt.geom.Line2D;
import java.awt.geom.Path2D;
import java.awt.geom.Rectangle2D;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.imageio.ImageIO;

/** Draws pixels, two for each CSS pixel, and writes PNG. Needs no display. Not thread-safe. */
public final class ImageCanvas implements Canvas {
    private static final int SCALE = 2;

    private final BufferedImage image;
    private final Graphics2D graphics;

    /**
     * A white image.
     *
     * @param width  in CSS pixels
     * @param height in CSS pixels
     */
    public ImageCanvas(final int width, final int height) {
        System.setProperty("java.awt.headless", "true");
        image = new BufferedImage(width * SCALE, height * SCALE, BufferedImage.TYPE_INT_RGB);
        graphics = image.createGraphics();
        graphics.setColor(Color.WHITE);
        graphics.fillRect(0, 0, width * SCALE, height * SCALE);
        graphics.scale(SCALE, SCALE);
        graphics.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
        graphics.setRenderingHint(RenderingHints.KEY_TEXT_ANTIALIASING, RenderingHints.VALUE_TEXT_ANTIALIAS_ON);
        graphics.setRenderingHint(RenderingHints.KEY_STROKE_CONTROL, RenderingHints.VALUE_STROKE_PURE);
    }

    @Override
    public void rectangle(final double x, final double y, final double width, final double height, final int colour,
        final String hint) {
        graphics.setColor(new Color(colour));
        graphics.fill(new Rectangle2D.Double(x, y, width, height));
    }

    @Override
    public void line(final double x1, final double y1, final double x2, final double y2, final int colour,
        final double width, final boolean dashed) {
        pen(colour, width, dashed);
        graphics.draw(new Line2D.Double(x1, y1, x2, y2));
    }

    @Override
    public void polyline(final double[] x, final double[] y, final int colour, final double width,
        final boolean dashed) {
        if (x.length == 0) {
            return;
        }
        pen(colour, width, dashed);
        final Path2D path = new Path2D.Double();
        path.moveTo(x[0], y[0]);
        for (int i = 1; i < x.length; i++) {
            path.lineTo(x[i], y[i]);
        }
        graphics.draw(path);
    }

    @Override
    public void mark(final double x, final double y, final boolean square, final int colour, final String hint) {
        pen(colour, 1.3, false);
        graphics.draw(square ? new Rectangle2D.Double(x - 3.2, y - 3.2, 6.4, 6.4)
            : new Ellipse2D.Double(x - 3.6, y - 3.6, 7.2, 7.2));
    }

    @Override
    public void text(final double x, final double y, final double size, final Anchor anchor, final boolean bold,
        final int colour, final String text) {
        graphics.setColor(new Color(colour));
        graphics.setFont(new Font(Font.SANS_SERIF, bold ? Font.BOLD : Font.PLAIN, 1).deriveFont((float) size));
        final double width = graphics.getFontMetrics().getStringBounds(text, graphics).getWidth();
        final double shift = anchor == Anchor.START ? 0 : anchor == Anchor.MIDDLE ? width / 2 : width;
        graphics.drawString(text, (float) (x - shift), (float) y);
    }

    @Override
    public void textUpwards(final double x, final double y, final double size, final int colour, final String text) {
        final AffineTransform before = graphics.getTransform();
        graphics.translate(x, y);
        graphics.rotate(-Math.PI / 2);
        text(0, 0, size, Anchor.MIDDLE, false, colour, text);
        graphics.setTransform(before);
    }

    /**
     * Writes the image.
     *
     * @param file PNG file, replaced if it exists
     * @throws UncheckedIOException if it cannot be written
     */
    public void writePng(final Path file) {
        try (var out = Files.newOutputStream(file)) {
            if (!ImageIO.write(image, "png", out)) {
                throw new IOException("this Java runtime has no PNG writer");
            }
        } catch (final IOException e) {
            throw new UncheckedIOException(file + ": cannot write the image", e);
        }
    }

    private void pen(final int colour, final double width, final boolean dashed) {
        graphics.setColor(new Color(colour));
        graphics.setStroke(dashed
            ? new BasicStroke((float) width, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND, 1, new float[] {5, 3}, 0)
            : new BasicStroke((float) width, BasicStroke.CAP_ROUND, BasicStroke.JOIN_ROUND));
    }
}
