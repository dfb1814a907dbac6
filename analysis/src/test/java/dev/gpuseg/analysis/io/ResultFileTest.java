/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ResultFileTest {
    @TempDir
    private Path directory;

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private static void refuses(final Path file, final String... said) {
        final String message = assertThrows(ResultFile.UnwritableException.class, () -> ResultFile.write(file, "x"))
            .getMessage();
        assertTrue(message.startsWith(file + " cannot be written: "), message);
        for (final String part : said) {
            assertTrue(message.contains(part), message);
        }
    }

    @Test
    void shouldLeaveTheOldFileAndNothingElseWhenTheResultCannotBeMade() throws IOException {
        final Path file = Files.writeString(directory.resolve("result.json"), "old");
        assertEquals("no more", assertThrows(IOException.class, () -> ResultFile.writeText(file, out -> {
            out.write("half ".repeat(100_000));
            throw new IOException("no more");
        })).getMessage());
        assertEquals("old", Files.readString(file));
        final Path fresh = directory.resolve("new.json");
        assertThrows(IllegalStateException.class, () -> ResultFile.write(fresh, out -> {
            out.write(new byte[1 << 20]);
            throw new IllegalStateException();
        }));
        assertEquals(List.of("result.json"), names());
    }

    @Test
    void shouldSayWhyAFileCannotBeWritten() {
        refuses(Path.of("/dev/full"), "No space left on device; free some");
        refuses(directory, "Is a directory; name a file");
        refuses(directory.resolve("none/result"), "there is no such file or directory");
        refuses(Path.of("/proc/result"), "; check the name");
    }

    @Test
    void shouldReplaceWhatALinkNamesAndKeepItsMode() throws IOException {
        final Path file = Files.writeString(directory.resolve("Größe.json"), "old");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw----"));
        final Path link = Files.createSymbolicLink(directory.resolve("link"), file);
        ResultFile.write(link, "カメラ");
        assertEquals("カメラ", Files.readString(file, StandardCharsets.UTF_8));
        assertTrue(Files.isSymbolicLink(link));
        assertEquals("rw-rw----", PosixFilePermissions.toString(Files.getPosixFilePermissions(file)));
        assertFalse(names().stream().anyMatch(name -> name.endsWith(".part")), names().toString());
    }

    @Test
    void shouldWriteToADeviceAsItIs() throws IOException {
        ResultFile.write(Path.of("/dev/null"), "x");
        assertTrue(Files.exists(Path.of("/dev/null")) && !Files.isRegularFile(Path.of("/dev/null")));
    }
}
