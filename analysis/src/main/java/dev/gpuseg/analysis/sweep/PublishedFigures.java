/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The numbers of the published figures, read off their vector graphics and shipped as resources that name their source.
 */
final class PublishedFigures {
    /** Sets per point of the published curves. */
    static final int SETS = 1000;

    private static final Map<String, Double> VALUES = new HashMap<>();

    static {
        load("published-fig8.csv", "8");
        load("published-fig9.csv", "9");
    }

    private PublishedFigures() {
    }

    /** Percent at a point of figure 8 (or percent points of figure 9), or NaN if there is none. */
    static double value(final char figure, final Axis axis, final double label, final String column) {
        return VALUES.getOrDefault(key(Character.toString(figure), axis.letter(), label, column), Double.NaN);
    }

    private static String key(final String figure, final char letter, final double label, final String column) {
        return figure + letter + '/' + Math.round(label * 100) + '/' + column;
    }

    private static void load(final String name, final String figure) {
        try (InputStream in = PublishedFigures.class.getResourceAsStream(name);
            BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            String[] header = null;
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                if (line.isBlank() || line.startsWith("#")) {
                    continue;
                }
                final String[] cells = line.split(",", -1);
                if (header == null) {
                    header = cells;
                    continue;
                }
                final char letter = letterOf(cells[0], figure);
                for (int i = 2; i < cells.length; i++) {
                    VALUES.put(key(figure, letter, Double.parseDouble(cells[1]), header[i]),
                        Double.parseDouble(cells[i]));
                }
            }
        } catch (final IOException e) {
            throw new UncheckedIOException("resource " + name + " cannot be read", e);
        }
    }

    private static char letterOf(final String panel, final String figure) {
        if (panel.startsWith(figure)) {
            return panel.charAt(1);
        }
        for (final Axis axis : Axis.values()) {
            if (axis.key().equals(panel)) {
                return axis.letter();
            }
        }
        throw new IllegalStateException("published figure " + figure + ": panel " + panel + " is unknown");
    }
}
