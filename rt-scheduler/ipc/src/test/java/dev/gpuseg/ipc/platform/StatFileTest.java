/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StatFileTest {
    private static final int CALLS = 20_000;
    private static final String REST =
        " S 17 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 22 33 1844674407370955";

    private static long field(final String text, final int number) {
        final byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        return StatFile.field(bytes, bytes.length, number);
    }

    @ParameterizedTest
    @CsvSource({"(cat)", "(a b)", "(x) y)", "()", "(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)"})
    void shouldReadFieldsBehindWhateverTheCommandIs(final String command) {
        assertEquals(17, field("123 " + command + REST, StatFile.PARENT));
        assertEquals(987654321, field("123 " + command + REST, StatFile.START));
    }

    @ParameterizedTest
    @CsvSource({"''", "123", "123 (cat", "123 (cat)", "123 (cat) S", "123 (cat) S ", "123 (cat) Z x"})
    void shouldTakeTextThatEndsEarlyForNoProcess(final String text) {
        assertEquals(0, field(text, StatFile.PARENT), text);
        assertEquals(0, field(text, StatFile.START), text);
    }

    @Test
    void shouldAgreeWithTheKernelOnThisProcessAndItsParent() throws IOException {
        final int pid = ProcessStatus.pid();
        final String stat = Files.readString(Path.of("/proc/self/stat"), StandardCharsets.ISO_8859_1);
        final String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        assertEquals(Long.parseLong(fields[StatFile.START - 3]), ProcessStatus.startTicks(pid));
        assertEquals(ProcessHandle.current().parent().map(ProcessHandle::pid).orElse(0L),
            (long) ProcessStatus.parent(pid));
        assertEquals(0, ProcessStatus.startTicks(Integer.MAX_VALUE));
        assertEquals(0, ProcessStatus.parent(Integer.MAX_VALUE));
        assertTrue(ProcessStatus.startTicks(1) >= 0);
    }

    private static int user(final String text) {
        final byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        return StatFile.user(bytes, bytes.length);
    }

    @Test
    void shouldTellTheRealUserWhateverAProcessCallsItself() throws IOException {
        assertEquals(1000, user("Name:\tUid:\t0\\nUid:\t0\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t1\n"));
        assertEquals(-2, user("Name:\tx\nUid:\t4294967294\t0\t0\t0\n"));
        assertEquals(-1, user("Name:\tx\nGid:\t1\n"));
        assertEquals(-1, user(""));
        assertEquals(Files.getAttribute(Path.of("/proc/self"), "unix:uid"), ProcessStatus.uid(ProcessStatus.pid()));
        assertEquals(-1, ProcessStatus.uid(Integer.MAX_VALUE));
    }

    private static List<Integer> groups(final String text) {
        final byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        return StatFile.groups(bytes, bytes.length);
    }

    @Test
    void shouldTellTheGroupsOrThatTheyAreTooMany() throws IOException {
        assertEquals(List.of(4, -2, 70017),
            groups("Name:\tx\nFDSize:\t64\nGroups:\t4 4294967294 70017 \nNStgid:\t9\n"));
        assertEquals(List.of(4), groups("Name:\tx\nGroups:\t4\nNStgid:\t9\n"));
        assertEquals(List.of(), groups("Name:\tx\nGroups:\t \nNStgid:\t9\n"));
        assertEquals(List.of(), groups(""));
        assertNull(groups("Name:\tx\nGroups:\t" + "12345 ".repeat(700)), "cut");
        final String line = Files.readAllLines(Path.of("/proc/self/status"), StandardCharsets.ISO_8859_1).stream()
            .filter(text -> text.startsWith("Groups:")).findFirst().orElseThrow().substring("Groups:".length());
        assertEquals(Stream.of(line.split("\\s+")).filter(word -> !word.isEmpty()).map(Integer::parseUnsignedInt)
            .toList(), ProcessStatus.groups(ProcessStatus.pid()));
        assertEquals(List.of(), ProcessStatus.groups(Integer.MAX_VALUE));
    }

    @Test
    void shouldAllocateNothing() {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final int pid = ProcessStatus.pid();
        final long self = Thread.currentThread().getId();
        long sum = ask(pid);
        final long before = threads.getThreadAllocatedBytes(self);
        sum += ask(pid);
        final double bytes = (threads.getThreadAllocatedBytes(self) - before) / (double) CALLS;
        assertTrue(sum > 0);
        assertTrue(bytes < 1, "bytes for each question: " + bytes);
    }

    private static long ask(final int pid) {
        long sum = 0;
        for (int i = 0; i < CALLS / 2; i++) {
            sum += ProcessStatus.startTicks(pid) + ProcessStatus.parent(pid) + ProcessStatus.uid(pid);
        }
        return sum;
    }
}
