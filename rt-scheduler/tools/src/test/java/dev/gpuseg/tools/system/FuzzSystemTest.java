/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * A whole daemon under clients that send and write anything, next to an honest one that must not notice. The seed is
 * fixed; a long run of another: {@code mvn verify -Dtest=FuzzSystemTest -Dgpuseg.fuzz.rounds=1000000
 * -Dgpuseg.fuzz.seed=7}.
 */
@Timeout(value = 24, unit = TimeUnit.HOURS)
@Tag("long")
class FuzzSystemTest {
    private static final int ROUNDS = Integer.getInteger("gpuseg.fuzz.rounds", 6_000);
    private static final long SEED = Long.getLong("gpuseg.fuzz.seed", 20261121);
    private static final int ROUNDS_PER_PROCESS = 1_000;
    private static final ByteOrder LE = ByteOrder.LITTLE_ENDIAN;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    @Test
    void shouldKeepServingWhileProcessesScribbleOverWhatTheyShare() throws Exception {
        rig.gpu();
        final Child daemon = rig.with("queue-size: 256KiB").daemon();
        final Child honest = rig.task("honest", 90, "20ms", "gpu:0ms+1ms", "4s");
        final int processes = Math.max(1, ROUNDS / ROUNDS_PER_PROCESS);
        for (int i = 0; i < processes; i++) {
            final Child fuzz = rig.start("fuzz" + i,
                TaskClient.command(rig, "fuzz:" + (SEED + i) + ":" + ROUNDS_PER_PROCESS));
            fuzz.await("mappings", 20);
            // what it wrote may well stop itself
            SystemRig.awaitEnd(fuzz, 3_000);
            fuzz.close();
            assertTrue(daemon.isAlive(), daemon.said());
        }
        final JsonNode figures = SystemRig.summary(honest, 30);
        assertEquals(200, figures.path("jobs").asInt());
        assertEquals(0, figures.path("timeouts").asInt());
        SystemRig.await("every client is gone", 20_000, () -> rig.status().path("tasks").isEmpty());
        assertEquals(0, rig.counter("cycle_errors"));
        SystemRig.await("nothing is held", 20_000, () -> rig.held() == 0);
        System.out.println("fuzz: " + processes + " processes, " + rig.counter("poisoned") + " poisoned");
        assertTrue(rig.counter("poisoned") > 0, "the scribbling was noticed");
        daemon.terminate();
        assertEquals(0, daemon.awaitExit(20), daemon.said());
    }

    @Test
    void shouldAnswerOrRefuseEveryAdministrativeRequest() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final Random random = new Random(SEED);
        final Packet packet = new Packet(Abi.MSG_BYTES_MAX);
        SeqPacketSocket socket = SeqPacketSocket.connect(rig.directory().socket(), 5_000);
        for (int i = 0; i < Math.max(2_000, ROUNDS / 10); i++) {
            final byte[] text = json(random);
            packet.data().setMemory(0, Abi.MsgAdmin.SIZE, (byte) 0);
            packet.data().putInt(Abi.Msg.MAGIC_OFFSET, Abi.MSG_MAGIC, LE);
            packet.data().putInt(Abi.Msg.VERSION_OFFSET, Abi.ABI_VERSION, LE);
            packet.data().putInt(Abi.Msg.TYPE_OFFSET, Abi.MSG_ADMIN, LE);
            packet.data().putInt(Abi.Msg.SIZE_OFFSET, Abi.MsgAdmin.SIZE + text.length, LE);
            packet.data().putInt(Abi.MsgAdmin.TEXT_SIZE_OFFSET, text.length, LE);
            packet.data().putBytes(Abi.MsgAdmin.SIZE, text);
            packet.length(Abi.MsgAdmin.SIZE + text.length);
            final boolean answered = socket.send(packet) > 0 && socket.receive(packet) >= Abi.MsgAdminReply.SIZE;
            if (!answered) {   // not UTF-8: hung up
                socket.close();
                socket = SeqPacketSocket.connect(rig.directory().socket(), 5_000);
            }
        }
        socket.close();
        assertTrue(daemon.isAlive(), daemon.said());
        assertEquals(0, rig.counter("cycle_errors"));
        assertTrue(rig.counter("conductor_admin_requests") > 1_000);
    }

    /** Commands as they should be, some with a changed character. Never one that stops the daemon. */
    private static byte[] json(final Random random) {
        final String[] texts = {"{\"command\":\"status\"}",
            "{\"command\":\"hint\",\"task\":\"" + random.nextInt(10) + "\",\"priority\":" + random.nextInt(200) + "}",
            "{\"command\":\"policy\",\"policy\":\"" + (random.nextBoolean() ? "fp" : "edf") + "\"}", "{}", "[]",
            "{\"command\":{\"command\":[]}}", "{\"command\":\"hint\",\"task\":99999999999,\"priority\":1e9}",
            "[".repeat(1 + random.nextInt(5_000)), "\"" + "x".repeat(random.nextInt(3_000)) + "\""};
        final byte[] text = texts[random.nextInt(texts.length)].getBytes(StandardCharsets.UTF_8);
        for (int n = random.nextInt(3); n > 0; n--) {
            text[random.nextInt(text.length)] = (byte) random.nextInt();
        }
        return text;
    }
}
