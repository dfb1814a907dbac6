/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.amd.AmdRig.App;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What concerns the interface {@code agent} alone, on the stand-in of KFD; no AMD hardware. */
@Timeout(600)
class AgentControlTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final int PATIENT_MS = 60_000;
    /** Of what a stall of the machine may spoil. */
    private static final int ATTEMPTS = 5;
    private static final int PAGE_BYTES = 12_288;
    private static final int MAGIC = 0x414b5347;

    @TempDir
    private Path directory;
    private AmdRig rig;
    private AmdMechanism mechanism;

    @BeforeEach
    void start() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "descriptors of other processes need root here");
        rig = new AmdRig(directory);
        System.setProperty(AgentControl.ANSWER_PROPERTY, "20000");   // a loaded machine is no error here
    }

    @AfterEach
    void stop() {
        System.clearProperty(AgentControl.ANSWER_PROPERTY);
        if (mechanism != null) {
            mechanism.close();
        }
        if (rig != null) {
            rig.close();
            assertEquals(0, rig.table.getInt(AmdRig.FOREIGN), "an ioctl that is not in the table reached the driver");
        }
    }

    private void use(final int watchdogMs) {
        mechanism = rig.mechanism(ControlInterface.AGENT, watchdogMs);
    }

    private ContextRef attached(final App app, final int id) {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        return context;
    }

    private int disable(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int enable(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldNotLetAnApplicationResumeItsQueuesWhileTheyAreHeld() throws Exception {
        use(PATIENT_MS);
        final App app = rig.start(2);
        final ContextRef c = attached(app, 1);
        assertEquals(0, disable(c), mechanism.lastError());
        app.order(AmdRig.RESUME);
        app.order(AmdRig.MAKE);
        app.order(AmdRig.RESUME);
        assertTrue(app.standsStill());
        app.order(AmdRig.DESTROY);
        assertTrue(app.standsStill());
        assertEquals(0, enable(c));
        app.mustAdvance("released");
    }

    @Test
    void shouldSayWhichApplicationRunsWithoutTheLibraryAndHoldTheOthers() throws Exception {
        use(PATIENT_MS);
        final App without = rig.start(1, AmdRig.GPU_ID, "compute", AmdRig.BUILD.resolve("gpuseg-amd-app"), false);
        final App app = rig.start(1);
        final ContextRef c = attached(without, 1);
        final ContextRef d = attached(app, 2);
        assertEquals(1, disable(c, d));
        assertEquals(ContextRef.SwitchResult.FAILED, c.result());
        assertEquals(ContextRef.SwitchResult.DONE, d.result());
        assertTrue(mechanism.lastError().contains("pid " + without.pid())
            && mechanism.lastError().contains("LD_PRELOAD"), mechanism.lastError());
        without.mustAdvance("it cannot be held");
        assertTrue(app.standsStill());
        assertEquals(0, enable(c, d));
    }

    @Test
    void shouldLeaveAnApplicationThatDoesNotAnswerAndHoldTheOthers() throws Exception {
        System.setProperty(AgentControl.ANSWER_PROPERTY, "5000");
        use(PATIENT_MS);
        final App stopped = rig.start(1);
        final App app = rig.start(1);
        final ContextRef c = attached(stopped, 1);
        final ContextRef d = attached(app, 2);
        stopped.suspend();
        assertEquals(1, disable(c, d));
        assertEquals(ContextRef.SwitchResult.FAILED, c.result());
        assertTrue(mechanism.lastError().contains("did not answer within 5000 ms"), mechanism.lastError());
        assertEquals(ContextRef.SwitchResult.DONE, d.result());
        assertTrue(app.standsStill());
        // whoever waits for an answer keeps the holds in force: a call without a beat has not waited
        final AgentPage page = AgentPage.find(new AmdProcess(app.pid(), ProcessStatus.startTicks(app.pid())), 0).page();
        final int before = page.beats();
        assertTrue(before > 0, "the first call waited");
        assertEquals(1, disable(c), "it still does not answer");
        assertEquals(before, page.beats(), "it may delay the others once only");
        stopped.goOn();
        AmdRig.await("it answers", () -> disable(c, d) == 0);
        assertTrue(stopped.standsStill());
        stopped.suspend();
        assertEquals(1, enable(c, d));
        app.mustAdvance("beside one that does not answer");
        stopped.goOn();
        stopped.mustAdvance("when it can answer again");
    }

    @Test
    void shouldKeepHoldsInForceWhileItWaitsForAnother() throws Exception {
        System.setProperty(AgentControl.ANSWER_PROPERTY, "1500");
        final App app = rig.start(1);
        final AmdProcess held = new AmdProcess(app.pid(), ProcessStatus.startTicks(app.pid()));
        final AmdProcess silent = new AmdProcess(ProcessStatus.pid(), ProcessStatus.startTicks(ProcessStatus.pid()));
        final int fd = Descriptor.createSealedMemory("gpuseg-kfd-agent", PAGE_BYTES);
        assertNotNull(forged(fd, silent.pid(), PAGE_BYTES));
        Attempts.of(ATTEMPTS, () -> {
            final AgentControl control = new AgentControl(0, AmdRig.GPU_ID, true, 400);
            control.apply(new AmdProcess[] {held}, 1, true);
            final AgentPage page = AgentPage.find(held, 0).page();
            final int before = page.beats();
            control.apply(new AmdProcess[] {silent}, 1, true);
            final int beats = page.beats() - before;
            assertEquals(-Errno.ETIMEDOUT, silent.result());
            control.close();
            return beats >= 3 ? null : beats + " beats while waiting; 30 are due";
        });
        Descriptor.close(fd);
        app.mustAdvance("released");
    }

    @Test
    void shouldEndHoldsOfAnEnforcerThatHangsAndTellItSo() throws Exception {
        use(100);
        final App app = rig.start(1);
        final ContextRef c = attached(app, 1);
        AmdRig.await("it is disabled", () -> disable(c) == 0);   // a hold that ends before it is looked at is none
        app.mustAdvance("once the beats have stopped");
        AmdRig.await("the enforcer must apply its state again", mechanism::changed);
        Thread.sleep(5);
        assertFalse(mechanism.changed(), "told once");
        final int before = rig.table.getInt(AmdRig.DEACTIVATED);
        AmdRig.await("it is disabled again", () -> disable(c) == 0);
        assertTrue(rig.table.getInt(AmdRig.DEACTIVATED) > before, "disabled again");
    }

    @Test
    void shouldRefusePeriodsThatAnAgentWouldNotKeep() {
        assertThrows(MechanismException.class, () -> rig.mechanism(ControlInterface.AGENT, 9));
        assertThrows(MechanismException.class, () -> rig.mechanism(ControlInterface.AGENT, 60_001));
    }

    @Test
    void shouldSayThatQueuesEscapeTheLibrary() throws Exception {
        use(PATIENT_MS);
        final App app = rig.start(1);
        final Path hidden = directory.resolve("sys/class/kfd/kfd/proc/" + app.pid() + "/queues/9");
        Files.createDirectories(hidden);
        Files.writeString(hidden.resolve("type"), "0\n");
        Files.writeString(hidden.resolve("gpuid"), AmdRig.GPU_ID + "\n");
        assertEquals(1, disable(attached(app, 1)));
        assertTrue(mechanism.lastError().contains("holds 1 of 2 queues"), mechanism.lastError());
    }

    @Test
    void shouldLeaveAnApplicationToTheDaemonThatOrdersItAlready() throws Exception {
        use(PATIENT_MS);
        final App app = rig.start(1);
        final AmdProcess process = new AmdProcess(app.pid(), ProcessStatus.startTicks(app.pid()));
        AgentPage.find(process, 0).page().own(1, ProcessStatus.startTicks(1), AmdRig.GPU_ID, true, PATIENT_MS);
        final ContextRef c = attached(app, 1);
        assertEquals(1, disable(c));
        assertTrue(mechanism.lastError().contains("another daemon"), mechanism.lastError());
        AgentPage.find(process, 0).page().own(1, 4, AmdRig.GPU_ID, true, PATIENT_MS);   // which is dead
        mechanism.detach(c);
        mechanism.attach(c);
        assertEquals(0, disable(c), mechanism.lastError());
        assertTrue(app.standsStill());
    }

    /** A page that this process pretends to have; null if it is not taken for one. */
    private static AgentPage forged(final int fd, final int pid, final int size) throws Exception {
        final ByteBuffer header = ByteBuffer.allocate(12).order(ByteOrder.nativeOrder());
        header.putInt(MAGIC).putInt(1).putInt(pid).flip();
        try (FileChannel file = FileChannel.open(Descriptor.path(fd), StandardOpenOption.WRITE)) {
            assertEquals(size, file.size());
            file.write(header, 0);
        }
        final int own = ProcessStatus.pid();
        final AgentPage.Search found = AgentPage.find(new AmdProcess(own, ProcessStatus.startTicks(own)), 0);
        assertEquals(found.page() == null ? -Errno.ENOENT : 0, found.result());
        return found.page();
    }

    @Test
    void shouldAcceptNoPageOfAnotherProcessOrSize() throws Exception {
        final int own = ProcessStatus.pid();
        for (final int size : new int[] {PAGE_BYTES / 2, PAGE_BYTES, 2 * PAGE_BYTES}) {
            for (final int pid : new int[] {own, own + 1, 0, -1}) {
                final int fd = Descriptor.createSealedMemory("gpuseg-kfd-agent", size);
                if (size == PAGE_BYTES && pid == own) {
                    assertNotNull(forged(fd, pid, size));
                } else {
                    assertNull(forged(fd, pid, size), "size " + size + ", pid " + pid);
                }
                Descriptor.close(fd);
            }
        }
        final AmdProcess self = new AmdProcess(own, ProcessStatus.startTicks(own));
        assertEquals(AgentPage.TOO_MANY, AgentPage.find(self, 0, 3).result(), "a JVM has more descriptors than that");
        final Path plain = directory.resolve("gpuseg-kfd-agent");
        Files.write(plain, new byte[PAGE_BYTES]);   // the name is not enough
        assertNull(AgentPage.find(self, 0).page());
        final AgentPage.Search gone = AgentPage.find(new AmdProcess(own, ProcessStatus.startTicks(own) - 1), 0);
        assertEquals(-Errno.ESRCH, gone.result());
    }

    /** An application that writes anything into its page harms only itself. */
    @Test
    void shouldBearAPageFullOfNonsense() throws Exception {
        System.setProperty(AgentControl.ANSWER_PROPERTY, "1");
        final int fd = Descriptor.createSealedMemory("gpuseg-kfd-agent", PAGE_BYTES);
        final int own = ProcessStatus.pid();
        final AmdProcess[] process = {new AmdProcess(own, ProcessStatus.startTicks(own))};
        final Random random = new Random(7);
        assertNotNull(forged(fd, own, PAGE_BYTES));
        final AgentControl control = new AgentControl(0, AmdRig.GPU_ID, true, 100);
        final ByteBuffer nonsense = ByteBuffer.allocate(PAGE_BYTES);
        int failures = 0;
        control.apply(process, 1, true);   // it is found while it looks right
        try (FileChannel file = FileChannel.open(Descriptor.path(fd), StandardOpenOption.WRITE)) {
            for (int i = 0; i < 500; i++) {
                random.nextBytes(nonsense.array());
                file.write(nonsense.clear(), 0);
                control.apply(process, 1, random.nextBoolean());
                assertTrue(process[0].result() <= 0, "result " + process[0].result());
                failures += process[0].result() < 0 ? 1 : 0;
                control.heartbeat();
            }
        }
        assertEquals(500, failures, "who does not follow orders is reported");
        control.release(process[0]);
        control.close();
        Descriptor.close(fd);
    }
}
