/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.daemon.cgroup.GroupRule;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PeerProcess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Connections over a real socket; what packets say is left to a fake. */
@Timeout(60)
class RegistrationSocketTest {
    private static final int LISTENER = 1;
    private static final int LIMIT_MS = 30_000;
    /** Of a client's look for a reply that this thread has yet to send. */
    private static final int LOOK_MS = 10;
    private static final int LOOKS_MAX = 3_000;
    private static final int SIZE = 64;
    private static final int CONNECTIONS_PER_USER = 4;
    private static final int SERVED = 65_531;

    private final class Fake implements RegistrationSocket.Peers {
        @Override
        public void onPacket(final Connection connection, final Packet packet) {
            told.add("packet " + connection.id + " " + packet.data().getInt(0));
        }

        @Override
        public void onHangUp(final Connection connection) {
            told.add("hung up " + connection.id);
        }

        @Override
        public void onOffence(final Connection connection, final String text) {
            told.add("offence " + connection.id + " " + text);
        }

        @Override
        public void onAcceptError() {
            told.add("accept error");
        }

        @Override
        public void onTooMany() {
            told.add("too many");
        }

        @Override
        public void onUnread(final Connection connection, final String text) {
            told.add("unread " + connection.id);
            socket.close(connection);
        }

        @Override
        public void onClosed(final Connection connection) {
            told.add("closed " + connection.id);
        }
    }

    @TempDir
    private Path directory;
    private final List<String> told = new ArrayList<>();
    private final Epoll epoll = new Epoll(8);
    private final List<SeqPacketSocket> clients = new ArrayList<>();
    private RegistrationSocket socket;

    private void listen() {
        listen(peer -> null, -1);
    }

    private void listen(final Function<PeerProcess, Object> owners, final int user) {
        socket = new RegistrationSocket(directory.resolve("gpuseg.sock"), user, epoll, LISTENER, id -> LISTENER + id,
            CONNECTIONS_PER_USER, owners, new Fake());
    }

    @AfterEach
    void close() {
        clients.forEach(SeqPacketSocket::close);
        if (Files.exists(directory.resolve("gpuseg.sock"))) {
            socket.stopListening();
            socket.close();
        }
        epoll.close();
    }

    private SeqPacketSocket connect() {
        final SeqPacketSocket client = SeqPacketSocket.connect(directory.resolve("gpuseg.sock"), LOOK_MS);
        clients.add(client);
        return client;
    }

    /** A turn of the conductor's loop. */
    private void turn(final int timeoutMs) {
        final int n = epoll.await(timeoutMs);
        for (int i = 0; i < n; i++) {
            if (epoll.token(i) == LISTENER) {
                socket.accept();
            } else {
                socket.serve(epoll.token(i) - LISTENER, epoll.ready(i));
            }
        }
    }

    private static Packet packet(final int number) {
        final Packet packet = new Packet(Abi.MSG_BYTES_MAX);
        packet.data().setMemory(0, SIZE, (byte) 0);
        packet.data().putInt(0, number);
        packet.length(SIZE);
        return packet;
    }

    private Connection accepted() {
        turn(LIMIT_MS);
        return socket.connections().get(0);
    }

    private static void register(final Connection connection) {
        connection.client = new RegisteredClient(new Client(1, 1, 0, 0, 1, "client", null, null, null),
            connection);
    }

    @Test
    void shouldDropAPeerThatDoesNotReadItsReplies() {
        listen();
        connect();
        final Connection deaf = accepted();
        for (int i = 0; told.isEmpty() && i < 1_000_000; i++) {
            socket.send(deaf, packet(i));
        }
        assertEquals(List.of("offence 1 " + RegistrationSocket.UNSENT_MAX + " replies are unread; read them"), told);
    }

    @Test
    void shouldDeliverRepliesThatHadToWaitInTheirOrder() {
        listen();
        final SeqPacketSocket client = connect();
        final Connection connection = accepted();
        int sent = 0;
        while (connection.unsent.size() < 10) {
            socket.send(connection, packet(sent++));
        }
        final Packet received = new Packet(Abi.MSG_BYTES_MAX);
        int looks = 0;
        for (int expected = 0; expected < sent;) {
            if (client.receive(received) == SeqPacketSocket.NOTHING) {
                assertTrue(++looks < LOOKS_MAX, "reply " + expected + " of " + sent + " does not come");
                turn(LOOK_MS);
            } else {
                assertEquals(expected++, received.data().getInt(0));
            }
        }
        assertEquals(0, connection.unsent.size());
        assertEquals(List.of(), told);
    }

    @Test
    void shouldReadNoRequestOfAPeerWithUnreadReplies() {
        listen();
        final SeqPacketSocket client = connect();
        final Connection connection = accepted();
        int sent = 0;
        while (connection.unsent.isEmpty()) {
            socket.send(connection, packet(sent++));
        }
        client.send(packet(1));
        turn(LOOK_MS);
        assertEquals(List.of(), told, "the request waits in the kernel");
        final Packet received = new Packet(Abi.MSG_BYTES_MAX);
        for (int looks = 0; told.isEmpty() && looks < LOOKS_MAX;) {
            if (client.receive(received) == SeqPacketSocket.NOTHING) {
                looks++;
                turn(LOOK_MS);
            }
        }
        assertEquals(List.of("packet 1 1"), told);
        assertEquals(0, socket.unreadOf(connection.peer.uid()));
    }

    @Test
    void shouldNoticeTheEndOfAPeerWithUnreadReplies() {
        listen();
        final SeqPacketSocket client = connect();
        final Connection connection = accepted();
        for (int i = 0; connection.unsent.isEmpty(); i++) {
            socket.send(connection, packet(i));
        }
        client.close();
        clients.clear();
        turn(LIMIT_MS);
        assertEquals(List.of("closed 1"), told);
        assertEquals(0, socket.unreadOf(connection.peer.uid()));
    }

    @Test
    void shouldBoundTheUnreadBytesOfAUserOverAllConnections() {
        listen();
        final List<Connection> all = new ArrayList<>();
        final Packet large = new Packet(Abi.MSG_BYTES_MAX);
        large.length(Abi.MSG_BYTES_MAX);
        for (int i = 0; i < 3; i++) {
            connect();
            turn(LIMIT_MS);
        }
        all.addAll(socket.connections());
        for (int i = 0; told.isEmpty() && i < 10_000; i++) {
            socket.send(all.get(i % all.size()), large);
            assertTrue(socket.unreadOf(all.get(0).peer.uid()) <= UnreadReplies.USER_BYTES, told::toString);
        }
        assertEquals(2, told.size(), told::toString);
        assertTrue(told.get(0).startsWith("unread ") && told.get(1).startsWith("closed "), told::toString);
        assertEquals(2, socket.connections().size(), "one goes, the others stay");
    }

    @Test
    void shouldTakeABoundedNumberOfPacketsOfEachPeerInATurn() {
        listen();
        final SeqPacketSocket busy = connect();
        for (int i = 0; i < RegistrationSocket.PACKETS_PER_TURN + 1; i++) {
            busy.send(packet(i));
        }
        accepted();
        turn(LIMIT_MS);
        assertEquals(RegistrationSocket.PACKETS_PER_TURN, told.size());
        assertEquals("packet 1 0", told.get(0));
        turn(LIMIT_MS);
        assertEquals(RegistrationSocket.PACKETS_PER_TURN + 1, told.size());
    }

    @Test
    void shouldCloseAConnectionWithoutAClientWhenThePeerHangsUp() {
        listen();
        final SeqPacketSocket client = connect();
        accepted();
        client.close();
        clients.clear();
        turn(LIMIT_MS);
        assertEquals(List.of("closed 1"), told);
        assertEquals(List.of(), socket.connections());
        assertFalse(socket.hasHungUp());
    }

    @Test
    void shouldGiveADeathTimeToShowBeforeAHangUpCountsAsOne() {
        listen();
        final SeqPacketSocket client = connect();
        final Connection connection = accepted();
        register(connection);
        client.close();
        clients.clear();
        turn(LIMIT_MS);
        assertTrue(socket.hasHungUp());
        socket.judgeHangUps(connection.hungUpUntilNs - 1);
        assertEquals(List.of(), told);
        socket.send(connection, packet(1));
        assertEquals(0, connection.unsent.size(), "no peer reads it");
        socket.judgeHangUps(connection.hungUpUntilNs);
        assertEquals(List.of("hung up 1"), told);
        assertFalse(socket.hasHungUp());
    }

    @Test
    void shouldNotJudgeAHangUpOfAClientThatIsBeingRemoved() {
        listen();
        final SeqPacketSocket client = connect();
        final Connection connection = accepted();
        register(connection);
        client.close();
        clients.clear();
        turn(LIMIT_MS);
        connection.client.removing = true;   // it turned out to be dead
        socket.judgeHangUps(connection.hungUpUntilNs);
        assertEquals(List.of(), told);
        assertFalse(socket.hasHungUp());
    }

    @Test
    void shouldOpenTheSocketToOneUserBesidesItsGroupAndToNoOther() throws IOException {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "to give files to others needs root");
        listen();
        final Path path = directory.resolve("gpuseg.sock");
        final Object group = Files.getAttribute(path, "unix:gid");
        assertEquals(0, Files.getAttribute(path, "unix:uid"));
        socket.stopListening();
        socket.close();
        listen(peer -> null, SERVED);
        assertEquals(SERVED, Files.getAttribute(path, "unix:uid"));
        assertEquals(group, Files.getAttribute(path, "unix:gid"));
        assertEquals("rw-rw----", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
    }

    @Test
    void shouldSayWhoIsAtTheOtherEnd() {
        listen();
        connect();
        assertEquals(ProcessStatus.pid(), accepted().peer.pid());
    }

    @Test
    void shouldBoundTheConnectionsOfAnOwnerAndCountThemDown() {
        listen(peer -> "/pod/**", -1);
        for (int i = 0; i < CONNECTIONS_PER_USER + 1; i++) {
            connect();
        }
        turn(LIMIT_MS);
        assertEquals(List.of("too many"), told);
        socket.close(socket.connections().get(0));
        connect();
        turn(LIMIT_MS);
        assertEquals(CONNECTIONS_PER_USER, socket.connections().size());
    }

    /** Root of a container connects, ends, and waits until a process of the machine has its pid. */
    @Test
    void shouldNotGiveAPeerTheRightsOfTheProcessThatHasItsPidNow() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "to choose a pid needs root");
        listen();
        final AskingGroup unknown = new AskingGroup("", new GroupRule("/(unknown)", 100, 0, 0, false, 0));
        final TaskRights rights = new TaskRights(UserLimits.NONE, 0, pid -> pid == 0 ? unknown : AskingGroup.FREE);
        final Process asks = start("gpuseg-ask", "status", "--dir", directory.toString());
        final Connection connection = accepted();
        final int pid = (int) asks.pid();
        assertEquals(AskingGroup.FREE, rights.controlGroup(connection.process));
        assertTrue(asks.destroyForcibly().waitFor(LIMIT_MS, TimeUnit.MILLISECONDS));
        assertEquals(unknown, rights.controlGroup(connection.process), "it has ended");
        final Process other = start("gpuseg-as-pid", Integer.toString(pid), "/bin/sleep", "60");
        try {
            for (int looks = 0; !ProcessStatus.isAlive(pid, 0); looks++) {
                assertTrue(looks < LOOKS_MAX && other.isAlive(), "pid " + pid + " is not to be had");
                Thread.sleep(LOOK_MS);
            }
            assertEquals(unknown, rights.controlGroup(connection.process), "its pid is in use");
        } finally {
            other.destroyForcibly();
        }
    }

    private static Process start(final String program, final String... arguments) throws IOException {
        final List<String> command = new ArrayList<>(List.of(arguments));
        command.add(0, NativePrograms.named(program).toString());
        return new ProcessBuilder(command).inheritIO().start();
    }

    @Test
    void shouldDeleteTheSocketAndCloseAllWhenItStops() {
        listen();
        connect();
        accepted();
        socket.stopListening();
        assertEquals(1, socket.connections().size(), "those there are go on");
        socket.close();
        assertEquals(List.of("closed 1"), told);
        assertFalse(Files.exists(directory.resolve("gpuseg.sock")));
    }
}
