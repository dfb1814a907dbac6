/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Predicate;

/** What a process has open, as {@code /proc} says. Stateless. */
final class OpenFiles {
    private OpenFiles() {
    }

    /**
     * Whether a process has one of these open.
     *
     * @param process its directory in {@code /proc}
     * @param wanted  by the path that was opened
     * @return true if it has
     * @throws IOException if that cannot be seen: it is another user's, or it has ended
     */
    static boolean any(final Path process, final Predicate<String> wanted) throws IOException {
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(process.resolve("fd"))) {
            for (final Path descriptor : descriptors) {
                if (wanted.test(target(descriptor))) {
                    return true;
                }
            }
            return false;
        } catch (final DirectoryIteratorException e) {
            throw e.getCause();
        }
    }

    private static String target(final Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString();
        } catch (final IOException e) {
            return "";   // it was closed meanwhile
        }
    }
}
