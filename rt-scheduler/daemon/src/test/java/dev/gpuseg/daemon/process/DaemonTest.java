/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class DaemonTest {
    private static final int WINDOWS = 40;

    @TempDir
    private Path directory;

    private DaemonConfig config(final String policy, final String mechanism) {
        return DaemonConfig.of(RuntimeDirectory.resolve(directory.toString()),
            PolicyCatalog.builtIn().create(policy), mechanism)
            .warmUpRecords(0).build();
    }

    private void assertRefused(final DaemonConfig config, final String... words) {
        final StartUpException refused = assertThrows(StartUpException.class, () -> Daemon.start(config).close());
        for (final String word : words) {
            assertTrue(refused.getMessage().contains(word), refused.getMessage() + " should name " + word);
        }
        assertFalse(refused.getMessage().contains("\n"), "one line");
    }

    @Test
    void shouldRefuseAmdWithoutAGpuAndNameTheNextLowerLevel() {
        assumeTrue(!Files.exists(Path.of("/dev/kfd")), "this machine has an AMD GPU");
        assertRefused(config("fp", "amd"), "/sys/class/kfd", "load amdgpu", "gate");
    }

    @Test
    void shouldRefuseTegraWithoutADriverAndNameTheNextLowerLevel() {
        assumeTrue(!Files.exists(Path.of("/dev/nvhost-sched-gpu")), "this machine has nvgpu");
        assertRefused(config("fp", "tegra"), "/dev/nvhost-sched-gpu", "load nvgpu", "gate");
    }

    @Test
    void shouldRefuseNvidiaWithoutADriverAndNameTheNextLowerLevel() {
        assumeTrue(!Files.exists(Path.of("/dev/nvidiactl")), "this machine has an NVIDIA driver");
        assertRefused(config("fp", "nvidia"), "/dev/nvidiactl", "load NVIDIA's driver", "gate");
    }

    @Test
    void shouldRefuseTheVirtualGpuWhereNoneRuns() {
        assertRefused(config("fp", "sim"), "vgpu.ctl", "gpuseg-vgpu", "gate");
    }

    @Test
    void shouldRefuseAPolicyThatTheMechanismCannotEnforce() {
        assertRefused(config("fp", "observe"), "policy fp", "observe", "gate");
    }

    @Test
    void shouldRefuseASecondDaemonInTheSameDirectory() {
        try (Daemon first = Daemon.start(config("fp", "gate"))) {
            assertRefused(config("fp", "gate"), "another daemon", Long.toString(ProcessHandle.current().pid()));
            assertEquals(0, first.counters().get(Counter.CYCLE_ERRORS), "the first one is not disturbed");
        }
        Daemon.start(config("fp", "gate")).close();
    }

    private static long collections() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionCount).sum();
    }

    @Test
    void shouldCollectWhatItsStartHasMadeBeforeItAcceptsClients() {
        final long before = collections();
        Daemon.start(config("fp", "gate")).close();
        assertTrue(collections() > before, "the first collections would copy it while clients run");
    }

    @Test
    void shouldStopCleanlyAndLeaveNothingBehindButJournalAndEmptyHeldFile() {
        final RuntimeDirectory where = RuntimeDirectory.resolve(directory.toString());
        Daemon.start(config("edf", "gate")).close();
        try (HeldFile held = HeldFile.openOrCreate(where.held()); StatusPage status = StatusPage.open(where.status())) {
            assertEquals(0, held.count());
            assertTrue(status.isStopping());
        }
        assertFalse(Files.exists(where.socket()), "the socket is gone");
        final List<EventKind> kinds = new ArrayList<>();
        JournalReader.forEach(where.journal(), event -> {
            if (event.kind() != EventKind.STALL) {   // the machine's doing, and the cycle that stops may be such a one
                kinds.add(event.kind());
            }
        });
        assertEquals(EventKind.START, kinds.get(0));
        assertEquals(EventKind.STOP, kinds.get(kinds.size() - 1));
    }

    @Test
    void shouldBeatItsHeartAtLeastEvery20MsAlsoWhenItSleeps() throws Exception {
        final DaemonConfig sleepy = config("fp", "gate").but().idle(IdleMode.SLEEP).watchdogPeriodMs(0).build();
        try (Daemon daemon = Daemon.start(sleepy); StatusPage status = StatusPage.open(sleepy.directory().status())) {
            // 35 are due when sleeping at most 14 ms; 25 allow for a loaded machine, and one that stalls gets another
            // window: a daemon that sleeps too long reaches 25 in none
            Attempts.of(WINDOWS, () -> {
                final int beats = beatsIn500Ms(status);
                return beats >= 25 ? null : beats + " heartbeats in 500 ms";
            });
            assertTrue(daemon.counters().get(Counter.SLEEPS) > 0);
        }
    }

    private static int beatsIn500Ms(final StatusPage status) throws InterruptedException {
        int beats = 0;
        long last = status.heartbeatNs();
        final long endNs = System.nanoTime() + 500_000_000L;
        while (System.nanoTime() - endNs < 0) {
            Thread.sleep(1);
            if (status.heartbeatNs() != last) {
                last = status.heartbeatNs();
                beats++;
            }
        }
        return beats;
    }
}
