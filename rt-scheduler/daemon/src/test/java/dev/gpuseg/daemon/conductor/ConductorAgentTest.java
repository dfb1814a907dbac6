/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.NativeTool;
import dev.gpuseg.ipc.StallProbe;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(value = 240, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ConductorAgentTest {
    /** Of what a stall of the machine may spoil. */
    private static final int ATTEMPTS = 3;

    @TempDir
    private Path directory;
    private final List<Process> spawned = new ArrayList<>();

    @AfterEach
    void end() throws InterruptedException {
        for (final Process process : spawned) {
            process.destroyForcibly().waitFor();
        }
    }

    private Process spawn(final ConductorRig rig, final String mode) throws IOException {
        final Path program = directory.resolve("conductor_client");
        if (!Files.exists(program)) {
            NativeTool.compile(directory,
                NativeTool.root().resolve("rt-scheduler/daemon/src/test/c/conductor_client.c"));
        }
        final Process process = new ProcessBuilder(program.toString(), rig.directory.socket().toString(), mode)
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        spawned.add(process);
        return process;
    }

    private static BufferedReader reader(final Process process) {
        return new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    }

    private static String open(final SeqPacketSocket socket, final Packet request) {
        final Packet reply = ConductorRig.ask(socket, request);
        return ConductorRig.status(reply) == 0 ? null : ConductorRig.text(reply, Abi.MsgTaskReply.TEXT_OFFSET);
    }

    @Test
    void shouldRegisterAClientWithSessionQueueAndDoorbell() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            final Packet reply = ConductorRig.ask(socket, ConductorRig.hello("camera"));
            assertEquals(0, ConductorRig.status(reply), rig::dump);
            assertEquals(77, reply.data().getInt(Abi.Msg.SEQ_OFFSET));
            assertEquals(2, reply.descriptorCount());
            assertEquals(Abi.SESSION_BYTES, Files.size(Path.of("/proc/self/fd/" + reply.descriptor(0))));
            assertEquals(42, reply.data().getLong(Abi.MsgHelloReply.INCARNATION_OFFSET));
            final Path queue = Path.of(ConductorRig.text(reply, Abi.MsgHelloReply.QUEUE_DIR_OFFSET));
            assertTrue(Files.exists(queue.resolve("metadata.cq4t")), queue::toString);
            assertTrue(Files.exists(queue.resolve("19700101F.cq4")), queue::toString);
            final Client client = rig.clients.get(reply.data().getInt(Abi.MsgHelloReply.CLIENT_ID_OFFSET));
            assertEquals(ProcessStatus.pid(), client.pid());
            assertEquals("camera", client.name());
            reply.closeDescriptors();
        }
    }

    @Test
    void shouldRefuseNamesFlagsVersionsAndSecondRegistrations() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            for (final String name : new String[] {"", "  ", "a\nb", "tab\t", "\u202Eevil", "x".repeat(64)}) {
                final Packet hello = ConductorRig.hello("");
                hello.data().putBytes(Abi.MsgHello.NAME_OFFSET, name.getBytes(StandardCharsets.UTF_8));
                hello.length(Abi.MsgHello.SIZE);
                assertEquals(-Errno.EINVAL, ConductorRig.status(ConductorRig.ask(socket, hello)), name);
            }
            final Packet flags = ConductorRig.hello("x");
            flags.data().putInt(Abi.MsgHello.FLAGS_OFFSET, 1);
            assertEquals(-Errno.EINVAL, ConductorRig.status(ConductorRig.ask(socket, flags)));
            assertEquals(0, ConductorRig.status(ConductorRig.ask(socket, ConductorRig.hello("x"))));
            try (SeqPacketSocket second = rig.connect()) {
                final Packet reply = ConductorRig.ask(second, ConductorRig.hello("x"));
                assertEquals(-Errno.EBUSY, ConductorRig.status(reply));
                final Packet version = ConductorRig.hello("x");
                version.data().putInt(Abi.Msg.VERSION_OFFSET, 9 << 16);
                assertEquals(-Errno.EPROTONOSUPPORT, ConductorRig.status(ConductorRig.ask(second, version)));
            }
        }
    }

    private static Packet askFile(final SeqPacketSocket socket, final long cycle) {
        return ConductorRig.ask(socket, fileRequest(cycle));
    }

    private static Packet fileRequest(final long cycle) {
        final Packet request = ConductorRig.message(Abi.MSG_QUEUE_FILE, Abi.MsgQueueFile.SIZE);
        request.data().putLong(Abi.MsgQueueFile.CYCLE_OFFSET, cycle);
        return request;
    }

    @Test
    void shouldLendAClientTheFilesOfItsOwnQueueAndNothingElse() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect();
            SeqPacketSocket stranger = rig.connect()) {
            final Process other = spawn(rig, "wait");   // whose queue has a metadata and a cycle 0, too
            assertTrue(reader(other).readLine().startsWith("0 "));
            final Packet hello = ConductorRig.ask(socket, ConductorRig.hello("camera"));
            final Path queue = Path.of(ConductorRig.text(hello, Abi.MsgHelloReply.QUEUE_DIR_OFFSET));
            hello.closeDescriptors();
            for (final long cycle : new long[] {Abi.QUEUE_METADATA, 0, 0}) {
                final Packet reply = askFile(socket, cycle);
                assertEquals(0, ConductorRig.status(reply), rig::dump);
                assertEquals(cycle, reply.data().getLong(Abi.MsgQueueFileReply.CYCLE_OFFSET));
                assertEquals(1, reply.descriptorCount());
                final String fd = Integer.toString(reply.descriptor(0));
                final Path own = queue.resolve(cycle == 0 ? "19700101F.cq4" : "metadata.cq4t");
                assertTrue(Files.isSameFile(own, Path.of("/proc/self/fd/", fd)), own::toString);
                final String info = Files.readString(Path.of("/proc/self/fdinfo/", fd));
                final int flags = Integer.parseInt(info.replaceAll("(?s).*flags:\\s*0?([0-7]+).*", "$1"), 8);
                assertEquals(2, flags & 3, () -> "not O_RDWR: " + info);
                reply.closeDescriptors();
            }
            for (final long cycle : new long[] {1, 2, -2, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE}) {
                final Packet reply = askFile(socket, cycle);
                assertEquals(-Errno.ENOENT, ConductorRig.status(reply));
                assertEquals(0, reply.descriptorCount());
                assertTrue(ConductorRig.text(reply, Abi.MsgQueueFileReply.TEXT_OFFSET).contains("no cycle " + cycle));
            }
            assertEquals(3, rig.conductor.count(ConductorCounter.QUEUE_FILES), rig::dump);
            assertTrue(stranger.send(fileRequest(0)) > 0);
            assertEquals(SeqPacketSocket.CLOSED, stranger.receive(new Packet(4096)), "it has no queue");
            other.destroyForcibly();
        }
    }

    /** Descriptors in flight count against the daemon's user: a client who reads nothing must not use up that limit. */
    @Test
    void shouldLendNothingToAClientWhoReadsNothing() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            ConductorRig.ask(socket, ConductorRig.hello("camera")).closeDescriptors();
            final int requests = 50;
            for (int i = 0; i < requests; i++) {
                assertTrue(socket.send(fileRequest(0)) > 0, rig::dump);
            }
            // the first reply must be there before it is read: no other request is answered with a file until then
            rig.await("first reply", () -> rig.conductor.count(ConductorCounter.QUEUE_FILES) == 1);
            final Packet open = ConductorRig.taskOpen("camera", 1);
            socket.send(open);
            rig.await("all requests", () -> rig.events.stream().anyMatch(event -> event.startsWith("open ")));
            assertEquals(1, rig.conductor.count(ConductorCounter.QUEUE_FILES), rig::dump);
            final Packet reply = new Packet(4096);
            for (int i = 0; i < requests; i++) {
                assertTrue(socket.receive(reply) > 0);
                assertEquals(i == 0 ? 0 : -Errno.EAGAIN, ConductorRig.status(reply));
                assertEquals(i == 0 ? 1 : 0, reply.descriptorCount());
                reply.closeDescriptors();
            }
            assertTrue(socket.receive(reply) > 0);
            assertEquals(Abi.MSG_TASK_OPEN, reply.data().getInt(Abi.Msg.TYPE_OFFSET));
            final Packet again = askFile(socket, 0);
            assertEquals(1, again.descriptorCount(), "who reads is served again");
            again.closeDescriptors();
        }
    }

    @Test
    void shouldOpenAndCloseTasks() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            ConductorRig.ask(socket, ConductorRig.hello("app"));
            final Packet request = ConductorRig.taskOpen("camera", 70);
            request.data().putLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET, 80_000_000);
            final Packet reply = ConductorRig.ask(socket, request);
            assertEquals(0, ConductorRig.status(reply));
            final int taskId = reply.data().getInt(Abi.MsgTaskReply.TASK_ID_OFFSET);
            assertTrue(taskId > 0);
            assertTrue(rig.events.get(1).contains("gpuPriority=70, gpu=0, optimistic=true, periodNs=80000000, "
                + "deadlineNs=80000000, budgetNs=0"), rig::dump);
            assertTrue(open(socket, ConductorRig.taskOpen("camera", 1)).contains("name is taken"));
            final Packet close = ConductorRig.message(Abi.MSG_TASK_CLOSE, Abi.MsgTaskClose.SIZE);
            close.data().putInt(Abi.MsgTaskClose.TASK_ID_OFFSET, taskId);
            assertEquals(0, ConductorRig.status(ConductorRig.ask(socket, close)));
            assertEquals(-Errno.EINVAL, ConductorRig.status(ConductorRig.ask(socket, close)), "not twice");
            assertNull(open(socket, ConductorRig.taskOpen("camera", 1)));
        }
    }

    @Test
    void shouldNameThingValueAndRemedyWhenATaskIsRefused() throws Exception {
        try (ConductorRig rig = new ConductorRig(AdmissionControl.ALL, 64, 3,
            Set.of(TaskNeed.DEADLINE, TaskNeed.BUDGET));
            SeqPacketSocket socket = rig.connect()) {
            ConductorRig.ask(socket, ConductorRig.hello("app"));
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.PRIORITY_OFFSET, 100), "priority is 100", "1..99");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.FLAGS_OFFSET, 100 << Abi.TASK_BOOST_SHIFT),
                "boost is 100", "1..99");
            refused(socket, 0, p -> p.data().putInt(Abi.MsgTaskOpen.FLAGS_OFFSET, 40 << Abi.TASK_BOOST_SHIFT),
                "boost is 40", "best effort");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.PRIORITY_OFFSET, -1), "4294967295", "1..99");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.GPU_PRIORITY_OFFSET, 100), "gpu_priority is 100");
            refused(socket, 0, p -> p.data().putInt(Abi.MsgTaskOpen.GPU_PRIORITY_OFFSET, 3), "best effort");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.GPU_OFFSET, 2), "gpu is 2; use 0..1, or start the "
                + "daemon with --gpus 3");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.FLAGS_OFFSET, 8), "flags are 0x8");
            refused(socket, 5, p -> p.data().putByte(Abi.MsgTaskOpen.OVERRUN_OFFSET, (byte) 5), "overrun is 5");
            refused(socket, 5, p -> p.data().putShort(Abi.MsgTaskOpen.WEIGHT_OFFSET, (short) -1), "weight is 65535");
            refused(socket, 5, p -> p.data().putInt(Abi.MsgTaskOpen.WINDOW_US_OFFSET, -1), "window is 4294967295000");
            refused(socket, 5, p -> p.data().putLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET, -1), "period is -1 ns");
            refused(socket, 5, p -> {
                p.data().putLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET, 10_000_000);
                p.data().putLong(Abi.MsgTaskOpen.DEADLINE_NS_OFFSET, 20_000_000);
            }, "deadline is 20000000 ns", "at most the period, 10000000 ns");
            refused(socket, 5, p -> p.data().putLong(Abi.MsgTaskOpen.BUDGET_NS_OFFSET, Long.MAX_VALUE), "budget is");
            refused(socket, 5, p -> { }, "goes by deadlines and deadline is 0", "a deadline or a period");
            refused(socket, 5, p -> p.data().putLong(Abi.MsgTaskOpen.PERIOD_NS_OFFSET, 1_000_000),
                "goes by budgets and budget is 0", "the longest time");
            refused(socket, 5, p -> p.data().putByte(Abi.MsgTaskOpen.NAME_OFFSET, (byte) 0xff), "UTF-8");
            for (int i = 0; i < 3; i++) {
                assertNull(open(socket, ConductorRig.taskOpen("t" + i, 0)));
            }
            refused(socket, 0, p -> { }, "user " + ProcessStatus.effectiveUid() + " has 3 tasks");
            assertEquals(18, rig.conductor.count(ConductorCounter.TASKS_REFUSED), rig::dump);
        }
    }

    private static void refused(final SeqPacketSocket socket, final int priority, final Consumer<Packet> change,
        final String... words) {
        final Packet request = ConductorRig.taskOpen("lidar", priority);
        change.accept(request);
        final String text = open(socket, request);
        for (final String word : words) {
            assertTrue(text != null && text.contains(word), () -> "\"" + text + "\" does not say " + word);
        }
    }

    @Test
    void shouldAskAdmissionControlAndServeOthersMeanwhile() throws Exception {
        final CountDownLatch asked = new CountDownLatch(1);
        final CountDownLatch answered = new CountDownLatch(1);
        final AtomicBoolean alone = new AtomicBoolean();
        final AdmissionControl slow = (request, client) -> {
            asked.countDown();
            try {
                if (!answered.await(20, TimeUnit.SECONDS)) {
                    alone.set(true);
                }
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return request.priority() > 50 ? "task \"" + request.name() + "\": not schedulable" : null;
        };
        try (ConductorRig rig = new ConductorRig(slow, 64, 64, Set.of()); SeqPacketSocket socket = rig.connect();
            SeqPacketSocket other = rig.connect()) {
            ConductorRig.ask(socket, ConductorRig.hello("app"));
            socket.send(ConductorRig.taskOpen("high", 60));
            assertTrue(asked.await(30, TimeUnit.SECONDS), rig::dump);
            final Packet admin = ConductorRig.message(Abi.MSG_ADMIN, Abi.MsgAdmin.SIZE);
            assertEquals(0, ConductorRig.status(ConductorRig.ask(other, admin)));
            assertFalse(alone.get(), "others wait for the admission test");
            answered.countDown();
            final Packet reply = new Packet(4096);
            assertTrue(socket.receive(reply) > 0);
            assertEquals(-Abi.ADMISSION_REFUSED, ConductorRig.status(reply));
            assertNull(open(socket, ConductorRig.taskOpen("high", 10)), "a refused name is free again");
        }
    }

    @Test
    void shouldReplyToAdministratorsInSeveralPackets() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            final Packet admin = ConductorRig.message(Abi.MSG_ADMIN, Abi.MsgAdmin.SIZE + 3);
            admin.data().putInt(Abi.MsgAdmin.TEXT_SIZE_OFFSET, 3);
            admin.data().putBytes(Abi.MsgAdmin.SIZE, "big".getBytes(StandardCharsets.UTF_8));
            Packet reply = ConductorRig.ask(socket, admin);
            int bytes = reply.data().getInt(Abi.MsgAdminReply.TEXT_SIZE_OFFSET);
            while (reply.data().getInt(Abi.MsgAdminReply.MORE_OFFSET) == 1) {
                assertTrue(socket.receive(reply) > 0, rig::dump);
                bytes += reply.data().getInt(Abi.MsgAdminReply.TEXT_SIZE_OFFSET);
            }
            assertEquals(1_000_000, bytes);
        }
    }

    /** It has no rate limit here: it is the daemon's own user. */
    @Test
    void shouldAnswerNoCommandOfAUserWithTwoMebibytesOfUnreadAnswers() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            final Packet big = ConductorRig.message(Abi.MSG_ADMIN, Abi.MsgAdmin.SIZE + 3);
            big.data().putInt(Abi.MsgAdmin.TEXT_SIZE_OFFSET, 3);
            big.data().putBytes(Abi.MsgAdmin.SIZE, "big".getBytes(StandardCharsets.UTF_8));
            final Packet small = ConductorRig.message(Abi.MSG_ADMIN, Abi.MsgAdmin.SIZE);
            final List<SeqPacketSocket> deaf = new ArrayList<>();
            for (int i = 0; i < 4; i++) {   // an answer has a megabyte; the kernel keeps a part of it
                assertEquals(0, ConductorRig.status(ConductorRig.ask(socket, small)));
                deaf.add(rig.connect());
                deaf.get(i).send(big);
            }
            rig.await("a refusal", () -> ConductorRig.status(ConductorRig.ask(socket, small)) == -Errno.EAGAIN);
            assertTrue(rig.conductor.count(ConductorCounter.ADMIN_REFUSED) > 0, rig::dump);
            deaf.forEach(SeqPacketSocket::close);
            rig.await("an answer", () -> ConductorRig.status(ConductorRig.ask(socket, small)) == 0);
        }
    }

    @Test
    void shouldTellTheDispatcherOfADeathWithinTenMilliseconds() throws Exception {
        try (ConductorRig rig = new ConductorRig()) {
            Attempts.of(ATTEMPTS, () -> noticesDeaths(rig));
            rig.await("deletion", () -> rig.clientFiles().toFile().list().length == 0);
        }
    }

    private String noticesDeaths(final ConductorRig rig) throws Exception {
        final long[] took = new long[20];
        try (StallProbe machine = new StallProbe()) {
            for (int i = 0; i < took.length; i++) {
                final Process process = spawn(rig, "wait");
                final String[] words = reader(process).readLine().split(" ");
                assertEquals("0", words[0]);
                assertEquals("2", words[2]);
                final int id = Integer.parseInt(words[1]);
                Thread.sleep(5);
                final long killedNs = System.nanoTime();
                ProcessStatus.signal((int) process.pid(), 9);
                rig.await("removal", () -> rig.events.contains("remove " + id + " died"));
                took[i] = rig.removedAtNs.get(id) - killedNs;
            }
            Arrays.sort(took);
            final long medianNs = took[took.length / 2];   // some may meet a machine that stalls
            return medianNs < 10_000_000 + machine.longestNs() ? null : "death noticed after " + medianNs / 1000
                + " us, at most " + took[took.length - 1] / 1000 + " us; the machine itself was late by "
                + machine.longestNs() / 1000 + " us";
        }
    }

    @Test
    void shouldTakeAHangUpOfALivingProcessAsItsEnd() throws Exception {
        try (ConductorRig rig = new ConductorRig()) {
            final Process closing = spawn(rig, "close");
            final Process replaced = spawn(rig, "exec");
            rig.await("hang-ups", () -> rig.events.stream().filter(e -> e.endsWith(" closed")).count() == 2);
            assertTrue(closing.isAlive() && replaced.isAlive());
            closing.destroyForcibly();
            replaced.destroyForcibly();
            rig.await("deletion", () -> rig.clientFiles().toFile().list().length == 0);
        }
    }

    @Test
    void shouldNotStumbleOverAnAnswerToSomebodyWhoHasHungUp() throws Exception {
        final AdmissionControl slow = (request, client) -> {
            try {
                Thread.sleep(2);
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            return "no";
        };
        try (ConductorRig rig = new ConductorRig(slow, 64, 64, Set.of())) {
            for (int i = 0; i < 50; i++) {
                final int removed = i;
                try (SeqPacketSocket socket = rig.connect()) {
                    final Packet reply = ConductorRig.ask(socket, ConductorRig.hello("app"));
                    assertEquals(0, ConductorRig.status(reply), rig::dump);
                    reply.closeDescriptors();
                    socket.send(ConductorRig.taskOpen("one", 60));
                    socket.send(ConductorRig.taskOpen("two", 60));
                }   // the verdicts come while it is waited whether the process has died
                rig.await("removal", () -> rig.failure != null || rig.removedAtNs.size() > removed);
                assertNull(rig.failure, rig::dump);
            }
        }
    }

    @Test
    void shouldNoticeTheDeathOfAParentWhoseChildKeepsTheConnection() throws Exception {
        try (ConductorRig rig = new ConductorRig()) {
            final Process parent = spawn(rig, "fork");
            final BufferedReader out = reader(parent);
            final String id = out.readLine().split(" ")[1];
            final int child = Integer.parseInt(out.readLine());
            parent.destroyForcibly();
            rig.await("removal", () -> rig.events.contains("remove " + id + " died"));
            assertTrue(ProcessStatus.isAlive(child, 0), "the child lives on");
            ProcessStatus.signal(child, 9);
        }
    }

    @Test
    void shouldRefuseMoreClientsThanTheUsersQuota() throws Exception {
        try (ConductorRig rig = new ConductorRig(AdmissionControl.ALL, 2, 64, Set.of())) {
            final Process[] processes = new Process[3];
            final String[] lines = new String[3];
            for (int i = 0; i < 3; i++) {
                processes[i] = spawn(rig, "wait");
                lines[i] = reader(processes[i]).readLine();
            }
            assertTrue(lines[0].startsWith("0 ") && lines[1].startsWith("0 "), lines[1]);
            assertEquals("-" + Errno.EDQUOT + " 0 0", lines[2]);
            for (final Process process : processes) {
                process.destroyForcibly();
            }
        }
    }

    @Test
    void shouldReleaseAPoisonedClientAndNoOther() throws Exception {
        try (ConductorRig rig = new ConductorRig(); SeqPacketSocket socket = rig.connect()) {
            final Process other = spawn(rig, "wait");
            assertTrue(reader(other).readLine().startsWith("0 "));
            final int id = ConductorRig.ask(socket, ConductorRig.hello("app")).data()
                .getInt(Abi.MsgHelloReply.CLIENT_ID_OFFSET);
            rig.conductor.proxy().poisoned(id, Abi.POISON_LENGTH, "forged");
            rig.await("removal", () -> rig.events.contains("remove " + id + " poisoned"));
            assertEquals(SeqPacketSocket.CLOSED, socket.receive(new Packet(4096)));
            assertEquals(1, rig.clients.size(), rig::dump);
            assertTrue(rig.conductor.lastOffence().contains("poison 1: forged"), rig.conductor::lastOffence);
            other.destroyForcibly();
        }
    }

    @Test
    void shouldSurviveRandomPackets() throws Exception {
        final int rounds = Integer.getInteger("gpuseg.fuzz.rounds", 10_000);
        final Random random = new Random(Long.getLong("gpuseg.fuzz.seed", 20261121));
        try (ConductorRig rig = new ConductorRig()) {
            final Process honest = spawn(rig, "wait");
            final int honestId = Integer.parseInt(reader(honest).readLine().split(" ")[1]);
            final Packet reply = new Packet(Abi.MSG_BYTES_MAX);
            SeqPacketSocket socket = rig.connect();
            int sent = 0;
            while (sent < rounds) {
                final Packet packet = randomPacket(random);
                sent++;
                boolean open = socket.send(packet) >= 0;
                // now and then look whether it still talks to us, so that replies do not pile up
                if (open && random.nextInt(4) == 0) {
                    final Packet admin = ConductorRig.message(Abi.MSG_ADMIN, Abi.MsgAdmin.SIZE);
                    open = socket.send(admin) >= 0 && socket.receive(reply) >= 0;
                    reply.closeDescriptors();
                }
                if (!open) {
                    socket.close();
                    socket = rig.connect();
                }
            }
            socket.close();
            assertTrue(rig.conductor.count(ConductorCounter.PROTOCOL_ERRORS) > rounds / 10, rig::dump);
            assertTrue(rig.clients.containsKey(honestId) && honest.isAlive(), rig::dump);
            assertNull(rig.failure);
            assertFalse(rig.events.contains("remove " + honestId + " poisoned"));
            honest.destroyForcibly();
            rig.await("deletion", () -> rig.clientFiles().toFile().list().length == 0);
        }
    }

    private static Packet randomPacket(final Random random) {
        final Packet packet;
        switch (random.nextInt(6)) {
            case 0:
                packet = ConductorRig.hello("fuzz");
                break;
            case 1:
                packet = ConductorRig.taskOpen("task" + random.nextInt(5), random.nextInt(120));
                break;
            case 2:
                packet = ConductorRig.message(Abi.MSG_TASK_CLOSE, Abi.MsgTaskClose.SIZE);
                packet.data().putInt(Abi.MsgTaskClose.TASK_ID_OFFSET, random.nextInt(10));
                break;
            case 3:
                packet = ConductorRig.message(random.nextInt(8), 24 + random.nextInt(200));
                break;
            case 4:
                packet = fileRequest(random.nextInt(4) - 2);
                break;
            default:
                packet = new Packet(Abi.MSG_BYTES_MAX);
                final byte[] noise = new byte[1 + random.nextInt(3000)];
                random.nextBytes(noise);
                packet.data().putBytes(0, noise);
                packet.length(noise.length);
                break;
        }
        for (int n = random.nextInt(3); n > 0; n--) {
            packet.data().putByte(random.nextInt(packet.length()), (byte) random.nextInt());
        }
        if (random.nextInt(20) == 0) {
            packet.addDescriptor(0);
        }
        return packet;
    }
}
