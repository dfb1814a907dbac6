/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * For results that a machine spoils when it does not let a process run for a second: one of a few attempts must
 * succeed. What must hold in each is asserted inside. Every attempt that is repeated is printed and counted in
 * target/attempts.txt of the module, which {@code ./gpuseg test} shows: a test that often needs its second attempt
 * has a defect.
 */
public final class Attempts {
    /** Returns null if it came out right, else what did not. */
    @FunctionalInterface
    public interface Attempt {
        String go() throws Exception;
    }

    private static final StackWalker STACK = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

    private Attempts() {
    }

    public static void of(final int most, final Attempt attempt) throws Exception {
        of(most, attempt, Path.of("target", "attempts.txt"));
    }

    static void of(final int most, final Attempt attempt, final Path file) throws Exception {
        final List<String> wrong = new ArrayList<>();
        while (wrong.size() < most) {
            final String text = attempt.go();
            if (text == null) {
                return;
            }
            wrong.add(text);
            if (wrong.size() < most) {
                note(caller() + ": attempt " + wrong.size() + " of " + most + " is repeated: " + text,
                    file);
            }
        }
        throw new AssertionError("in none of " + most + " attempts: " + wrong);
    }

    private static String caller() {
        return STACK.walk(frames -> frames.filter(f -> f.getDeclaringClass() != Attempts.class).findFirst()
            .map(f -> f.getDeclaringClass().getSimpleName() + '.' + f.getMethodName()).orElse("?"));
    }

    private static void note(final String line, final Path file) throws IOException {
        System.err.println(line);
        if (Files.isDirectory(file.toAbsolutePath().getParent())) {   // not in an IDE that builds elsewhere
            Files.writeString(file, line.replace('\n', ' ') + "\n", StandardCharsets.UTF_8, StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
        }
    }
}
