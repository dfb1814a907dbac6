/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.RealTime;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a dispatcher with a real-time priority may have to wait for is real-time, too. */
@Timeout(120)
class RealTimeThreadsTest {
    private static final int PRIORITY = 60;
    /** Fields of /proc/PID/stat, counted from the state. */
    private static final int RT_PRIORITY = 37;
    private static final int POLICY = 38;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** Name, scheduling policy and real-time priority of each thread; those of one name count once. */
    private static Map<String, String> threads(final long pid) throws IOException {
        final Map<String, String> found = new TreeMap<>();
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
            for (final Path task : tasks) {
                final String stat = Files.readString(task.resolve("stat"));
                final int nameEnd = stat.lastIndexOf(')');
                final String[] fields = stat.substring(nameEnd + 2).split(" ");
                found.merge(stat.substring(stat.indexOf('(') + 1, nameEnd),
                    (fields[POLICY].equals("1") ? "fifo " : "other ") + fields[RT_PRIORITY],
                    (one, other) -> one.equals(other) ? one : one + ", " + other);
            }
        }
        return found;
    }

    private Child daemon(final String... more) throws InterruptedException {
        final List<String> command = JavaCommand.daemon("--dir", rig.directory().root().toString(), "--mechanism",
            "gate", "--journal", rig.directory().journal().toString());
        command.addAll(rig.with("no-watchdog: true").settings());
        command.addAll(List.of(more));
        final Child daemon = rig.start("daemon", command);
        daemon.await("ready", 120);
        return daemon;
    }

    @Test
    void shouldLetNoOrdinaryThreadDelayTheDispatcher() throws Exception {
        assumeTrue(RealTime.isPermitted(), "SCHED_FIFO is not permitted");
        final Map<String, String> threads = threads(daemon("--priority", Integer.toString(PRIORITY)).pid());
        assertEquals("fifo " + PRIORITY, threads.get("gpuseg-dispatch"), threads.toString());
        assertEquals("fifo " + PRIORITY, threads.get("VM Thread"), threads.toString());
        assertEquals("fifo 1", threads.get("gpuseg-conducto"), threads.toString());
        threads.keySet().removeIf(name -> name.contains("Compiler"));   // for a part of the time: CompilerTimeTest
        threads.values().removeIf(how -> !how.contains("other"));
        assertEquals(Map.of(), threads, "ordinary threads");
    }

    @Test
    void shouldLeaveTheThreadsAloneWithoutAPriority() throws Exception {
        final Map<String, String> threads = threads(daemon().pid());
        threads.values().removeIf(how -> !how.contains("fifo"));
        assertEquals(Map.of(), threads, "real-time threads");
    }
}
