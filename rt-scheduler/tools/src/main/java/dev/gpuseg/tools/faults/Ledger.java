/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Compares what applications know to be recorded with what the journal has, process by process.
 *
 * <p>A record is acknowledged when the daemon has answered it (a begin that waited for its grant), or when it was
 * appended to a queue whose daemon lives on to read it. Records in the queue of a daemon that is killed are not: the
 * process is told that its daemon is gone, and {@link #daemonWent} takes them out of the account, the answered ones
 * excepted. One thread.
 */
public final class Ledger implements AutoCloseable {
    /**
     * A real-time segment had the GPU: from grant or resumption to preemption or end, or until its budget was used up.
     *
     * @param pid    its process
     * @param fromNs when it got it
     * @param toNs   when it lost it; {@link Long#MAX_VALUE} while it has it
     */
    public record Window(int pid, long fromNs, long toNs) {
    }

    private static final int BATCH = 4096;

    /** Counts of one process. */
    private static final class Account {
        private long begins;
        private long answered;
        private long ends;
        private long forgivenBegins;
        private long forgivenEnds;
        private long forgivenAnswered;
        // as the last start of a daemon found them: what is counted after it is the successor's
        private long startBegins;
        private long startAnswered;
        private long startEnds;

        void daemonStarts() {
            startBegins = begins;
            startAnswered = answered;
            startEnds = ends;
        }
    }

    private final JournalReader reader;
    private final List<ProgressPage> pages = new ArrayList<>();
    private final Map<Integer, Account> accounts = new HashMap<>();
    private final Map<Integer, Integer> pidOfClient = new HashMap<>();
    private final Set<Integer> excluded = new HashSet<>();
    private final Set<Integer> left = new HashSet<>();
    private Map<Integer, long[]> asked = Map.of();
    private final Map<Integer, Integer> priorityOfTask = new HashMap<>();
    private final Map<Integer, Window> open = new HashMap<>();
    private final List<Window> windows = new ArrayList<>();
    private long lastSeq;
    private long gaps;
    private long lastStartNs;

    /** Opens the directory of a journal; a daemon that uses it is ready. */
    public Ledger(final Path journal) {
        reader = new JournalReader(journal);
    }

    /** Counts a task in; its page stays open as long as this ledger. */
    public void add(final ProgressPage page) {
        pages.add(page);
    }

    /** Leaves a process out: the daemon is right to drop what it wrote. */
    public void exclude(final int pid) {
        excluded.add(pid);
    }

    /** Closes the accounts of processes that are over. After {@link #missing} has said 0. */
    public void remove(final ProgressPage page) {
        if (pages.remove(page) && pages.stream().noneMatch(other -> other.pid() == page.pid())) {
            // another process may get its pid, and has accounts of its own
            accounts.remove(page.pid());
            excluded.remove(page.pid());
            left.remove(page.pid());
        }
    }

    /** Whether the daemon has dropped a client, or seen it leave, as far as written. */
    public boolean hasLeft(final int pid) {
        read();
        return left.contains(pid);
    }

    /** Reads what the journal has got since. */
    public void read() {
        while (reader.poll(this::onEvent, BATCH) > 0) {
            continue;
        }
    }

    private void onEvent(final JournalEvent event) {
        final EventKind kind = event.kind();
        if (kind == EventKind.START) {
            lastSeq = 0;
            lastStartNs = event.timeNs();
            accounts.values().forEach(Account::daemonStarts);
        }
        gaps += event.seq() - lastSeq - 1;
        lastSeq = event.seq();
        if (kind != null) {
            followWindow(kind, event);
        }
        if (kind == EventKind.CLIENT_OPEN) {
            pidOfClient.put(event.clientId(), (int) event.arg0());
            left.remove((int) event.arg0());
        } else if (kind == EventKind.CLIENT_CLOSE || kind == EventKind.CLIENT_POISON) {
            left.add(pidOfClient.getOrDefault(event.clientId(), 0));
        } else if (kind == EventKind.BEGIN) {
            final Account account = account(pidOfClient.getOrDefault(event.clientId(), 0));
            account.begins++;
            if ((event.flags() & Abi.FLAG_OPTIMISTIC) == 0) {
                account.answered++;
            }
        } else if (kind == EventKind.END) {
            account(pidOfClient.getOrDefault(event.clientId(), 0)).ends++;
        }
    }

    private void followWindow(final EventKind kind, final JournalEvent event) {
        final int task = event.taskId();
        switch (kind) {
            case START -> open.clear();   // their daemon is gone, and with it whatever they held
            case TASK_OPEN -> priorityOfTask.put(task, (int) event.arg0());
            case GRANT, RESUME -> {
                if (priorityOfTask.getOrDefault(task, 0) > 0) {
                    open.put(task, new Window(pidOfClient.getOrDefault(event.clientId(), 0), event.timeNs(),
                        Long.MAX_VALUE));
                }
            }
            case PREEMPT, END, CANCEL, OVERRUN, TASK_CLOSE -> {
                final Window window = open.remove(task);
                if (window != null) {
                    windows.add(new Window(window.pid, window.fromNs, event.timeNs()));
                }
            }
            default -> {
                // no segment gets or loses the GPU
            }
        }
    }

    /**
     * When real-time segments of a process had the GPU since {@link #startAnew}, as far as read: in the order of their
     * ends, the open one last.
     */
    public List<Window> windowsOf(final int pid) {
        return windows().stream().filter(window -> window.pid == pid).toList();
    }

    /** The same of all processes, in the order of their ends; the open ones last. */
    public List<Window> windows() {
        final List<Window> all = new ArrayList<>(windows);
        all.addAll(open.values());
        return all;
    }

    /** Forgets the segments that are over. */
    public void startAnew() {
        windows.clear();
    }

    private Account account(final int pid) {
        return accounts.computeIfAbsent(pid, key -> new Account());
    }

    /** When the last daemon that the journal has seen started, as far as read: CLOCK_MONOTONIC ns, 0 if none did. */
    public long lastStartNs() {
        return lastStartNs;
    }

    /** Sequence numbers that are missing within the events of one daemon, as far as read. */
    public long gaps() {
        return gaps;
    }

    private Map<Integer, long[]> known() {
        final Map<Integer, long[]> sums = new HashMap<>();
        for (final ProgressPage page : pages) {
            if (!excluded.contains(page.pid())) {
                final long[] sum = sums.computeIfAbsent(page.pid(), key -> new long[3]);
                sum[0] += page.begins();
                sum[1] += page.answered();
                sum[2] += page.ends();
            }
        }
        return sums;
    }

    /** Asks the applications what they know to be recorded; {@link #missing} compares with this from now on. */
    public void ask() {
        asked = known();
    }

    /** Acknowledged records that the journal does not have (yet), as of {@link #ask}. */
    public long missing() {
        return missing(new StringBuilder());
    }

    /** As {@link #missing()}; says of whom, too. */
    public long missing(final StringBuilder who) {
        read();
        long missing = 0;
        for (final Map.Entry<Integer, long[]> entry : asked.entrySet()) {
            final Account account = account(entry.getKey());
            final long begins = Math.max(0, entry.getValue()[0] - account.begins - account.forgivenBegins);
            final long ends = Math.max(0, entry.getValue()[2] - account.ends - account.forgivenEnds);
            if (begins + ends > 0) {
                who.append(" process ").append(entry.getKey()).append(": ").append(begins).append(" of ")
                    .append(entry.getValue()[0]).append(" begins, ").append(ends).append(" of ")
                    .append(entry.getValue()[2]).append(" ends;");
            }
            missing += begins + ends;
        }
        return missing;
    }

    /** What is missing has been reported: it is not to be reported again. */
    public void writeOff() {
        for (final Map.Entry<Integer, long[]> entry : asked.entrySet()) {
            final Account account = account(entry.getKey());
            account.forgivenBegins += Math.max(0, entry.getValue()[0] - account.begins - account.forgivenBegins);
            account.forgivenEnds += Math.max(0, entry.getValue()[2] - account.ends - account.forgivenEnds);
        }
        gaps = 0;
    }

    /**
     * A daemon went, and its successor has started ({@link #lastStartNs}): what it had not read is taken out of the
     * account. {@link #ask} was called in between, when its applications had noticed that it is gone and no successor
     * could answer them. What the journal has after the start does not count: it is the successor's, and would hide
     * what is missing. Returns begins that it had answered and that the journal does not have.
     */
    public long daemonWent() {
        read();
        long lost = 0;
        for (final Map.Entry<Integer, long[]> entry : asked.entrySet()) {
            final Account account = account(entry.getKey());
            final long[] known = entry.getValue();
            final long unanswered = Math.max(0, known[1] - account.startAnswered - account.forgivenAnswered);
            lost += unanswered;
            account.forgivenAnswered += unanswered;
            account.forgivenBegins += Math.max(0, known[0] - account.startBegins - account.forgivenBegins);
            account.forgivenEnds += Math.max(0, known[2] - account.startEnds - account.forgivenEnds);
        }
        return lost;
    }

    @Override
    public void close() {
        reader.close();
        pages.forEach(ProgressPage::close);
    }
}
