/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.Observation;
import dev.gpuseg.mechanisms.observer.Observer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** With real processes and a driver that is made up. */
@Timeout(60)
class ScanningMechanismTest {
    /** What the made-up driver keeps for a process. */
    private static final class Kept extends AttachedProcess {
        private final Made of;

        Kept(final Made of, final int pid, final long startTicks) {
            super(pid, startTicks);
            this.of = of;
        }

        @Override
        protected boolean hasWork() {
            return of.working.contains(pid());
        }
    }

    /** A mechanism on a made-up driver. */
    private static final class Made extends ScanningMechanism<Kept> {
        private final Set<Integer> working = new ConcurrentSkipListSet<>();
        private final Set<Integer> news = new ConcurrentSkipListSet<>();
        private final List<String> calls = new CopyOnWriteArrayList<>();
        private final AtomicInteger scans = new AtomicInteger();
        private volatile boolean broken;

        Made(final Protection protection) {
            super("made-up-scan", protection, Observer.none("not asked for"), Observation.KFD);
            startScanning();
        }

        private void call(final String what, final Kept p) {
            assertTrue(Thread.holdsLock(lock()), what);
            calls.add(what + " " + p.pid() + " " + p.startTicks());
        }

        @Override
        protected Kept newProcess(final int pid, final long startTicks) {
            return new Kept(this, pid, startTicks);
        }

        @Override
        protected void attached(final Kept process) {
            call("attached", process);
        }

        @Override
        protected void replaced(final Kept process) {
            call("replaced", process);
            assertFalse(isAttached(process));
        }

        @Override
        protected void detached(final Kept process) {
            call("detached", process);
        }

        @Override
        protected boolean scan(final Kept process) {
            assertFalse(Thread.holdsLock(lock()), "a scan must not keep the enforcer waiting");
            return news.remove(process.pid());
        }

        @Override
        protected Set<Integer> pidsWithWork() {
            scans.incrementAndGet();
            if (broken) {
                throw new IllegalStateException("no driver");
            }
            return Set.copyOf(working);
        }

        @Override
        protected void closed(final Collection<Kept> remaining) {
            remaining.forEach(p -> call("closed", p));
        }

        @Override
        protected void scanEnded() {
            calls.add("scan ended");
        }

        @Override
        public String name() {
            return "made-up";
        }

        @Override
        public int id() {
            return 0;
        }

        @Override
        public Capabilities capabilities() {
            return new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, 1, false, "process");
        }

        @Override
        public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
            final int enableCount) {
            return 0;
        }

        @Override
        public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
            return false;
        }

        @Override
        public byte[] heldPayload(final ContextRef context) {
            return new byte[0];
        }
    }

    private final List<Process> children = new ArrayList<>();
    private final List<Integer> found = new CopyOnWriteArrayList<>();
    @TempDir
    private Path directory;
    private Made mechanism;

    @BeforeEach
    void start() {
        mechanism = new Made(new Protection(Set.of("camera"), false));
    }

    @AfterEach
    void stop() throws Exception {
        mechanism.close();
        for (final Process child : children) {
            child.destroyForcibly().waitFor();
        }
    }

    private int child(final String program) throws Exception {
        final Process process = new ProcessBuilder(program, "60").start();
        children.add(process);
        final int pid = (int) process.pid();
        final Path wanted = Path.of(program).toRealPath();
        while (!wanted.equals(Path.of("/proc/" + pid + "/exe").toRealPath())) {
            Thread.sleep(1);   // the launcher has not become the program yet
        }
        return pid;
    }

    private int child() throws Exception {
        return child("/bin/sleep");
    }

    private static ContextRef context(final int pid) {
        return new ContextRef(1, 0, pid, ProcessStatus.startTicks(pid), "child");
    }

    private static void await(final BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) {
            Thread.sleep(1);   // bounded by the test's limit
        }
    }

    /** Until at least one whole scan has begun and ended. */
    private void awaitScan() throws InterruptedException {
        final int before = mechanism.scans.get();
        await(() -> mechanism.scans.get() >= before + 2);
    }

    private void listen() {
        mechanism.processListener((pid, ticks, name) -> {
            assertEquals(ProcessStatus.startTicks(pid), ticks);
            assertEquals(ProcessStatus.commandName(pid), name);
            found.add(pid);
        });
    }

    @Test
    void shouldAnnounceProcessesWithWorkThatWereNeverAttachedOnce() throws Exception {
        final int attached = child();
        final int other = child();
        mechanism.attach(context(attached));
        mechanism.working.addAll(Set.of(attached, other, ProcessStatus.pid()));
        listen();
        await(() -> found.contains(other));
        awaitScan();
        assertEquals(List.of(other), found, "neither the attached one nor this process, and nothing twice");
    }

    @Test
    void shouldNeverAnnounceAProtectedProgram() throws Exception {
        final Path camera = Files.copy(Path.of("/bin/sleep"), directory.resolve("camera"));
        final int spared = child(camera.toString());
        final int other = child();
        mechanism.working.addAll(Set.of(spared, other));
        listen();
        await(() -> found.contains(other));
        awaitScan();
        assertEquals(List.of(other), found);
    }

    @Test
    void shouldAnnounceAProcessAgainThatHadNoWorkMeanwhile() throws Exception {
        final int pid = child();
        mechanism.working.add(pid);
        listen();
        await(() -> found.size() == 1);
        mechanism.working.clear();
        awaitScan();
        mechanism.working.add(pid);
        await(() -> found.size() == 2);
    }

    @Test
    void shouldNotAnnounceAProcessThatTheDriverListsAfterItsEnd() throws Exception {
        final int pid = child();
        children.get(0).destroyForcibly().waitFor();
        final int other = child();
        mechanism.working.addAll(Set.of(pid, other));
        listen();
        await(() -> found.contains(other));
        awaitScan();
        assertEquals(List.of(other), found);
    }

    @Test
    void shouldTellOfEachChangeOnce() throws Exception {
        final int pid = child();
        listen();
        mechanism.attach(context(pid));
        awaitScan();
        assertFalse(mechanism.changed());
        mechanism.news.add(pid);
        await(mechanism::changed);
        assertFalse(mechanism.changed());
    }

    @Test
    void shouldReplaceWhatItKeptWhenAPidIsAttachedAgain() throws Exception {
        final int pid = child();
        final ContextRef dead = new ContextRef(1, 0, pid, 7, "dead");
        final ContextRef c = context(pid);
        mechanism.attach(dead);
        final Kept first = mechanism.processOf(dead);
        mechanism.attach(c);
        assertSame(first, mechanism.processOf(dead));
        assertEquals(List.of("attached " + pid + " 7", "replaced " + pid + " 7", "attached " + pid + " "
            + c.pidStartTicks()), mechanism.calls);
        mechanism.detach(dead);
        awaitStillKnown(pid);
        mechanism.detach(c);
        mechanism.detach(c);
        assertNull(c.attachment());
        assertEquals(List.of("detached " + pid + " 7", "detached " + pid + " " + c.pidStartTicks()),
            mechanism.calls.subList(3, 5));
        assertEquals(5, mechanism.calls.size(), "the second detach of a context does nothing");
    }

    private void awaitStillKnown(final int pid) throws InterruptedException {
        mechanism.working.add(pid);
        listen();
        awaitScan();
        assertEquals(List.of(), found, "detaching an old context of the pid must not forget the new one");
        mechanism.working.clear();
    }

    @Test
    void shouldReportAFailedScanAndScanAgain() throws Exception {
        final int pid = child();
        mechanism.broken = true;
        listen();
        await(() -> mechanism.lastError().contains("no driver"));
        mechanism.working.add(pid);
        mechanism.broken = false;
        await(() -> found.contains(pid));
    }

    @Test
    void shouldCloseWhatIsStillAttachedAndScanNoMore() throws Exception {
        final int pid = child();
        final ContextRef c = context(pid);
        mechanism.attach(c);
        assertNotNull(c.attachment());
        mechanism.close();
        assertTrue(mechanism.calls.contains("closed " + pid + " " + c.pidStartTicks()), mechanism.calls::toString);
        await(() -> mechanism.calls.contains("scan ended"));   // close() waits at most 2 s for a scan in progress
        final int scans = mechanism.scans.get();
        Thread.sleep(60);   // three times the period
        assertEquals(scans, mechanism.scans.get());
    }
}
