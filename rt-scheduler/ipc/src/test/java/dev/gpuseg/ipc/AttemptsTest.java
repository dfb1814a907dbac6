/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AttemptsTest {
    @Test
    void shouldFailWithEveryReasonWhenNoAttemptSucceeds() {
        final AssertionError error = assertThrows(AssertionError.class, () -> Attempts.of(1, () -> "late by 3 s"));
        assertTrue(error.getMessage().contains("late by 3 s"), error.getMessage());
    }

    @Test
    void shouldNoteEveryAttemptThatIsRepeated(@TempDir final Path directory) throws Exception {
        final Path file = directory.resolve("attempts.txt");
        final AtomicInteger calls = new AtomicInteger();
        Attempts.of(3, () -> calls.incrementAndGet() < 3 ? "late" : null, file);
        assertEquals(List.of("AttemptsTest.shouldNoteEveryAttemptThatIsRepeated: attempt 1 of 3 is repeated: late",
            "AttemptsTest.shouldNoteEveryAttemptThatIsRepeated: attempt 2 of 3 is repeated: late"),
            Files.readAllLines(file));
    }

    @Test
    void shouldNotRepeatWhatAnAttemptAsserts() {
        final AtomicInteger calls = new AtomicInteger();
        assertThrows(AssertionError.class, () -> Attempts.of(3, () -> {
            calls.incrementAndGet();
            throw new AssertionError("wrong");
        }));
        assertEquals(1, calls.get());
    }

    @Test
    void shouldSayNothingWhenTheFirstAttemptSucceeds() throws Exception {
        final PrintStream before = System.err;
        final ByteArrayOutputStream said = new ByteArrayOutputStream();
        System.setErr(new PrintStream(said, true, StandardCharsets.UTF_8));
        try {
            Attempts.of(3, () -> null);
        } finally {
            System.setErr(before);
        }
        assertEquals("", said.toString(StandardCharsets.UTF_8));
    }
}
