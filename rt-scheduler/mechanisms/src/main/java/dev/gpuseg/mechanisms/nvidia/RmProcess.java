/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * One process and what it made with RM. {@link #refresh} looks at it from outside: it takes duplicates of its control
 * descriptors, finds the clients that belong to them and asks RM for the class of every handle in the ranges that the
 * user-mode driver uses (or only of those that the application's own report names). All questions are read-only.
 *
 * <p>On an H200 with driver 580.159.04 a first look took 28 ms (9,242 questions of about 3 us). Later looks cost a few
 * hundred questions, a full one follows every ten seconds and after RM refused a channel.
 *
 * <p>Thread-safety: one thread refreshes and closes; {@link #context} may be called by any thread. Descriptors that are
 * replaced are closed through the caller's lock, see {@link #refresh}.
 */
final class RmProcess {
    /** Link target of a descriptor that is the control device. */
    static final String CONTROL_DEVICE = "/dev/nvidiactl";

    /** What a look found. */
    enum Look { UNCHANGED, CHANGED, GONE, REFUSED }

    private static final int CLIENT_BASE = 0xc1d00000;
    private static final int CLIENT_SCAN = 0x2000;
    private static final int CLIENT_SCAN_WIDE = 0x100000;
    private static final int CLIENT_NEAR = 0x100;
    private static final int LOOKS_PER_SEARCH = 4;
    private static final int WIDE_AFTER_LOOKS = 8;
    private static final int HANDLE_BASE = 0x5c000000;
    private static final int HANDLE_SCAN = 0x400;
    private static final int HANDLE_SCAN_MAX = 0x10000;
    private static final int HANDLE_MISSES = 0x100;
    private static final int CLASS_CLIENT = 0x41;
    private static final int CLASS_SUBDEVICE = 0x2080;
    private static final int CLASS_TSG = 0xa06c;
    private static final int ENGINE_GR0 = 1;
    private static final int INVALID_OBJECT = 0x31;
    private static final long FULL_LOOK_NS = 10_000_000_000L;

    /** An object of a client: its class and parent. */
    private record Node(int classId, int parent) {
    }

    /** A client and its objects. */
    private static final class Client {
        final ControlFile file;
        final int handle;
        final Map<Integer, Node> objects = new LinkedHashMap<>();
        final Set<Integer> reportedGr0 = new HashSet<>();
        int highest = HANDLE_BASE - 1;
        boolean reported;

        Client(final ControlFile file, final int handle) {
            this.file = file;
            this.handle = handle;
        }
    }

    private final int pid;
    private final int pidfd;
    private final GpuIndex gpus;
    private final Scope scope;
    private final RmControl rm;
    private final Map<Integer, ControlFile> files = new LinkedHashMap<>();
    private final List<Client> clients = new ArrayList<>();
    private final Map<Integer, Integer> emptyLooks = new HashMap<>();
    private volatile Map<Integer, RmContext> contexts = Map.of();
    private volatile String refusal = "";
    private static volatile int newestClient = CLIENT_BASE;
    private long lastFullNs;
    private int looks;
    private volatile boolean lookAgain;
    /** Has the control device open, but only as it came from another process: a forked child, or who examines it. */
    private boolean borrows;
    /** An answer of this look was neither yes nor no. */
    private boolean unsure;

    private RmProcess(final int pid, final int pidfd, final GpuIndex gpus, final Scope scope, final RmControl rm) {
        this.pid = pid;
        this.pidfd = pidfd;
        this.gpus = gpus;
        this.scope = scope;
        this.rm = rm;
    }

    /** Says which processes may have been the first to have an open file that another has, too. */
    interface Elders {
        /** Descriptors of the control device in processes that are older than this one, by pid. */
        Map<Integer, List<Integer>> of(int pid);
    }

    /** Null if there is no such process. */
    static RmProcess open(final int pid, final GpuIndex gpus, final Scope scope, final RmControl rm) {
        final int pidfd = SystemCalls.pidfdOpen(pid);
        return pidfd < 0 ? null : new RmProcess(pid, pidfd, gpus, scope, rm);
    }

    /** One that is made up and has this context; it has no descriptors, and is never refreshed or closed. */
    static RmProcess pretended(final RmContext context) {
        final RmProcess p = new RmProcess(0, -1, null, Scope.COMPUTE, null);
        p.contexts = Map.of(context.gpu(), context);
        return p;
    }

    int pid() {
        return pid;
    }

    int pidfd() {
        return pidfd;
    }

    /** What can be switched on a GPU, null if there is nothing (yet). */
    RmContext context(final int gpu) {
        return contexts.get(gpu);
    }

    /** Why descriptors could not be taken, empty if they could. */
    String refusal() {
        return refusal;
    }

    /** Whether the process has the control device open, as far as the last look saw. */
    boolean usesDriver() {
        return borrows || !files.isEmpty();
    }

    /** Whether it has nothing that could be switched, on any GPU. */
    boolean hasNoWork() {
        return contexts.isEmpty();
    }

    /** Numbers of its own control descriptors inside it. */
    List<Integer> descriptors() {
        return files.values().stream().map(ControlFile::remoteFd).toList();
    }

    boolean isDistrusted() {
        return lookAgain;
    }

    /** Asks for a full look at the next {@link #refresh}: RM refused something that was known. */
    void distrust() {
        lookAgain = true;
    }

    /**
     * Looks again.
     *
     * @param nowNs CLOCK_MONOTONIC
     * @param lock  held while descriptors that are no longer the application's are closed
     * @param elders whose open files are not this process's own, though it has them, too
     * @return what became of it
     */
    Look refresh(final long nowNs, final Object lock, final Elders elders) {
        final Map<Integer, String> links = links();
        if (links == null) {
            return Look.GONE;
        }
        final boolean taken = takeFiles(links, lock, elders);
        if (files.isEmpty()) {
            return refusal.isEmpty() ? publish() : Look.REFUSED;
        }
        final CaptureReport report = report(links);
        final boolean full = taken || lookAgain || contexts.isEmpty()
            || nowNs - lastFullNs >= FULL_LOOK_NS;
        if (taken) {
            looks = 0;
        }
        unsure = false;
        if (full) {
            lastFullNs = nowNs;
            lookAgain = false;
            final List<Integer> known = new ArrayList<>();
            clients.forEach(c -> known.add(c.handle));
            clients.clear();
            findClients(report, known);
            looks++;
        }
        for (final Client c : clients) {
            if (report != null && report.complete()) {
                readReport(c, report);
            } else {
                search(c, full);
            }
        }
        if (unsure) {
            lookAgain = true;   // what was known stays until a look gets clear answers
            return Look.UNCHANGED;
        }
        return publish();
    }

    /** The same where nobody else is known. */
    Look refresh(final long nowNs, final Object lock) {
        return refresh(nowNs, lock, pid -> Map.of());
    }

    /** Numbers of the control descriptors of any process; empty if it has ended or may not be examined. */
    static List<Integer> controlDescriptors(final int pid) {
        final List<Integer> found = new ArrayList<>();
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, link -> {
                if (link.is(CONTROL_DEVICE)) {
                    found.add(link.fd());
                }
                return true;
            });
        } catch (final IOException e) {
            return List.of();
        }
        return found;
    }

    /** Descriptors that matter, by number; null if the process has ended. */
    private Map<Integer, String> links() {
        final Map<Integer, String> found = new LinkedHashMap<>();
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, link -> {
                if (link.is(CONTROL_DEVICE) || link.startsWith(CaptureReport.LINK_PREFIX)) {
                    found.put(link.fd(), link.toString());
                }
                return true;
            });
        } catch (final AccessDeniedException e) {
            refusal = "descriptors of pid " + pid + " cannot be read; run the daemon as root or as the same user";
            return found;
        } catch (final IOException e) {
            return null;
        }
        return found;
    }

    private boolean takeFiles(final Map<Integer, String> links, final Object lock, final Elders elders) {
        boolean changed = false;
        final Iterator<Map.Entry<Integer, ControlFile>> known = files.entrySet().iterator();
        while (known.hasNext()) {
            final Map.Entry<Integer, ControlFile> e = known.next();
            if (!CONTROL_DEVICE.equals(links.get(e.getKey())) || !e.getValue().stillOpenIn(pid)) {
                known.remove();
                drop(e.getValue(), lock);
                changed = true;
            }
        }
        String refused = "";
        borrows = false;
        Map<Integer, List<Integer>> older = null;
        for (final Map.Entry<Integer, String> e : links.entrySet()) {
            if (e.getValue().equals(CONTROL_DEVICE) && !files.containsKey(e.getKey())) {
                older = older == null ? elders.of(pid) : older;
                if (isBorrowed(e.getKey(), older)) {
                    borrows = true;
                    continue;
                }
                final int fd = SystemCalls.pidfdGetfd(pidfd, e.getKey());
                if (fd >= 0) {
                    files.put(e.getKey(), new ControlFile(fd, e.getKey()));
                    changed = true;
                } else if (fd != -Errno.EBADF && fd != -Errno.ESRCH) {
                    refused = "pidfd_getfd of pid " + pid + ": errno " + -fd
                        + "; the daemon needs CAP_SYS_PTRACE (run it as root) and a kernel of 5.6 or later";
                }
            }
        }
        if (!links.isEmpty() || refusal.isEmpty()) {
            refusal = refused;
        }
        return changed;
    }

    /**
     * An RM client belongs to an open file, and a forked child has its parent's. What was made through it is the
     * parent's work: if it counted as the child's, too, the parent would be taken off for its own segment.
     */
    private boolean isBorrowed(final int fd, final Map<Integer, List<Integer>> older) {
        for (final Map.Entry<Integer, List<Integer>> e : older.entrySet()) {
            for (final int theirs : e.getValue()) {
                if (DriverCalls.compareFiles(e.getKey(), theirs, pid, fd) == 0) {
                    return true;
                }
            }
        }
        return false;
    }

    private void drop(final ControlFile file, final Object lock) {
        clients.removeIf(c -> c.file == file);
        synchronized (lock) {
            contexts = Map.of();   // nobody may use the descriptor from here on; publish() names the rest again
            file.close();
        }
        lookAgain = true;
    }

    private CaptureReport report(final Map<Integer, String> links) {
        for (final Map.Entry<Integer, String> e : links.entrySet()) {
            if (!e.getValue().equals(CONTROL_DEVICE)) {
                final CaptureReport r = CaptureReport.read(pid, e.getKey());
                if (r != null) {
                    return r;
                }
            }
        }
        return null;
    }

    private void findClients(final CaptureReport report, final List<Integer> known) {
        for (final ControlFile file : files.values()) {
            final int before = clients.size();
            if (report != null && report.complete()) {
                final Set<Integer> named = new HashSet<>();
                for (final CaptureReport.Entry e : report.objects()) {
                    if (named.add(e.client())) {
                        tryClient(file, e.client());
                    }
                }
            }
            for (final int client : known) {
                tryClient(file, client);
            }
            if (clients.size() == before) {
                // numbers grow: a new process's are near those seen last
                final int near = Math.max(0, newestClient - CLIENT_BASE - CLIENT_NEAR);
                for (int k = near; k < near + 4 * CLIENT_NEAR; k++) {
                    tryClient(file, CLIENT_BASE + k);
                }
            }
            if (clients.size() == before && looks % LOOKS_PER_SEARCH == 0) {
                for (int k = 0; k < CLIENT_SCAN; k++) {
                    tryClient(file, CLIENT_BASE + k);
                }
            }
            if (clients.size() == before && emptyLooks.merge(file.fd(), 1, Integer::sum) == WIDE_AFTER_LOOKS) {
                // a machine that has been up for long has used up the low numbers; seconds, once per descriptor
                for (int k = CLIENT_SCAN; k < CLIENT_SCAN_WIDE; k++) {
                    tryClient(file, CLIENT_BASE + k);
                }
            }
        }
    }

    private void tryClient(final ControlFile file, final int client) {
        for (final Client c : clients) {
            if (c.handle == client) {
                return;
            }
        }
        final int status = rm.handleInfo(file.fd(), client, client, RmControl.INFO_CLASS);
        unsure |= status != RmStatus.OK && !meansAbsent(status);
        if (status == RmStatus.OK) {
            clients.add(new Client(file, client));
            newestClient = Math.max(newestClient, client);
        }
    }

    private void readReport(final Client c, final CaptureReport report) {
        c.objects.clear();
        c.reportedGr0.clear();
        c.reported = true;
        for (final CaptureReport.Entry e : report.objects()) {
            if (e.client() == c.handle && e.classId() != CLASS_CLIENT) {
                ask(c, e.handle());
                if (e.classId() == CLASS_TSG && e.engine() == ENGINE_GR0) {
                    c.reportedGr0.add(e.handle());
                }
            }
        }
    }

    private void search(final Client c, final boolean full) {
        if (full) {
            c.objects.clear();
            c.highest = HANDLE_BASE - 1;
        }
        final int floor = full ? HANDLE_BASE + HANDLE_SCAN : 0;
        int misses = 0;
        for (int h = c.highest + 1; h < HANDLE_BASE + HANDLE_SCAN_MAX; h++) {
            if (ask(c, h)) {
                c.highest = h;
                misses = 0;
            } else if (++misses >= HANDLE_MISSES && h >= floor) {
                return;
            }
        }
    }

    private boolean ask(final Client c, final int handle) {
        final int status = rm.handleInfo(c.file.fd(), c.handle, handle, RmControl.INFO_CLASS);
        if (status != RmStatus.OK) {
            unsure |= !meansAbsent(status);
            return false;
        }
        final int classId = rm.result();
        final boolean graph = classId == CLASS_SUBDEVICE || classId == CLASS_TSG || isChannel(classId)
            || isComputeOrGraphics(classId);
        if (graph) {
            if (rm.handleInfo(c.file.fd(), c.handle, handle, RmControl.INFO_PARENT) == RmStatus.OK) {
                c.objects.put(handle, new Node(classId, rm.result()));
            } else {
                unsure = true;
            }
        }
        return true;
    }

    /** Any other refusal (busy, out of memory, no permission) says nothing about whether the object exists. */
    private static boolean meansAbsent(final int status) {
        return status == RmStatus.OBJECT_NOT_FOUND || status == RmStatus.INVALID_OBJECT_HANDLE
            || status == INVALID_OBJECT || status == RmStatus.INVALID_CLIENT;
    }

    static boolean isChannel(final int classId) {
        return (classId & 0xff) == 0x6f && classId >= 0xa06f;
    }

    static boolean isComputeOrGraphics(final int classId) {
        return classId > 0xff && ((classId & 0xff) == 0xc0 || (classId & 0xff) == 0x97);
    }

    /** Builds what can be switched from what is known, and says whether it changed. */
    private Look publish() {
        final Map<Integer, List<RmContext.Tsg>> tsgs = new HashMap<>();
        final Map<Integer, List<RmContext.Channel>> channels = new HashMap<>();
        final Map<Integer, int[]> carriers = new HashMap<>();
        final Map<Integer, ControlFile> carrierFiles = new HashMap<>();
        for (final Client c : clients) {
            final Map<Integer, Integer> gpuOfDevice = new HashMap<>();
            c.objects.forEach((handle, node) -> {
                if (node.classId == CLASS_SUBDEVICE
                    && rm.gpuId(c.file.fd(), c.handle, handle) == RmStatus.OK) {
                    final int gpu = gpus.of(rm.word());
                    if (gpu != GpuIndex.UNKNOWN) {
                        gpuOfDevice.put(node.parent, gpu);
                        if (carriers.putIfAbsent(gpu, new int[] {c.handle, handle}) == null) {
                            carrierFiles.put(gpu, c.file);
                        }
                    }
                }
            });
            final Set<Integer> compute = new HashSet<>(c.reportedGr0);
            c.objects.forEach((handle, node) -> {
                final Node channel = isComputeOrGraphics(node.classId) ? c.objects.get(node.parent) : null;
                if (channel != null && isChannel(channel.classId)) {
                    compute.add(channel.parent);
                }
            });
            c.objects.forEach((handle, node) -> {
                final Integer gpu = gpuOfDevice.get(node.parent);
                if (node.classId == CLASS_TSG && gpu != null) {
                    tsgs.computeIfAbsent(gpu, g -> new ArrayList<>())
                        .add(new RmContext.Tsg(c.file, c.handle, handle, compute.contains(handle)));
                } else if (isChannel(node.classId)) {
                    final Node tsg = c.objects.get(node.parent);
                    final Integer on = tsg == null ? gpu : gpuOfDevice.get(tsg.parent);
                    if (on != null && (scope == Scope.ALL || compute.contains(node.parent))) {
                        channels.computeIfAbsent(on, g -> new ArrayList<>())
                            .add(new RmContext.Channel(c.handle, handle));
                    }
                }
            });
        }
        final Map<Integer, RmContext> next = new HashMap<>();
        boolean changed = false;
        for (final Map.Entry<Integer, List<RmContext.Channel>> e : channels.entrySet()) {
            final int gpu = e.getKey();
            List<RmContext.Channel> list = e.getValue();
            if (list.size() > RmContext.CHANNELS_MAX) {
                refusal = "pid " + pid + " has " + list.size() + " channels on GPU " + gpu + ", at most "
                    + RmContext.CHANNELS_MAX + " can be held; the rest stays on the hardware";
                list = list.subList(0, RmContext.CHANNELS_MAX);
            }
            final int[] carrier = carriers.get(gpu);
            final RmContext now = new RmContext(gpu, carrierFiles.get(gpu), carrier[0], carrier[1], list,
                tsgs.getOrDefault(gpu, List.of()));
            final RmContext before = contexts.get(gpu);
            next.put(gpu, now.sameAs(before) ? before : now);
        }
        for (final Integer gpu : next.keySet()) {
            changed |= !Objects.equals(contexts.get(gpu), next.get(gpu));
        }
        changed |= next.size() != contexts.size();
        contexts = Map.copyOf(next);
        return changed ? Look.CHANGED : Look.UNCHANGED;
    }

    /** Lets go of the process; with it go its RM clients if it is dead. Call with the lock of {@link #refresh} held. */
    void close() {
        contexts = Map.of();
        files.values().forEach(ControlFile::close);
        files.clear();
        clients.clear();
        SystemCalls.closeOnce(pidfd);
    }

    @Override
    public String toString() {
        return "pid " + pid + ", " + files.size() + " control descriptors, " + clients.size() + " clients, channels "
            + Arrays.toString(contexts.values().stream().mapToInt(RmContext::channelCount).toArray());
    }
}
