/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.QueueTemplate;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Registers clients: makes their sessions and queues, validates requests, has them admitted, and notices when a
 * client's process dies. Everything that a client sends is judged here; what reaches the dispatcher is in range.
 * Connections are the {@link RegistrationSocket}'s.
 *
 * <p>Runs on a thread of its own and sleeps in {@code epoll_wait}; {@link #doWork} returns at least every 100 ms.
 * Nothing that may take long runs on it: rolling is the {@link HousekeepingAgent}'s, admission tests have their own
 * thread.
 */
public final class ConductorAgent implements Agent {
    private static final int IDLE_MS = 100;
    private static final int PENDING_MAX = 64;
    private static final int ADMIN_CHUNK = 32 * 1024;
    /** Of one user besides its clients': what asks for the status. */
    private static final int OTHER_CONNECTIONS_PER_USER = 64;
    private static final long STOP_LIMIT_NS = 2_000_000_000L;

    private static final int TOKEN_LISTENER = 0;
    private static final int TOKEN_WAKE = 1;
    private static final int TOKEN_CONNECTION = 2;
    private static final int TOKEN_PROCESS = 3;
    private static final int TOKEN_BITS = 2;

    private final ConductorConfig config;
    private final AdmissionControl admission;
    private final DispatcherProxy dispatcher;
    private final HousekeepingAgent housekeeping;
    private final QueueTemplate template;
    private final RegistrationSocket socket;
    private final Epoll epoll = new Epoll(64);
    private final EventFd wake = new EventFd();
    private final QueuedConductorProxy proxy = new QueuedConductorProxy(wake, new Answers());
    private final ExecutorService admissionThread;
    private final Packet reply = new Packet(Abi.MSG_BYTES_MAX);
    private final Map<Integer, RegisteredClient> clients = new HashMap<>();
    private final Map<Long, PendingRequest> requests = new HashMap<>();
    private final AdminQueue commands = new AdminQueue();
    private final boolean[] clientIds = new boolean[Abi.CLIENTS_MAX + 1];
    private final AtomicLongArray counters = new AtomicLongArray(ConductorCounter.values().length);
    private final int pid = ProcessStatus.pid();
    private final int uid = ProcessStatus.effectiveUid();
    private final TaskRights rights;
    private long nextCorrelation = 1;
    private int nextClientId = 1;
    private volatile String lastOffence = "";
    private boolean stopping;
    // what an honest start of 64 programs needs fits into the burst; the rest bounds what one user can cost the others
    private final RateLimit hellos = new RateLimit(256, 20);
    private final RateLimit opens = new RateLimit(2048, 100);
    private final RateLimit admins = new RateLimit(50, 20);
    // two at a registration and one for each cycle that is filled
    private final RateLimit files = new RateLimit(1024, 200);

    /**
     * Listens from now on; connections are served once an agent runner calls {@link #doWork}.
     *
     * @param config       settings; the directory exists, is claimed, and holds nothing of another daemon
     * @param admission    judges tasks
     * @param dispatcher   where clients and requests go
     * @param housekeeping looks after the queues; run by a runner of its own, closed after this agent
     */
    public ConductorAgent(final ConductorConfig config, final AdmissionControl admission,
        final DispatcherProxy dispatcher, final HousekeepingAgent housekeeping) {
        this.config = config;
        rights = new TaskRights(config.limits(), uid, config.groups());
        this.admission = admission;
        this.dispatcher = dispatcher;
        this.housekeeping = housekeeping;
        final RuntimeDirectory directory = config.directory();
        template = QueueTemplate.create(directory.template(), config.queueBytes());
        warmUp();
        socket = new RegistrationSocket(directory.socket(), config.servedUser(), epoll, TOKEN_LISTENER,
            id -> token(TOKEN_CONNECTION, id), OTHER_CONNECTIONS_PER_USER
            + (int) Math.min(Abi.CLIENTS_MAX, config.limits().most(Limit.CLIENTS, config.clientsPerUser())),
            rights::owner, new Requests());
        epoll.add(wake.fd(), Epoll.IN, TOKEN_WAKE);
        admissionThread = Executors.newSingleThreadExecutor(task -> {
            final Thread thread = new Thread(task, "gpuseg-admission");
            thread.setDaemon(true);
            return thread;
        });
    }

    /** Loads all classes that a registration needs; the first would otherwise take a second. */
    private void warmUp() {
        final Path path = config.directory().client(0, pid);
        RuntimeDirectory.deleteTree(path);
        try (ScratchTree scratch = new ScratchTree(path);
            Session session = Session.create(0, config.incarnationNs())) {
            ClientQueue.create(template, scratch.path(), 0, ProcessStatus.effectiveUid(),
                ProcessStatus.effectiveGid(), pid, session, () -> { }).close();
        }
    }

    /** Where the dispatcher sends its answers. Any thread. */
    public ConductorProxy proxy() {
        return proxy;
    }

    /** A counter's value. Any thread. */
    public long count(final ConductorCounter counter) {
        return counters.get(counter.ordinal());
    }

    private void increment(final ConductorCounter counter) {
        counters.lazySet(counter.ordinal(), counters.get(counter.ordinal()) + 1);
    }

    /** Who was dropped last, and why: a malformed packet or a poisoned queue; empty if nobody was. Any thread. */
    public String lastOffence() {
        return lastOffence;
    }

    /** For messages of failed tests; not synchronised with the agent. */
    String dump() {
        final StringBuilder text = new StringBuilder();
        for (final Connection connection : socket.connections()) {
            text.append("connection ").append(connection.id).append(" fd ").append(connection.socket.fd())
                .append(" client ").append(connection.client == null ? 0 : connection.client.client.clientId())
                .append(" pending ").append(connection.pending).append(" unsent ").append(connection.unsent.size())
                .append(" hung up ").append(connection.hungUpUntilNs).append('\n');
        }
        return text.append("clients ").append(clients.keySet()).append(" requests ").append(requests).append('\n')
            .toString();
    }

    @Override
    public String roleName() {
        return "gpuseg-conductor";
    }

    @Override
    public int doWork() {
        final int n = epoll.await(timeoutMs());
        for (int i = 0; i < n; i++) {
            final long token = epoll.token(i);
            final long id = token >>> TOKEN_BITS;
            switch ((int) (token & (1 << TOKEN_BITS) - 1)) {
                case TOKEN_LISTENER:
                    socket.accept();
                    break;
                case TOKEN_WAKE:
                    wake.drain();
                    break;
                case TOKEN_CONNECTION:
                    socket.serve(id, epoll.ready(i));
                    break;
                case TOKEN_PROCESS:
                    processDied(clients.get((int) id));
                    break;
                default:
                    throw new IllegalStateException("epoll token " + token);
            }
        }
        final int commands = proxy.drain();
        socket.look();
        socket.judgeHangUps(System.nanoTime());
        return n + commands;
    }

    private int timeoutMs() {
        return socket.hasHungUp() ? 1 : IDLE_MS;
    }

    private static long token(final int kind, final long id) {
        return id << TOKEN_BITS | kind;
    }

    private void receive(final Connection connection, final Packet packet) {
        final String malformed = Messages.malformed(packet);
        if (malformed != null) {
            packet.closeDescriptors();
            protocolError(connection, malformed);
            return;
        }
        final UnsafeBuffer data = packet.data();
        final int type = data.getInt(Abi.Msg.TYPE_OFFSET);
        final int seq = data.getInt(Abi.Msg.SEQ_OFFSET);
        if (Messages.version(packet) != Abi.ABI_MAJOR) {
            if (connection.client != null) {
                protocolError(connection, "version " + Messages.version(packet) + " after HELLO");
                return;
            }
            refuseHello(connection, seq, Errno.EPROTONOSUPPORT, "the application was built for version "
                + Messages.version(packet) + " of the interface, this daemon speaks " + Abi.ABI_MAJOR
                + "; install matching versions");
            socket.close(connection);
            return;
        }
        if (connection.pending >= PENDING_MAX) {
            protocolError(connection, PENDING_MAX + " requests are unanswered; wait for replies");
            return;
        }
        switch (type) {
            case Abi.MSG_HELLO:
                hello(connection, seq, data);
                break;
            case Abi.MSG_TASK_OPEN:
                taskOpen(connection, seq, data);
                break;
            case Abi.MSG_TASK_CLOSE:
                taskClose(connection, seq, data);
                break;
            case Abi.MSG_QUEUE_FILE:
                queueFile(connection, seq, data);
                break;
            case Abi.MSG_ADMIN:
                admin(connection, seq, packet);
                break;
            default:
                throw new IllegalStateException("message type " + type);
        }
    }

    private void hello(final Connection connection, final int seq, final UnsafeBuffer data) {
        if (connection.client != null) {
            protocolError(connection, "second HELLO on one connection");
            return;
        }
        final PeerCredentials peer = connection.peer;
        if (data.getInt(Abi.MsgHello.FLAGS_OFFSET) != 0 || data.getInt(Abi.MsgHello.RESERVED_OFFSET) != 0) {
            refuseHello(connection, seq, Errno.EINVAL, "flags and reserved must be 0; this daemon knows none");
            return;
        }
        if (peer.pid() <= 0) {   // without it no context is found, and no death noticed
            refuseHello(connection, seq, Errno.EPERM, "the daemon does not see this process: its PID namespace is "
                + "another; start the daemon's container with --pid=host");
            return;
        }
        if (asksTooOften(hellos, peer)) {
            refuseHello(connection, seq, Errno.EAGAIN, tooOften(peer, "registers processes", hellos));
            return;
        }
        final String name = Messages.name(data, Abi.MsgHello.NAME_OFFSET);
        if (name == null) {
            refuseHello(connection, seq, Errno.EINVAL,
                "the application's name must be 1..63 bytes of printable UTF-8; choose another");
            return;
        }
        int ofUser = 0;
        for (final RegisteredClient other : clients.values()) {
            if (other.client.pid() == peer.pid() && !other.removing && other.connection.hungUpUntilNs != 0) {
                increment(ConductorCounter.CLIENTS_CLOSED); // it lives, as this shows, and has left in order
                remove(other, Removal.CLOSED);
            }
            if (other.client.pid() == peer.pid() && !other.removing) {
                refuseHello(connection, seq, Errno.EBUSY, "process " + peer.pid()
                    + " is registered already; use one connection per process");
                return;
            }
            ofUser += other.client.uid() == peer.uid() ? 1 : 0;
        }
        final UserLimits.Bound most = rights.quota(Limit.CLIENTS, connection.process, config.clientsPerUser());
        if (ofUser >= most.value()) {
            refuseHello(connection, seq, Errno.EDQUOT, "user " + peer.uid() + " has " + ofUser + " clients; "
                + most.describe(peer.uid(), ofUser + 1) + "; close one");
            return;
        }
        final int clientId = freeClientId();
        if (clientId == 0) {
            refuseHello(connection, seq, Errno.EDQUOT, "the daemon has " + Abi.CLIENTS_MAX
                + " clients, the most it can serve; close one");
            return;
        }
        final String refusal = dispatcher.refusal(peer.pid());
        if (refusal != null) {
            refuseHello(connection, seq, Errno.EDQUOT, refusal);
            return;
        }
        register(connection, seq, name, clientId);
    }

    private int freeClientId() {
        for (int i = 0; i < Abi.CLIENTS_MAX; i++) {
            final int id = nextClientId;
            nextClientId = nextClientId % Abi.CLIENTS_MAX + 1;
            if (!clientIds[id]) {
                return id;
            }
        }
        return 0;
    }

    private void register(final Connection connection, final int seq, final String name, final int clientId) {
        final PeerCredentials peer = connection.peer;
        final long startTicks = ProcessStatus.startTicks(peer.pid());
        if (connection.process.handle() == null || connection.process.handle().isDead()) {   // may be another's start
            refuseHello(connection, seq, Errno.ESRCH, "process " + peer.pid() + " has connected and ended; connect "
                + "from the process that uses the GPU");
            return;
        }
        final Path directory = config.directory().client(clientId, peer.pid());
        Session session = null;
        EventFd doorbell = null;
        ClientQueue queue = null;
        try {
            RuntimeDirectory.deleteTree(directory);
            session = Session.create(clientId, config.incarnationNs());
            doorbell = new EventFd();
            queue = ClientQueue.create(template, directory, clientId, peer.uid(), peer.gid(), pid, session,
                housekeeping::wake);
            epoll.add(connection.process.handle().fd(), Epoll.IN, token(TOKEN_PROCESS, clientId));
        } catch (final SystemCallException | UncheckedIOException | IllegalStateException e) {
            closeAll(queue, session, doorbell);
            final int errno = e instanceof SystemCallException ? ((SystemCallException) e).errno() : Errno.ENOSPC;
            refuseHello(connection, seq, errno, e.getMessage());
            return;
        }
        final Client client = new Client(clientId, peer.pid(), peer.uid(), peer.gid(),
            startTicks, name, session, queue, doorbell,
            rights.quota(Limit.RECORDS, connection.process, Long.MAX_VALUE).value());
        clientIds[clientId] = true;
        connection.client = new RegisteredClient(client, connection);
        clients.put(clientId, connection.client);
        increment(ConductorCounter.CLIENTS_OPENED);
        housekeeping.add(client);
        dispatcher.addClient(client);
        helloReply(seq, 0, clientId, queue.directory().toString(), "");
        reply.addDescriptor(session.fd());
        reply.addDescriptor(doorbell.fd());
        // a fresh connection has room for one packet; one that has not is not listening
        if (connection.socket.send(reply) < 0) {
            protocolError(connection, "the reply to HELLO cannot be delivered");
        }
    }

    private void closeAll(final AutoCloseable... parts) {
        for (final AutoCloseable part : parts) {
            if (part != null) {
                try {
                    part.close();
                } catch (final Exception e) {
                    increment(ConductorCounter.CLEANUP_ERRORS);
                }
            }
        }
    }

    private void refuseHello(final Connection connection, final int seq, final int errno, final String text) {
        increment(ConductorCounter.CLIENTS_REFUSED);
        helloReply(seq, -errno, 0, "", text);
        socket.send(connection, reply);
    }

    private void helloReply(final int seq, final int status, final int clientId, final String queue,
        final String text) {
        Messages.header(reply, Abi.MSG_HELLO, Abi.MsgHelloReply.SIZE, seq, status);
        final UnsafeBuffer data = reply.data();
        data.putInt(Abi.MsgHelloReply.CLIENT_ID_OFFSET, clientId);
        data.putInt(Abi.MsgHelloReply.SESSION_SIZE_OFFSET, Abi.SESSION_BYTES);
        data.putLong(Abi.MsgHelloReply.INCARNATION_OFFSET, config.incarnationNs());
        Messages.text(data, Abi.MsgHelloReply.QUEUE_DIR_OFFSET, Abi.PATH_BYTES, queue);
        Messages.text(data, Abi.MsgHelloReply.STATUS_PATH_OFFSET, Abi.PATH_BYTES,
            config.directory().status().toString());
        Messages.text(data, Abi.MsgHelloReply.TEXT_OFFSET, Abi.TEXT_BYTES, text);
    }

    private void taskOpen(final Connection connection, final int seq, final UnsafeBuffer data) {
        final RegisteredClient owner = connection.client;
        if (owner == null) {
            protocolError(connection, "TASK_OPEN before HELLO");
            return;
        }
        if (asksTooOften(opens, connection.peer)) {
            refuseTask(connection, Abi.MSG_TASK_OPEN, seq, Errno.EAGAIN,
                tooOften(connection.peer, "opens tasks", opens));
            return;
        }
        final String name = Messages.name(data, Abi.MsgTaskOpen.NAME_OFFSET);
        String refusal = TaskRules.refuse(data, name, owner, config);
        refusal = refusal != null ? refusal : tooManyTasks(name, connection);
        if (refusal != null) {
            refuseTask(connection, Abi.MSG_TASK_OPEN, seq, Errno.EINVAL, refusal);
            return;
        }
        final long correlation = nextCorrelation++;
        final TaskOpen asked = TaskRules.request(data, correlation, owner.client.clientId(), name);
        final TaskRights.Verdict allowed = rights.judge(asked, connection.process, loadOfUser(owner.client.uid()));
        if (allowed.refusal() != null) {
            increment(ConductorCounter.LIMITS_REFUSED);
            refuseTask(connection, Abi.MSG_TASK_OPEN, seq, Errno.EPERM, "task \"" + name + "\": "
                + allowed.refusal());
            return;
        }
        final TaskOpen request = allowed.request();
        owner.loads.put(name, TaskRights.load(asked));   // not with the budget that it has by default
        connection.pending++;
        requests.put(correlation, new PendingRequest(connection, Abi.MSG_TASK_OPEN, seq, name, 0, request));
        admissionThread.execute(() -> {
            String verdict;
            try {
                verdict = admission.refuse(request, owner.client);
            } catch (final RuntimeException e) {
                verdict = "task \"" + name + "\": the admission test failed: " + e;
            }
            final String refused = verdict;
            proxy.execute(() -> admitted(request, refused));
        });
    }

    private String tooManyTasks(final String name, final Connection connection) {
        final Client client = connection.client.client;
        int tasks = 0;
        for (final RegisteredClient other : clients.values()) {
            tasks += other.client.uid() == client.uid() ? other.loads.size() : 0;
        }
        final UserLimits.Bound most = rights.quota(Limit.TASKS, connection.process, config.tasksPerUser());
        return tasks < most.value() ? null : "task \"" + name + "\": user " + client.uid() + " has " + tasks
            + " tasks; " + most.describe(client.uid(), tasks + 1) + "; close one";
    }

    private long loadOfUser(final int user) {
        long load = 0;
        for (final RegisteredClient client : clients.values()) {
            if (client.client.uid() == user) {
                load += client.loads.values().stream().mapToLong(Long::longValue).sum();
            }
        }
        return load;
    }

    /** After what was asked before, and not on this thread. */
    private void tellAdmission(final Runnable news) {
        admissionThread.execute(() -> {
            try {
                news.run();
            } catch (final RuntimeException e) {
                proxy.execute(() -> increment(ConductorCounter.CLEANUP_ERRORS));
            }
        });
    }

    /** Root and the daemon's own user can stop it anyway; no other user may keep it busy. */
    private boolean asksTooOften(final RateLimit limit, final PeerCredentials peer) {
        if (peer.uid() == 0 || peer.uid() == uid || limit.allows(peer.uid(), System.nanoTime())) {
            return false;
        }
        increment(ConductorCounter.RATE_LIMITED);
        return true;
    }

    private static String tooOften(final PeerCredentials peer, final String does, final RateLimit limit) {
        return "user " + Integer.toUnsignedString(peer.uid()) + " " + does + " more often than " + limit.perSecond()
            + " times a second; wait";
    }

    private void admitted(final TaskOpen request, final String refused) {
        final PendingRequest pending = requests.get(request.correlation());
        if (pending == null) {
            return; // the client is gone, and admission is told when it has been removed
        }
        if (refused != null) {
            increment(ConductorCounter.TASKS_NOT_ADMITTED);
            new Answers().onTaskOpened(request.correlation(), -Abi.ADMISSION_REFUSED, 0, 0, refused);
        } else {
            dispatcher.openTask(request);
        }
    }

    private void taskClose(final Connection connection, final int seq, final UnsafeBuffer data) {
        final RegisteredClient owner = connection.client;
        if (owner == null) {
            protocolError(connection, "TASK_CLOSE before HELLO");
            return;
        }
        final int taskId = data.getInt(Abi.MsgTaskClose.TASK_ID_OFFSET);
        final String name = owner.namesByTask.remove(taskId);
        if (name == null) {
            refuseTask(connection, Abi.MSG_TASK_CLOSE, seq, Errno.EINVAL,
                "task id " + (taskId & 0xffffffffL) + " is not open; close a task once, by the id it was opened with");
            return;
        }
        final long correlation = nextCorrelation++;
        connection.pending++;
        requests.put(correlation, new PendingRequest(connection, Abi.MSG_TASK_CLOSE, seq, name, taskId, null));
        dispatcher.closeTask(correlation, owner.client.clientId(), taskId);
    }

    private void refuseTask(final Connection connection, final int type, final int seq, final int errno,
        final String text) {
        increment(ConductorCounter.TASKS_REFUSED);
        taskReply(connection, type, seq, -errno, 0, 0, text);
    }

    private void taskReply(final Connection connection, final int type, final int seq, final int status,
        final int taskId, final int slot, final String text) {
        Messages.header(reply, type, Abi.MsgTaskReply.SIZE, seq, status);
        reply.data().putInt(Abi.MsgTaskReply.TASK_ID_OFFSET, taskId);
        reply.data().putInt(Abi.MsgTaskReply.SLOT_OFFSET, slot);
        Messages.text(reply.data(), Abi.MsgTaskReply.TEXT_OFFSET, Abi.TEXT_BYTES, text);
        socket.send(connection, reply);
    }

    private void queueFile(final Connection connection, final int seq, final UnsafeBuffer data) {
        final RegisteredClient owner = connection.client;
        if (owner == null) {
            protocolError(connection, "QUEUE_FILE before HELLO");
            return;
        }
        final long cycle = data.getLong(Abi.MsgQueueFile.CYCLE_OFFSET);
        if (asksTooOften(files, connection.peer)) {
            fileReply(connection, seq, cycle, -Errno.EAGAIN, tooOften(connection.peer, "asks for files", files));
            return;
        }
        try {
            // the kernel limits the descriptors that are sent and not received, of all of the daemon's connections
            if (!connection.socket.isRead()) {
                fileReply(connection, seq, cycle, -Errno.EAGAIN, "replies are unread; read them");
                return;
            }
            final int fd = owner.client.queue().lend(cycle);
            if (fd < 0) {
                fileReply(connection, seq, cycle, -Errno.ENOENT, "the queue has no cycle " + cycle
                    + " now; ask for the one announced in the session");
                return;
            }
            try {
                fillFileReply(seq, cycle, 0, "");
                reply.addDescriptor(fd);
                socket.send(connection, reply);   // there is room: nothing is unread
                increment(ConductorCounter.QUEUE_FILES);
            } finally {
                Descriptor.close(fd);
            }
        } catch (final SystemCallException e) {   // out of descriptors
            fileReply(connection, seq, cycle, -e.errno(), e.getMessage());
        }
    }

    private void fileReply(final Connection connection, final int seq, final long cycle, final int status,
        final String text) {
        fillFileReply(seq, cycle, status, text);
        socket.send(connection, reply);
    }

    private void fillFileReply(final int seq, final long cycle, final int status, final String text) {
        Messages.header(reply, Abi.MSG_QUEUE_FILE, Abi.MsgQueueFileReply.SIZE, seq, status);
        reply.data().putLong(Abi.MsgQueueFileReply.CYCLE_OFFSET, cycle);
        Messages.text(reply.data(), Abi.MsgQueueFileReply.TEXT_OFFSET, Abi.TEXT_BYTES, text);
    }

    private void admin(final Connection connection, final int seq, final Packet packet) {
        increment(ConductorCounter.ADMIN_REQUESTS);
        // before the text is looked at: to decode 64 KiB of every packet of a flood keeps the collector busy
        if (asksTooOften(admins, connection.peer)) {
            refuseAdmin(expect(connection, seq), tooOften(connection.peer, "asks", admins));
            return;
        }
        final UnsafeBuffer data = packet.data();
        final String json = Messages.utf8(data, Abi.MsgAdmin.SIZE, packet.length() - Abi.MsgAdmin.SIZE);
        if (json == null || data.getInt(Abi.MsgAdmin.RESERVED_OFFSET) != 0) {
            protocolError(connection, "ADMIN text is not UTF-8 or reserved is not 0");
            return;
        }
        final long correlation = expect(connection, seq);
        if (commands.offer(new AdminQueue.Waiting(correlation, connection, json))) {
            startCommands();
        } else {
            increment(ConductorCounter.ADMIN_REFUSED);
            refuseAdmin(correlation, "too many commands wait; try again later");
        }
    }

    /** A command is to be answered. */
    private long expect(final Connection connection, final int seq) {
        final long correlation = nextCorrelation++;
        connection.pending++;
        requests.put(correlation, new PendingRequest(connection, Abi.MSG_ADMIN, seq, "", 0, null));
        return correlation;
    }

    /** Hands over as many commands as may be answered at the same time. */
    private void startCommands() {
        for (AdminQueue.Waiting next = commands.next(); next != null; next = commands.next()) {
            final long unread = socket.unreadOf(next.uid());
            if (unread > UnreadReplies.COMMAND_BYTES) {
                commands.finished(next.correlation());
                increment(ConductorCounter.ADMIN_REFUSED);
                refuseAdmin(next.correlation(), "user " + Integer.toUnsignedString(next.uid()) + " has " + unread
                    + " bytes of unread answers; read them");
            } else {
                dispatcher.admin(next.correlation(), next.connection().peer,
                    rights.controlGroup(next.connection().process), next.json());
            }
        }
    }

    private void refuseAdmin(final long correlation, final String why) {
        new Answers().deliver(correlation, -Errno.EAGAIN, "{\"error\":\"" + why + "\"}");
    }

    private void protocolError(final Connection connection, final String text) {
        increment(ConductorCounter.PROTOCOL_ERRORS);
        lastOffence = "process " + connection.peer.pid() + " of user " + connection.peer.uid() + ": " + text;
        if (connection.client != null && !connection.client.removing) {
            increment(ConductorCounter.CLIENTS_POISONED);
            remove(connection.client, Removal.POISONED);
        }
        socket.close(connection);
    }

    private void processDied(final RegisteredClient client) {
        if (client == null) {
            return;
        }
        epoll.remove(client.connection.process.handle().fd());
        if (!client.removing) {
            increment(ConductorCounter.CLIENTS_DIED);
            remove(client, Removal.DIED);
        }
    }

    private void remove(final RegisteredClient client, final int reason) {
        client.removing = true;
        client.reason = reason;
        dispatcher.removeClient(client.client.clientId(), reason);
    }

    /** What it writes is not cut off; what it computes may be. */
    private void stopAdmission() {
        admissionThread.shutdown();
        try {
            if (!admissionThread.awaitTermination(STOP_LIMIT_NS, TimeUnit.NANOSECONDS)) {
                admissionThread.shutdownNow();
            }
        } catch (final InterruptedException e) {
            admissionThread.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }

    /** What peers do on their connections. */
    private final class Requests implements RegistrationSocket.Peers {
        @Override
        public void onPacket(final Connection connection, final Packet packet) {
            receive(connection, packet);
        }

        @Override
        public void onHangUp(final Connection connection) {
            increment(ConductorCounter.CLIENTS_CLOSED);
            remove(connection.client, Removal.CLOSED);
        }

        @Override
        public void onOffence(final Connection connection, final String text) {
            protocolError(connection, text);
        }

        @Override
        public void onAcceptError() {
            increment(ConductorCounter.ACCEPT_ERRORS);
        }

        @Override
        public void onTooMany() {
            increment(ConductorCounter.CONNECTIONS_REFUSED);
        }

        @Override
        public void onUnread(final Connection connection, final String text) {
            increment(ConductorCounter.UNREAD_DROPPED);
            protocolError(connection, text);
        }

        @Override
        public void onClosed(final Connection connection) {
            requests.values().removeIf(request -> request.connection() == connection);
        }
    }

    /** The dispatcher's answers, on this agent's thread. */
    private final class Answers implements QueuedConductorProxy.Receiver {
        private PendingRequest take(final long correlation) {
            final PendingRequest request = requests.remove(correlation);
            if (request != null) {
                request.connection().pending--;
            }
            return request;
        }

        @Override
        public void onTaskOpened(final long correlation, final int status, final int taskId, final int slot,
            final String text) {
            final PendingRequest request = take(correlation);
            if (request == null) {
                return;
            }
            final RegisteredClient owner = request.connection().client;
            if (status == 0) {
                increment(ConductorCounter.TASKS_OPENED);
                owner.namesByTask.put(taskId, request.name());
                tellAdmission(() -> {
                    try {
                        admission.opened(request.request(), taskId);
                    } finally {   // it begins nothing before it is told
                        proxy.execute(() -> taskReply(request.connection(), request.type(), request.seq(), 0, taskId,
                            slot, text));
                    }
                });
            } else {
                owner.loads.remove(request.name());
                tellAdmission(() -> admission.closed(owner.client.clientId(), request.name()));
                refuseTask(request.connection(), request.type(), request.seq(), -status, text);
            }
        }

        @Override
        public void onTaskClosed(final long correlation, final int status, final String text) {
            final PendingRequest request = take(correlation);
            if (request == null) {
                return;
            }
            final RegisteredClient owner = request.connection().client;
            owner.loads.remove(request.name());
            tellAdmission(() -> admission.closed(owner.client.clientId(), request.name()));
            increment(ConductorCounter.TASKS_CLOSED);
            taskReply(request.connection(), request.type(), request.seq(), status, request.taskId(), 0, text);
        }

        @Override
        public void onPoisoned(final int clientId, final int code, final String text) {
            final RegisteredClient client = clients.get(clientId);
            if (client != null && !client.removing) {
                increment(ConductorCounter.CLIENTS_POISONED);
                lastOffence = "process " + client.client.pid() + " of user " + client.client.uid() + ": poison " + code
                    + ": " + text;
                remove(client, Removal.POISONED);
                socket.close(client.connection);
            }
        }

        @Override
        public void onClientRemoved(final int clientId) {
            final RegisteredClient client = clients.remove(clientId);
            if (client == null) {
                return;
            }
            socket.close(client.connection);
            tellAdmission(() -> admission.clientGone(clientId, client.reason));
            closeAll(client.connection.process); // leaves the epoll set with its last descriptor
            housekeeping.retire(client.client, failure -> proxy.execute(() -> {
                if (failure != null) {
                    increment(ConductorCounter.CLEANUP_ERRORS);
                }
                clientIds[clientId] = false;
            }));
        }

        @Override
        public void onAdminReply(final long correlation, final int status, final String json) {
            commands.finished(correlation);
            deliver(correlation, status, json);
            startCommands();
        }

        void deliver(final long correlation, final int status, final String json) {
            final PendingRequest request = take(correlation);
            if (request == null) {
                return;
            }
            final byte[] utf8 = json.getBytes(StandardCharsets.UTF_8);
            int at = 0;
            do {
                final int n = Math.min(ADMIN_CHUNK, utf8.length - at);
                Messages.header(reply, request.type(), Abi.MsgAdminReply.SIZE + n, request.seq(), status);
                reply.data().putInt(Abi.MsgAdminReply.TEXT_SIZE_OFFSET, n);
                reply.data().putInt(Abi.MsgAdminReply.MORE_OFFSET, at + n < utf8.length ? 1 : 0);
                reply.data().putBytes(Abi.MsgAdminReply.SIZE, utf8, at, n);
                socket.send(request.connection(), reply);
                at += n;
            } while (at < utf8.length && request.connection().open);
        }
    }

    /** Removes all clients (the dispatcher must still run), waits for that at most 2 s, then closes everything. */
    @Override
    public void onClose() {
        if (stopping) {
            return;
        }
        stopping = true;
        socket.stopListening();
        for (final RegisteredClient client : clients.values()) {
            if (!client.removing) {
                remove(client, Removal.STOPPING);
            }
        }
        final long startNs = System.nanoTime();
        while (!clients.isEmpty() && System.nanoTime() - startNs < STOP_LIMIT_NS) {
            doWork();
        }
        socket.close();
        stopAdmission();
        epoll.close();
    }
}
