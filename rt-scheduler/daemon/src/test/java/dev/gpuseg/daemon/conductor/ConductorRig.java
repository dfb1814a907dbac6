/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.UnsafeBuffer;

/** A conductor with its threads and a dispatcher that says yes. */
final class ConductorRig implements DispatcherProxy, AutoCloseable {
    /** Of every bounded wait: nothing here is about how fast a busy machine is. */
    private static final int LIMIT_MS = 30_000;
    private static final AtomicInteger NUMBER = new AtomicInteger();

    final RuntimeDirectory directory = RuntimeDirectory.resolve(
        "/dev/shm/gpuseg-ctest-" + ProcessStatus.pid() + "-" + NUMBER.incrementAndGet());
    final Map<Integer, Client> clients = new ConcurrentHashMap<>();
    final List<String> events = new CopyOnWriteArrayList<>();
    final Map<Integer, Long> removedAtNs = new ConcurrentHashMap<>();
    final ConductorAgent conductor;
    private final HousekeepingAgent housekeeping = new HousekeepingAgent();
    private final AtomicInteger nextTask = new AtomicInteger(1);
    private final Thread conductorThread;
    private final Thread housekeepingThread;
    private volatile boolean running = true;
    volatile Throwable failure;

    ConductorRig(final AdmissionControl admission, final int clientsPerUser, final int tasksPerUser,
        final Set<TaskNeed> needs) {
        directory.create();
        conductor = new ConductorAgent(new ConductorConfig(directory, 42, 2, needs,
            ClientQueue.BYTES_MIN, clientsPerUser, tasksPerUser, UserLimits.NONE, -1, pid -> AskingGroup.FREE),
            admission, this, housekeeping);
        conductorThread = start(conductor);
        housekeepingThread = start(housekeeping);
    }

    ConductorRig() {
        this(AdmissionControl.ALL, 64, 1024, Set.of());
    }

    private Thread start(final Agent agent) {
        final Thread thread = new Thread(() -> {
            try {
                while (running) {
                    agent.doWork();
                }
            } catch (final Exception | Error e) {
                failure = e;
            }
        }, agent.roleName());
        thread.start();
        return thread;
    }

    @Override
    public void addClient(final Client client) {
        clients.put(client.clientId(), client);
        events.add("add " + client.clientId());
    }

    @Override
    public void removeClient(final int clientId, final int reason) {
        removedAtNs.put(clientId, System.nanoTime());
        events.add("remove " + clientId + " " + nameOf(reason));
        clients.remove(clientId);
        conductor.proxy().clientRemoved(clientId);
    }

    private static String nameOf(final int reason) {
        return switch (reason) {
            case Removal.CLOSED -> "closed";
            case Removal.DIED -> "died";
            case Removal.POISONED -> "poisoned";
            case Removal.STOPPING -> "stopping";
            default -> throw new IllegalArgumentException("reason " + reason);
        };
    }

    @Override
    public void openTask(final TaskOpen request) {
        events.add("open " + request);
        final int slot = clients.get(request.clientId()).session().allocateSlot();
        conductor.proxy().taskOpened(request.correlation(), 0, nextTask.getAndIncrement(), slot, "");
    }

    @Override
    public void closeTask(final long correlation, final int clientId, final int taskId) {
        events.add("close " + taskId);
        conductor.proxy().taskClosed(correlation, 0, "");
    }

    @Override
    public void admin(final long correlation, final PeerCredentials peer, final AskingGroup group,
        final String json) {
        conductor.proxy().adminReply(correlation, 0, json.startsWith("big") ? "x".repeat(1_000_000) : "{" + json + "}");
    }

    SeqPacketSocket connect() {
        return SeqPacketSocket.connect(directory.socket(), LIMIT_MS);
    }

    static Packet message(final int type, final int size) {
        final Packet packet = new Packet(Abi.MSG_BYTES_MAX);
        Messages.header(packet, type, size, 77, 0);
        return packet;
    }

    static Packet hello(final String name) {
        final Packet packet = message(Abi.MSG_HELLO, Abi.MsgHello.SIZE);
        Messages.text(packet.data(), Abi.MsgHello.NAME_OFFSET, Abi.NAME_BYTES, name);
        return packet;
    }

    static Packet taskOpen(final String name, final int priority) {
        final Packet packet = message(Abi.MSG_TASK_OPEN, Abi.MsgTaskOpen.SIZE);
        packet.data().putInt(Abi.MsgTaskOpen.PRIORITY_OFFSET, priority);
        Messages.text(packet.data(), Abi.MsgTaskOpen.NAME_OFFSET, Abi.NAME_BYTES, name);
        return packet;
    }

    /** Sends and waits for the reply. */
    static Packet ask(final SeqPacketSocket socket, final Packet request) {
        if (socket.send(request) < 0) {
            throw new AssertionError("the conductor has hung up");
        }
        final Packet reply = new Packet(Abi.MSG_BYTES_MAX);
        final int n = socket.receive(reply);
        if (n < 0) {
            throw new AssertionError("no reply: " + n);
        }
        return reply;
    }

    static int status(final Packet reply) {
        return reply.data().getInt(Abi.Msg.STATUS_OFFSET);
    }

    static String text(final Packet reply, final int offset) {
        final UnsafeBuffer data = reply.data();
        int n = 0;
        while (data.getByte(offset + n) != 0) {
            n++;
        }
        final byte[] bytes = new byte[n];
        data.getBytes(offset, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    void await(final String what, final BooleanSupplier condition) throws InterruptedException {
        final long startNs = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - startNs > LIMIT_MS * 1_000_000L) {
                throw new AssertionError(what + " did not happen\n" + dump());
            }
            Thread.sleep(0, 100_000);
        }
    }

    String dump() {
        final StringBuilder text = new StringBuilder("events " + events + "\nfailure " + failure + "\n"
            + conductor.dump());
        for (final ConductorCounter counter : ConductorCounter.values()) {
            text.append(counter).append(' ').append(conductor.count(counter)).append('\n');
        }
        return text.toString();
    }

    Path clientFiles() {
        return directory.clients();
    }

    @Override
    public void close() {
        running = false;
        try {
            conductorThread.join(LIMIT_MS);
            final Thread stop = new Thread(conductor::onClose);
            stop.start();
            stop.join(LIMIT_MS);
            housekeepingThread.join(LIMIT_MS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        housekeeping.onClose();
        RuntimeDirectory.deleteTree(directory.root());
        if (failure != null) {
            throw new AssertionError("an agent failed", failure);
        }
    }
}
