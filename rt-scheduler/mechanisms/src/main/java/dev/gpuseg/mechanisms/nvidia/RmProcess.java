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
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import org.agrona.collections.IntHashSet;

/**
 * One process and what it made with RM. {@link #refresh} examines it from outside: it duplicates the control
 * descriptors of the process, finds the RM clients that belong to them and updates each {@link RmClient}.
 *
 * <p>On an H200 with driver 580.159.04 a first refresh took 28 ms (9,242 questions of about 3 us). Later ones ask a few
 * hundred questions. A full one follows every ten seconds, and after RM refused a channel.
 *
 * <p>Thread-safety: one thread refreshes and closes; {@link #context} may be called by any thread. Descriptors that are
 * replaced go to the caller's {@link ControlCloser}.
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
    private static final int FILES_USUAL = 4;
    private static final RmContext[] NO_CONTEXTS = {};

    private final int pid;
    private final int pidfd;
    private final RmScan scan;
    private final RmControl rm;
    private final Runnable interlude;
    private final List<ControlFile> files = new ArrayList<>(FILES_USUAL);
    /** Numbers of these files inside the process. */
    private final IntHashSet fileNumbers = new IntHashSet();
    private final List<RmClient> clients = new ArrayList<>(FILES_USUAL);
    /** Those of before, in a full refresh: what they have allocated is used again. */
    private final List<RmClient> former = new ArrayList<>(0);
    /** By GPU, without the last ones that are null; an array is not changed. */
    private volatile RmContext[] contexts = NO_CONTEXTS;
    /** Guards what follows, and changes of the contexts. */
    private final Object publishing = new Object();
    /** Contexts with the channels that were not scheduled yet. */
    private RmContext[] made = NO_CONTEXTS;
    /** Scheduled, as one who sees it first has said, and not yet known to be by the thread that refreshes. */
    private final List<RmContext.Scheduled> early = new ArrayList<>(0);
    /** GPUs on which it has a channel group for compute or graphics: channels are going to follow, or have. */
    private final BitSet prepared = new BitSet();
    private volatile String refusal = "";
    private static volatile int newestClient = CLIENT_BASE;
    private long lastFullNs;
    private int fullRefreshes;
    private volatile boolean stale;
    /** RM refused something of it: what it says is not used before RM has said the same. For good. */
    private volatile boolean doubted;
    /** RM was, and is, asked for all that the observer sees: since the first full refresh after a refusal. */
    private boolean asked;
    private volatile boolean unscheduled;
    /** Has the control device open, but only inherited or received: a forked child, or a process that examines it. */
    private boolean borrows;
    /** An answer of this refresh was neither yes nor no. */
    private boolean unsure;

    private RmProcess(final int pid, final int pidfd, final RmScan scan, final Runnable interlude) {
        this.pid = pid;
        this.pidfd = pidfd;
        this.scan = scan;
        rm = scan == null ? null : scan.rm;
        this.interlude = interlude;
    }

    /** Names processes that may own an open file that another process shares. */
    interface OlderProcesses {
        /** Descriptors of the control device in processes that are older than this one. Valid until the next call. */
        OpenFiles than(int pid);
    }

    /**
     * Opens a process.
     *
     * @param scan      memory for the examination, of the thread that refreshes
     * @param interlude called again and again while it is searched, by the same thread: a search of thousands of
     *                  questions takes seconds where many processes want the driver
     * @return null if there is no such process
     */
    static RmProcess open(final int pid, final RmScan scan, final Runnable interlude) {
        final int pidfd = SystemCalls.pidfdOpen(pid);
        return pidfd < 0 ? null : new RmProcess(pid, pidfd, scan, interlude);
    }

    /** The same with memory of its own. */
    static RmProcess open(final int pid, final GpuIndex gpus, final Scope scope, final RmControl rm,
        final Runnable interlude) {
        return open(pid, new RmScan(gpus, scope, rm), interlude);
    }

    /** The same for one who does nothing else meanwhile. */
    static RmProcess open(final int pid, final GpuIndex gpus, final Scope scope, final RmControl rm) {
        return open(pid, gpus, scope, rm, () -> { });
    }

    /** A made-up process with this context. It has no descriptors, and is never refreshed or closed. */
    static RmProcess pretended(final RmContext context) {
        final RmProcess p = new RmProcess(0, -1, null, () -> { });
        p.contexts = new RmContext[context.gpu() + 1];
        p.contexts[context.gpu()] = context;
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
        return RmContext.on(gpu, contexts);
    }

    /** Whether it has channels on a GPU, or a group that is going to have some. */
    boolean preparesFor(final int gpu) {
        return context(gpu) != null || prepared.get(gpu);
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
        return contexts.length == 0;
    }

    /** Adds its own control descriptors. */
    void addFilesTo(final OpenFiles list) {
        for (int i = 0; i < files.size(); i++) {
            list.add(pid, files.get(i).remoteFd());
        }
    }

    /** Whether the next refresh must be a full one, as soon as possible. */
    boolean isStale() {
        return stale;
    }

    /** Asks for a full refresh: RM refused something that was known. Any thread. */
    void invalidate() {
        doubted = true;
        stale = true;
    }

    /**
     * Examines the process again.
     *
     * @param nowNs  CLOCK_MONOTONIC
     * @param closer receives descriptors that the application closed
     * @param older  processes whose open files are not this process's own, though it shares them
     * @return what became of it
     */
    Result refresh(final long nowNs, final ControlCloser closer, final OlderProcesses older) {
        if (!readLinks()) {
            return Result.GONE;
        }
        final boolean taken = takeFiles(closer, older, null);
        if (files.isEmpty()) {
            return refusal.isEmpty() ? publish(null) : Result.REFUSED;
        }
        final CaptureReport report = completeReport();
        final boolean full = taken || stale || hasNoWork() || nowNs - lastFullNs >= FULL_REFRESH_NS;
        if (taken) {
            fullRefreshes = 0;
        }
        unsure = false;
        if (full) {
            lastFullNs = nowNs;
            stale = false;
            forgetClients();
            findClients(report);
            former.clear();
            fullRefreshes++;
        }
        for (int i = 0; i < clients.size(); i++) {
            unsure |= !clients.get(i).update(rm, report, full, interlude);
        }
        if (unsure) {
            stale = true;   // what was known stays until a refresh gets clear answers
            return Result.UNCHANGED;
        }
        return publish(null);
    }

    /** The same where no other process is known. */
    Result refresh(final long nowNs, final ControlCloser closer) {
        final OpenFiles none = new OpenFiles();
        return refresh(nowNs, closer, x -> none);
    }

    /**
     * The same for a process of which the observer has seen everything: only what it made is asked for.
     *
     * @param nowNs    CLOCK_MONOTONIC
     * @param closer   as above
     * @param older    as above
     * @param observed what was seen; gives up where RM contradicts it
     * @return what became of it
     */
    Result refreshObserved(final long nowNs, final ControlCloser closer, final OlderProcesses older,
        final ObservedProcess observed) {
        final boolean due = nowNs - lastFullNs >= FULL_REFRESH_NS;
        boolean shown = false;
        if (observed.takeFilesChanged() || due || stale || files.isEmpty() && observed.hasNews()) {
            shown = readLinks();
            if (!shown && files.isEmpty()) {
                return Result.GONE;
            }
            if (shown) {   // else its descriptors were duplicated before, and may still be used by its threads
                takeFiles(closer, older, observed);
            }
            lastFullNs = nowNs;
        }
        if (files.isEmpty()) {
            if (shown && !borrows && refusal.isEmpty()) {
                observed.forgetClosed();   // CUDA opens the device, makes a client, and closes it again
                stale = false;
            } else if (observed.hasNews()) {
                observed.giveUp();   // through a descriptor that is not its own
            }
            return refusal.isEmpty() ? publish(observed) : Result.REFUSED;
        }
        unsure = false;
        if (stale) {
            stale = false;
            asked = doubted;
            forgetClients();
            observed.clearNews();
            for (final Observation o : observed.objects()) {
                take(o, observed);
                if (!observed.isWhole()) {
                    break;   // it has forgotten them
                }
            }
            former.clear();
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
            unsure |= !client.made(rm, o.handle(), o.parent(), o.classId(), o.engine() == RmClient.ENGINE_GR0,
                scan.scope, asked);
        } else if (!unsure && observed.isWhole()) {
            observed.giveUp();   // an object of a client that RM does not know here
        }
    }

    private void takeClient(final Observation o) {
        final int before = clients.size();
        for (final ControlFile file : files) {   // that of the call first
            if (file.remoteFd() == o.fd()) {
                tryClient(file, o.client());
            }
        }
        for (final ControlFile file : files) {
            if (clients.size() == before && file.remoteFd() != o.fd()) {
                tryClient(file, o.client());
            }
        }
    }

    private RmClient client(final int handle) {
        for (int i = 0; i < clients.size(); i++) {
            if (clients.get(i).handle() == handle) {
                return clients.get(i);
            }
        }
        return null;
    }

    /** They are going to be found again, or not. */
    private void forgetClients() {
        former.clear();
        former.addAll(clients);
        clients.clear();
    }

    static boolean isControl(final int pid, final RemoteDescriptors.Link link) {
        return link.is(CONTROL_DEVICE) && CONTROL.leadsTo(pid, link.fd(), CONTROL_DEVICE);
    }

    /** Reads the descriptors that matter; false if the process has ended, or shows none since its main thread has. */
    private boolean readLinks() {
        try {
            scan.links.read(pid);
        } catch (final AccessDeniedException e) {
            refusal = "descriptors of pid " + pid + " cannot be read; run the daemon as root or as the same user";
            return true;
        } catch (final IOException e) {
            return false;
        }
        return !scan.links.isEmpty() || !RemoteDescriptors.mainThreadEnded(pid);
    }

    private boolean takeFiles(final ControlCloser closer, final OlderProcesses others, final ObservedProcess observed) {
        final ControlLinks links = scan.links;
        boolean changed = dropClosed(closer);
        String refused = "";
        borrows = false;
        OpenFiles older = null;
        for (int i = 0; i < links.controls().size(); i++) {
            final int remote = links.controls().getInt(i);
            if (fileNumbers.contains(remote)) {
                continue;
            }
            if (observed == null || !observed.opened(remote)) {
                older = older == null ? others.than(pid) : older;
                if (older.contain(pid, remote)) {
                    // a forked child shares its parent's open file. What was made through it is the parent's work: if
                    // it also counted as the child's, the parent would be disabled for its own segment
                    borrows = true;
                    continue;
                }
            }
            final int fd = CONTROL.duplicate(pid, pidfd, remote, CONTROL_DEVICE);
            if (fd >= 0) {
                files.add(new ControlFile(fd, remote));
                fileNumbers.add(remote);
                changed = true;
            } else if (fd != -Errno.EBADF && fd != -Errno.ESRCH && fd != DeviceFile.FOREIGN) {
                refused = "pidfd_getfd of pid " + pid + ": errno " + -fd
                    + "; the daemon needs CAP_SYS_PTRACE (run it as root) and a kernel of 5.6 or later";
            }
        }
        if (!links.isEmpty() || refusal.isEmpty()) {
            refusal = refused;
        }
        return changed;
    }

    /** Drops the files that the process has closed. Whether there was one. */
    private boolean dropClosed(final ControlCloser closer) {
        final int before = files.size();
        for (int i = files.size() - 1; i >= 0; i--) {
            final ControlFile file = files.get(i);
            if (!scan.links.isControl(file.remoteFd()) || !file.stillOpenIn(pid)) {
                files.remove(i);
                fileNumbers.remove(file.remoteFd());
                drop(file, closer);
            }
        }
        return files.size() < before;
    }

    private void drop(final ControlFile file, final ControlCloser closer) {
        clients.removeIf(c -> c.file() == file);
        closer.retire(List.of(file), this::forgetContexts);   // publish() adds the contexts of other files again
        stale = true;
    }

    /** The application's own report; null if there is none, or one that lacks objects. */
    private CaptureReport completeReport() {
        final CaptureReport report = scan.report;
        for (int i = 0; i < scan.links.reports().size(); i++) {
            if (report.read(pid, scan.links.reports().getInt(i))) {
                return report.complete() ? report : null;
            }
        }
        return null;
    }

    private void findClients(final CaptureReport report) {
        scan.known.clear();
        for (int i = 0; i < former.size(); i++) {
            scan.known.addInt(former.get(i).handle());
        }
        for (int f = 0; f < files.size(); f++) {
            final ControlFile file = files.get(f);
            final int before = clients.size();
            if (report != null) {
                tryNamed(file, report);
            }
            for (int i = 0; i < scan.known.size(); i++) {
                tryClient(file, scan.known.getInt(i));
            }
            if (clients.size() == before) {
                // numbers grow: a new process's are near those seen last
                final int near = Math.max(0, newestClient - CLIENT_BASE - CLIENT_NEAR);
                tryClients(file, near, near + 4 * CLIENT_NEAR);
            }
            if (clients.size() == before && fullRefreshes % REFRESHES_PER_SEARCH == 0) {
                tryClients(file, 0, CLIENT_SCAN);
            }
            if (clients.size() == before && file.countEmptyRefresh() == WIDE_AFTER_REFRESHES) {
                // a machine that has been up for long has used up the low numbers; seconds, once per descriptor
                tryClients(file, CLIENT_SCAN, CLIENT_SCAN_WIDE);
            }
        }
    }

    private void tryNamed(final ControlFile file, final CaptureReport report) {
        scan.named.clear();
        for (int i = 0; i < report.size(); i++) {
            if (report.exists(i) && scan.named.add(report.client(i))) {
                tryClient(file, report.client(i));
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
            clients.add(clientOf(file, client));
            newestClient = Math.max(newestClient, client);
        }
    }

    private RmClient clientOf(final ControlFile file, final int client) {
        for (int i = 0; i < former.size(); i++) {
            final RmClient known = former.get(i);
            if (known.file() == file && known.handle() == client) {
                known.forget();
                return known;
            }
        }
        return new RmClient(file, client);
    }

    /** Builds the contexts from what is known, and says whether they changed. If observed, of what can run. */
    private Result publish(final ObservedProcess observed) {
        final ContextBuilder builder = scan.contexts;
        builder.clear();
        for (int i = 0; i < clients.size(); i++) {
            builder.add(clients.get(i));
        }
        for (int gpu = 0; gpu < builder.gpus(); gpu++) {
            if (builder.channels(gpu) > RmContext.CHANNELS_MAX) {
                refusal = "pid " + pid + " has " + builder.channels(gpu) + " channels on GPU " + gpu + ", at most "
                    + RmContext.CHANNELS_MAX + " can be held; the others stay enabled";
            }
        }
        builder.markCompute(prepared);
        synchronized (publishing) {
            made = builder.build(made, observed == null || asked);
            if (observed == null) {
                early.clear();
            } else {
                early.removeIf(observed::knows);
            }
            final boolean changed = publishWhat(observed == null ? RmContext.Choice.ALL
                : (client, channel, group) -> observed.runs(client, channel, group)
                    || isEarly(client, channel, group));
            return changed ? Result.CHANGED : Result.UNCHANGED;
        }
    }

    private boolean isEarly(final int client, final int channel, final int group) {
        boolean found = false;
        for (int i = 0; !found && i < early.size(); i++) {
            found = early.get(i).takes(client, channel, group);
        }
        return found;
    }

    /** Publishes what can run of what was made. Says whether that changed. */
    private boolean publishWhat(final RmContext.Choice runs) {
        final RmContext[] before = contexts;
        RmContext[] next = before;
        unscheduled = false;
        int length = 0;
        for (int gpu = 0; gpu < Math.max(made.length, before.length); gpu++) {
            final RmContext all = RmContext.on(gpu, made);
            final RmContext was = RmContext.on(gpu, before);
            final RmContext c = all == null ? null : all.only(runs);
            unscheduled |= c != all;
            length = c == null ? length : gpu + 1;
            if (c == null ? was != null : !c.sameAs(was)) {
                next = next == before ? Arrays.copyOf(before, Math.max(made.length, before.length)) : next;
                next[gpu] = c;
            }
        }
        if (next != before) {
            contexts = length == 0 ? NO_CONTEXTS : length == next.length ? next : Arrays.copyOf(next, length);
        }
        return next != before;
    }

    /**
     * Publishes channels that are seen scheduled now, without waiting for the next refresh. Any thread.
     *
     * @param what was scheduled
     * @return whether there is something new to disable
     */
    boolean publishScheduled(final RmContext.Scheduled what) {
        synchronized (publishing) {
            if (!unscheduled || !concernsMade(what)) {
                return false;
            }
            early.add(what);
            final RmContext[] before = contexts;
            return publishWhat((client, channel, group) -> what.takes(client, channel, group)
                || isAmong(before, client, channel));
        }
    }

    private boolean concernsMade(final RmContext.Scheduled what) {
        boolean found = false;
        for (int gpu = 0; !found && gpu < made.length; gpu++) {
            found = made[gpu] != null && made[gpu].part(what, false) != null;
        }
        return found;
    }

    private static boolean isAmong(final RmContext[] all, final int client, final int channel) {
        boolean found = false;
        for (int gpu = 0; !found && gpu < all.length; gpu++) {
            found = all[gpu] != null && all[gpu].contains(client, channel);
        }
        return found;
    }

    private void forgetContexts() {
        synchronized (publishing) {
            made = NO_CONTEXTS;
            contexts = NO_CONTEXTS;
            unscheduled = false;
        }
    }

    /** Ends its use where nothing else uses it. */
    void close() {
        close(ControlCloser.inPlace(), () -> { }, null);
    }

    /**
     * Ends its use.
     *
     * @param closer closes its descriptors; RM frees the clients of a dead process then
     * @param forget makes others find it no more; under the closer's lock
     * @param had    what is to be enabled before, because it has died; null = nothing
     */
    void close(final ControlCloser closer, final Runnable forget, final RmContext had) {
        closer.retire(files, () -> {
            forget.run();
            forgetContexts();
        }, had);
        files.clear();
        fileNumbers.clear();
        clients.clear();
        SystemCalls.closeOnce(pidfd);
    }

    @Override
    public String toString() {
        return "pid " + pid + ", " + files.size() + " control descriptors, " + clients.size() + " clients, channels "
            + Arrays.toString(Arrays.stream(contexts).filter(Objects::nonNull).mapToInt(RmContext::channelCount)
                .toArray());
    }
}
