/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import dev.gpuseg.mechanisms.observer.Observation;
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
import java.util.Set;
import java.util.function.Predicate;

/**
 * One process and what it made with RM. {@link #refresh} examines it from outside: it duplicates the control
 * descriptors of the process, finds the RM clients that belong to them and updates each {@link RmClient}.
 *
 * <p>On an H200 with driver 580.159.04 a first refresh took 28 ms (9,242 questions of about 3 us). Later ones ask a few
 * hundred questions. A full one follows every ten seconds, and after RM refused a channel.
 *
 * <p>Thread-safety: one thread refreshes and closes; {@link #context} may be called by any thread. Descriptors that are
 * replaced are closed under the caller's lock, see {@link #refresh}.
 */
final class RmProcess {
    /** Link target of a descriptor that is the control device. */
    static final String CONTROL_DEVICE = "/dev/nvidiactl";

    /** Source: Linux, Documentation/admin-guide/devices.txt, and /proc/devices with driver 580 (H200). */
    private static final int CONTROL_MINOR = 255;
    private static final DeviceFile CONTROL = DeviceFile.ofDriver(DriverCalls.DRIVER, CONTROL_MINOR, "nvidia-frontend",
        "nvidia", "nvidiactl");

    /** What a refresh found. */
    enum Result { UNCHANGED, CHANGED, GONE, REFUSED }

    private static final int CLIENT_BASE = 0xc1d00000;
    private static final int CLIENT_SCAN = 0x2000;
    private static final int CLIENT_SCAN_WIDE = 0x100000;
    private static final int CLIENT_NEAR = 0x100;
    private static final int REFRESHES_PER_SEARCH = 4;
    private static final int WIDE_AFTER_REFRESHES = 8;
    /** The process is announced while the rest is asked for. */
    private static final int NEWS_AT_ONCE = 8;
    private static final long FULL_REFRESH_NS = 10_000_000_000L;

    private final int pid;
    private final int pidfd;
    private final GpuIndex gpus;
    private final Scope scope;
    private final RmControl rm;
    private final Runnable interlude;
    private final Map<Integer, ControlFile> files = new LinkedHashMap<>();
    private final List<RmClient> clients = new ArrayList<>();
    private final Map<Integer, Integer> emptyRefreshes = new HashMap<>();
    private volatile Map<Integer, RmContext> contexts = Map.of();
    /** Guards what follows, and changes of the contexts. */
    private final Object publishing = new Object();
    /** Contexts with the channels that were not scheduled yet. */
    private Map<Integer, RmContext> made = Map.of();
    /** Scheduled, as one who sees it first has said, and not yet known to be by the thread that refreshes. */
    private final List<RmContext.Scheduled> early = new ArrayList<>();
    /** GPUs on which it has a channel group for compute or graphics: channels are going to follow, or have. */
    private Set<Integer> prepared = Set.of();
    private volatile String refusal = "";
    private static volatile int newestClient = CLIENT_BASE;
    private long lastFullNs;
    private int fullRefreshes;
    private volatile boolean stale;
    private volatile boolean unscheduled;
    /** Has the control device open, but only inherited or received: a forked child, or a process that examines it. */
    private boolean borrows;
    /** An answer of this refresh was neither yes nor no. */
    private boolean unsure;

    private RmProcess(final int pid, final int pidfd, final GpuIndex gpus, final Scope scope, final RmControl rm,
        final Runnable interlude) {
        this.pid = pid;
        this.pidfd = pidfd;
        this.gpus = gpus;
        this.scope = scope;
        this.rm = rm;
        this.interlude = interlude;
    }

    /** Names processes that may own an open file that another process shares. */
    interface OlderProcesses {
        /** Descriptors of the control device in processes that are older than this one, by pid. */
        Map<Integer, List<Integer>> than(int pid);
    }

    /**
     * Opens a process.
     *
     * @param interlude called again and again while it is searched, by the same thread: a search of thousands of
     *                  questions takes seconds where many processes want the driver
     * @return null if there is no such process
     */
    static RmProcess open(final int pid, final GpuIndex gpus, final Scope scope, final RmControl rm,
        final Runnable interlude) {
        final int pidfd = SystemCalls.pidfdOpen(pid);
        return pidfd < 0 ? null : new RmProcess(pid, pidfd, gpus, scope, rm, interlude);
    }

    /** The same for one who does nothing else meanwhile. */
    static RmProcess open(final int pid, final GpuIndex gpus, final Scope scope, final RmControl rm) {
        return open(pid, gpus, scope, rm, () -> { });
    }

    /** A made-up process with this context. It has no descriptors, and is never refreshed or closed. */
    static RmProcess pretended(final RmContext context) {
        final RmProcess p = new RmProcess(0, -1, null, Scope.COMPUTE, null, () -> { });
        p.contexts = Map.of(context.gpu(), context);
        return p;
    }

    int pid() {
        return pid;
    }

    int pidfd() {
        return pidfd;
    }

    /** Its context on a GPU, null if there is none (yet). */
    RmContext context(final int gpu) {
        return contexts.get(gpu);
    }

    /** Whether it has channels on a GPU, or a group that is going to have some. */
    boolean preparesFor(final int gpu) {
        return contexts.containsKey(gpu) || prepared.contains(gpu);
    }

    /** Whether it has channels that it did not have scheduled yet; they are in no context. */
    boolean hasUnscheduled() {
        return unscheduled;
    }

    /** Why its descriptors cannot be duplicated, empty if they can. */
    String refusal() {
        return refusal;
    }

    /** Whether the process had the control device open at the last refresh. */
    boolean usesDriver() {
        return borrows || !files.isEmpty();
    }

    /** Whether it has no context on any GPU. */
    boolean hasNoWork() {
        return contexts.isEmpty();
    }

    /** Numbers of its own control descriptors inside it. */
    List<Integer> descriptors() {
        return files.values().stream().map(ControlFile::remoteFd).toList();
    }

    /** Whether the next refresh must be a full one, as soon as possible. */
    boolean isStale() {
        return stale;
    }

    /** Asks for a full refresh: RM refused something that was known. Any thread. */
    void invalidate() {
        stale = true;
    }

    /**
     * Examines the process again.
     *
     * @param nowNs CLOCK_MONOTONIC
     * @param lock  held while descriptors that the application closed are closed here
     * @param older processes whose open files are not this process's own, though it shares them
     * @return what became of it
     */
    Result refresh(final long nowNs, final Object lock, final OlderProcesses older) {
        final Map<Integer, String> links = links();
        if (links == null) {
            return Result.GONE;
        }
        final boolean taken = takeFiles(links, lock, older, null);
        if (files.isEmpty()) {
            return refusal.isEmpty() ? publish(null) : Result.REFUSED;
        }
        final CaptureReport report = completeReport(links);
        final boolean full = taken || stale || contexts.isEmpty() || nowNs - lastFullNs >= FULL_REFRESH_NS;
        if (taken) {
            fullRefreshes = 0;
        }
        unsure = false;
        if (full) {
            lastFullNs = nowNs;
            stale = false;
            final List<Integer> known = clients.stream().map(RmClient::handle).toList();
            clients.clear();
            findClients(report, known);
            fullRefreshes++;
        }
        for (final RmClient c : clients) {
            unsure |= !c.update(rm, report, full, interlude);
        }
        if (unsure) {
            stale = true;   // what was known stays until a refresh gets clear answers
            return Result.UNCHANGED;
        }
        return publish(null);
    }

    /** The same where no other process is known. */
    Result refresh(final long nowNs, final Object lock) {
        return refresh(nowNs, lock, x -> Map.of());
    }

    /**
     * The same for a process of which the observer has seen everything: only what it made is asked for.
     *
     * @param nowNs    CLOCK_MONOTONIC
     * @param lock     as above
     * @param older    as above
     * @param observed what was seen; gives up where RM contradicts it
     * @return what became of it
     */
    Result refreshObserved(final long nowNs, final Object lock, final OlderProcesses older,
        final ObservedProcess observed) {
        final boolean due = nowNs - lastFullNs >= FULL_REFRESH_NS;
        if (observed.takeFilesChanged() || due || stale || files.isEmpty() && observed.hasNews()) {
            final Map<Integer, String> links = links();
            if (links == null && files.isEmpty()) {
                return Result.GONE;
            }
            if (links != null) {   // else its descriptors were duplicated before, and may still be used by its threads
                takeFiles(links, lock, older, observed);
            }
            lastFullNs = nowNs;
        }
        if (files.isEmpty()) {
            if (observed.hasNews()) {
                observed.giveUp();   // through a descriptor that is not found
            }
            return refusal.isEmpty() ? publish(observed) : Result.REFUSED;
        }
        unsure = false;
        if (stale) {
            stale = false;
            clients.clear();
            observed.clearNews();
            observed.objects().forEach(o -> take(o, observed));
        } else {
            boolean urgent = false;
            for (int i = 0; i < NEWS_AT_ONCE && !urgent && observed.hasNews(); i++) {
                final Observation o = observed.nextNews();
                take(o, observed);
                urgent = prepared.isEmpty() && ObservedProcess.beginsContext(o);
            }
        }
        if (!observed.isWhole() || unsure) {
            stale = true;   // asked again, or searched
            return Result.UNCHANGED;
        }
        return publish(observed);
    }

    private void take(final Observation o, final ObservedProcess observed) {
        final RmClient client = client(o.client());
        if (o.kind() == Observation.Kind.FREE) {
            if (client != null && o.handle() == o.client()) {
                clients.remove(client);
            } else if (client != null) {
                client.freed(o.handle());
            }
        } else if (ObservedProcess.isClient(o)) {
            takeClient(o);
        } else if (client != null) {
            unsure |= !client.made(rm, o.handle(), o.parent(), o.classId(), o.engine() == RmClient.ENGINE_GR0);
        } else if (!unsure && observed.isWhole()) {
            observed.giveUp();   // an object of a client that RM does not know here
        }
    }

    private void takeClient(final Observation o) {
        final int before = clients.size();
        for (final ControlFile file : files.values()) {   // that of the call first
            if (file.remoteFd() == o.fd()) {
                tryClient(file, o.client());
            }
        }
        for (final ControlFile file : files.values()) {
            if (clients.size() == before && file.remoteFd() != o.fd()) {
                tryClient(file, o.client());
            }
        }
    }

    private RmClient client(final int handle) {
        for (final RmClient c : clients) {
            if (c.handle() == handle) {
                return c;
            }
        }
        return null;
    }

    /** Whether any process has a control descriptor. Allocates nothing for a process that has none. Not thread-safe. */
    static final class ControlSearch implements RemoteDescriptors.Visitor {
        private int pid;
        private boolean found;

        /** False also if the process has ended or may not be examined. */
        boolean finds(final int ofPid) {
            pid = ofPid;
            found = false;
            try {
                RemoteDescriptors.visit(pid, DriverCalls.DRIVER, this);
            } catch (final IOException e) {
                return false;
            }
            return found;
        }

        @Override
        public boolean visit(final RemoteDescriptors.Link link) {
            found = isControl(pid, link);
            return !found;
        }
    }

    /** Numbers of the control descriptors of any process; empty if it has ended or may not be examined. */
    static List<Integer> controlDescriptors(final int pid) {
        final List<Integer> found = new ArrayList<>();
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, link -> {
                if (isControl(pid, link)) {
                    found.add(link.fd());
                }
                return true;
            });
        } catch (final IOException e) {
            return List.of();
        }
        return found;
    }

    private static boolean isControl(final int pid, final RemoteDescriptors.Link link) {
        return link.is(CONTROL_DEVICE) && CONTROL.leadsTo(pid, link.fd(), CONTROL_DEVICE);
    }

    /** Descriptors that matter, by number; null if the process has ended, or shows none since its main thread has. */
    private Map<Integer, String> links() {
        final Map<Integer, String> found = new LinkedHashMap<>();
        try {
            RemoteDescriptors.visit(pid, DriverCalls.DRIVER, link -> {
                if (isControl(pid, link)
                    || link.startsWith(CaptureReport.LINK_PREFIX) && DeviceFile.isMemory(pid, link.fd())) {
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
        return found.isEmpty() && RemoteDescriptors.mainThreadEnded(pid) ? null : found;
    }

    private boolean takeFiles(final Map<Integer, String> links, final Object lock, final OlderProcesses others,
        final ObservedProcess observed) {
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
                if (observed == null || !observed.opened(e.getKey())) {
                    older = older == null ? others.than(pid) : older;
                    if (isBorrowed(e.getKey(), older)) {
                        borrows = true;
                        continue;
                    }
                }
                final int fd = CONTROL.duplicate(pid, pidfd, e.getKey(), CONTROL_DEVICE);
                if (fd >= 0) {
                    files.put(e.getKey(), new ControlFile(fd, e.getKey()));
                    changed = true;
                } else if (fd != -Errno.EBADF && fd != -Errno.ESRCH && fd != DeviceFile.FOREIGN) {
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
     * An RM client belongs to an open file, and a forked child shares its parent's. What was made through that file is
     * the parent's work: if it also counted as the child's, the parent would be disabled for its own segment.
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
        clients.removeIf(c -> c.file() == file);
        synchronized (lock) {
            forgetContexts();   // the descriptor must not be used any more; publish() adds the others again
            file.close();
        }
        stale = true;
    }

    /** The application's own report; null if there is none, or one that lacks objects. */
    private CaptureReport completeReport(final Map<Integer, String> links) {
        for (final Map.Entry<Integer, String> e : links.entrySet()) {
            if (!e.getValue().equals(CONTROL_DEVICE)) {
                final CaptureReport r = CaptureReport.read(pid, e.getKey());
                if (r != null) {
                    return r.complete() ? r : null;
                }
            }
        }
        return null;
    }

    private void findClients(final CaptureReport report, final List<Integer> known) {
        for (final ControlFile file : files.values()) {
            final int before = clients.size();
            if (report != null) {
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
                tryClients(file, near, near + 4 * CLIENT_NEAR);
            }
            if (clients.size() == before && fullRefreshes % REFRESHES_PER_SEARCH == 0) {
                tryClients(file, 0, CLIENT_SCAN);
            }
            if (clients.size() == before
                && emptyRefreshes.merge(file.fd(), 1, Integer::sum) == WIDE_AFTER_REFRESHES) {
                // a machine that has been up for long has used up the low numbers; seconds, once per descriptor
                tryClients(file, CLIENT_SCAN, CLIENT_SCAN_WIDE);
            }
        }
    }

    private void tryClients(final ControlFile file, final int from, final int to) {
        for (int k = from; k < to; k++) {
            interlude.run();
            tryClient(file, CLIENT_BASE + k);
        }
    }

    private void tryClient(final ControlFile file, final int client) {
        if (client(client) != null) {
            return;
        }
        final int status = rm.handleInfo(file.fd(), client, client, RmControl.INFO_CLASS);
        unsure |= status != RmStatus.OK && !RmClient.meansAbsent(status);
        if (status == RmStatus.OK) {
            clients.add(new RmClient(file, client));
            newestClient = Math.max(newestClient, client);
        }
    }

    /** Builds the contexts from what is known, and says whether they changed. If observed, of what can run. */
    private Result publish(final ObservedProcess observed) {
        final ContextBuilder builder = new ContextBuilder(gpus, scope, rm);
        clients.forEach(builder::add);
        builder.tooMany().forEach((gpu, count) -> refusal = "pid " + pid + " has " + count + " channels on GPU " + gpu
            + ", at most " + RmContext.CHANNELS_MAX + " can be held; the others stay enabled");
        prepared = builder.computeGpus();
        synchronized (publishing) {
            made = builder.build(made);
            early.removeIf(s -> observed == null || observed.knows(s));
            final boolean changed = publishWhat(observed == null ? c -> true
                : c -> observed.runs(c) || early.stream().anyMatch(s -> s.concerns(c)));
            return changed ? Result.CHANGED : Result.UNCHANGED;
        }
    }

    /** Publishes what can run of what was made. Says whether that changed. */
    private boolean publishWhat(final Predicate<RmContext.Channel> runs) {
        final Map<Integer, RmContext> next = new HashMap<>();
        unscheduled = false;
        made.forEach((gpu, all) -> {
            final RmContext c = all.only(runs);
            unscheduled |= c != all;
            if (c != null) {
                next.put(gpu, c.sameAs(contexts.get(gpu)) ? contexts.get(gpu) : c);
            }
        });
        boolean changed = next.size() != contexts.size();
        for (final Map.Entry<Integer, RmContext> e : next.entrySet()) {
            changed |= contexts.get(e.getKey()) != e.getValue();
        }
        contexts = Map.copyOf(next);
        return changed;
    }

    /**
     * Publishes channels that are seen scheduled now, without waiting for the next refresh. Any thread.
     *
     * @param what was scheduled
     * @return whether there is something new to disable
     */
    boolean publishScheduled(final RmContext.Scheduled what) {
        synchronized (publishing) {
            if (!unscheduled || made.values().stream().allMatch(c -> c.part(what, false) == null)) {
                return false;
            }
            early.add(what);
            final Map<Integer, RmContext> before = contexts;
            return publishWhat(c -> what.concerns(c)
                || before.values().stream().anyMatch(b -> b.contains(c.client(), c.handle())));
        }
    }

    private void forgetContexts() {
        synchronized (publishing) {
            made = Map.of();
            contexts = Map.of();
            unscheduled = false;
        }
    }

    /** Closes all descriptors; RM frees the clients of a dead process then. Call with the lock of {@link #refresh}. */
    void close() {
        forgetContexts();
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
