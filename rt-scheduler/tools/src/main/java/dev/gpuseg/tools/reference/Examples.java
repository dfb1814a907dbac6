/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.reference;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The examples of the manual pages, from {@code examples.txt}. Immutable. */
final class Examples {
    /**
     * One paragraph of the file.
     *
     * @param text     a sentence
     * @param commands what is typed, one line each
     */
    record Example(String text, List<String> commands) {
    }

    private final List<Example> all;

    private Examples(final List<Example> all) {
        this.all = all;
    }

    static Examples read() throws IOException {
        try (InputStream in = Examples.class.getResourceAsStream("examples.txt")) {
            final List<Example> examples = new ArrayList<>();
            for (final String paragraph : new String(in.readAllBytes(), StandardCharsets.UTF_8).split("\n\n+")) {
                final List<String> lines = paragraph.lines().filter(line -> !line.startsWith("#")).toList();
                if (!lines.isEmpty()) {
                    examples.add(new Example(lines.get(0), lines.subList(1, lines.size())));
                }
            }
            return new Examples(examples);
        }
    }

    List<Example> all() {
        return all;
    }

    /** The paragraphs in which a command is used. */
    List<Example> of(final String qualifiedName) {
        return all.stream().filter(e -> e.commands().stream().anyMatch(c -> isOf(c, qualifiedName))).toList();
    }

    private static boolean isOf(final String command, final String qualifiedName) {
        return command.equals(qualifiedName) || command.startsWith(qualifiedName + " ")
            && !qualifiedName.matches("gpuseg|gpuseg-daemon");
    }
}
