/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Judges a run after the fact, from two sources that do not know of each other: the daemon's journal (what it claims)
 * and the virtual GPU's execution log (what ran). Windows are counted from the moment in which a preemptive policy was
 * chosen. In them the window's process alone may run, and a task of higher rank that began without waiting, from that
 * begin, by its own clock, until the daemon received it: its context stays enabled. Where the watchdog enabled all
 * contexts because the daemon was silent, nothing was enforced from then until the daemon learned of it. The virtual
 * GPU may hear of a process's death after the daemon: what that process ran when it died may run until it is removed.
 */
public final class InvariantCheck {
    /**
     * What was found.
     *
     * @param overlaps    executions of another context inside a window that was reported as enforced, and instants at
     *                    which two real-time segments were running
     * @param windows     windows examined
     * @param spans       executions examined
     * @param journalGaps events missing in the journal
     * @param begins      BEGIN events by pid
     * @param details     the first overlaps, one line each
     */
    public record Finding(int overlaps, int windows, int spans, long journalGaps, Map<Integer, Long> begins,
        List<String> details) {
    }

    private record Window(long fromNs, long toNs, int pid, int priority) {
    }

    /** A begin that did not wait, and when the daemon received it. */
    private record Ahead(int pid, int priority, long beginNs, long heardNs) {
    }

    /** The daemon learned that a process is dead. */
    private record Death(int pid, long heardNs) {
    }

    private static final int DETAILS_MAX = 10;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<Integer, Integer> pidOfClient = new HashMap<>();
    private final Map<Integer, Integer> priorityOfTask = new HashMap<>();
    private final Map<Integer, Long> begins = new HashMap<>();
    private final Map<Integer, Integer> running = new HashMap<>();
    private final List<Window> windows = new ArrayList<>();
    private final List<Ahead> ahead = new ArrayList<>();
    private final List<Death> deaths = new ArrayList<>();
    private final List<String> details = new ArrayList<>();
    private boolean judging;
    private long openNs;
    private int openTask;
    private int openPid;
    private long lastNs;
    private long lastSeq;
    private long gaps;
    private int overlaps;

    /** Under deadlines no context of an idle task stays enabled. */
    private final boolean priorityDecides;

    private InvariantCheck(final boolean priorityDecides) {
        this.priorityDecides = priorityDecides;
    }

    /**
     * Examines a finished run.
     *
     * @param journal  directory
     * @param spanLog  execution log of the virtual GPU
     * @param judgedPolicy windows count while this policy is in force
     * @return the finding
     * @throws IOException if the log cannot be read
     */
    public static Finding of(final Path journal, final Path spanLog, final String judgedPolicy) throws IOException {
        final InvariantCheck check = new InvariantCheck(PolicyCatalog.builtIn().find(judgedPolicy)
            .filter(row -> row.needs().contains(TaskNeed.DEADLINE)).isEmpty());
        JournalReader.forEach(journal, event -> check.onEvent(event, judgedPolicy));
        check.close(check.lastNs);
        final int spans = check.compare(Files.readAllBytes(spanLog));
        return new Finding(check.overlaps, check.windows.size(), spans, check.gaps, check.begins,
            check.details);
    }

    private void onEvent(final JournalEvent event, final String judgedPolicy) {
        final EventKind kind = event.kind();
        if (kind == EventKind.START) {
            lastSeq = 0;
        }
        gaps += event.seq() - lastSeq - 1;
        lastSeq = event.seq();
        if (event.timeNs() > lastNs) {
            // a newcomer that was granted and preempted within one event never ran
            if (judging && running.size() > 1) {
                overlap("tasks " + running.keySet() + " were granted at " + lastNs + " ns");
            }
            lastNs = event.timeNs();
        }
        if (kind == null) {
            return;
        }
        final int task = event.taskId();
        switch (kind) {
            case START -> judging = event.text().contains("\"policy\":\"" + judgedPolicy + "\"");
            case POLICY -> {
                if (event.text().startsWith("policy ")) {
                    judging = event.text().equals("policy " + judgedPolicy);
                    close(event.timeNs());
                }
            }
            case CLIENT_OPEN -> pidOfClient.put(event.clientId(), (int) event.arg0());
            case CONTEXT_CLOSE -> deaths.add(new Death((int) event.arg0(), event.timeNs()));
            case TASK_OPEN -> priorityOfTask.put(task, gpuPriority(event));
            case PRIORITY -> priorityOfTask.put(task, (int) event.arg1());
            case BEGIN -> {
                final int pid = pidOfClient.getOrDefault(event.clientId(), 0);
                begins.merge(pid, 1L, Long::sum);
                if (priorityDecides && (event.flags() & Abi.FLAG_OPTIMISTIC) != 0) {
                    ahead.add(new Ahead(pid, priorityOfTask.getOrDefault(task, 0), event.arg0(), event.timeNs()));
                }
            }
            case GRANT, RESUME -> {
                if (priorityOfTask.getOrDefault(task, 0) > 0) {
                    running.put(task, event.contextId());
                }
            }
            case ENFORCED -> {
                if (judging) {
                    close(event.timeNs());
                    openNs = event.timeNs();
                    openTask = task;
                    openPid = pidOfClient.getOrDefault(event.clientId(), 0);
                }
            }
            case PREEMPT, END, CANCEL, OVERRUN, TASK_CLOSE -> {
                running.remove(task);
                if (openTask == task) {
                    close(event.timeNs());
                }
            }
            case WATCHDOG -> {
                close(event.timeNs());
                released(event.arg1() == 0 ? event.timeNs() : event.arg1());
            }
            case STOP -> close(event.timeNs());
            default -> {
                // says nothing about windows
            }
        }
    }

    /** What ranks its segments; the event's own number is the priority of its threads. */
    private static int gpuPriority(final JournalEvent event) {
        try {
            return JSON.readTree(event.text()).path("gpu_priority").asInt((int) event.arg0());
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("journal: TASK_OPEN of task " + event.taskId() + " is no JSON: "
                + event.text(), e);
        }
    }

    private void overlap(final String text) {
        overlaps++;
        if (details.size() < DETAILS_MAX) {
            details.add(text);
        }
    }

    private void close(final long toNs) {
        if (openTask != 0) {
            windows.add(new Window(openNs, toNs, openPid, priorityOfTask.getOrDefault(openTask, 0)));
            openTask = 0;
        }
    }

    /** No window since then was enforced, whatever the daemon believed. */
    private void released(final long fromNs) {
        for (int w = windows.size() - 1; w >= 0 && windows.get(w).toNs() > fromNs; w--) {
            final Window window = windows.remove(w);
            if (window.fromNs() < fromNs) {
                windows.add(new Window(window.fromNs(), fromNs, window.pid(), window.priority()));
            }
        }
    }

    /** Both lists are in order of time, and windows do not overlap: one pass. */
    private int compare(final byte[] log) {
        final ByteBuffer in = ByteBuffer.wrap(log).order(ByteOrder.LITTLE_ENDIAN);
        final int count = log.length / Abi.SimSpan.SIZE;
        int first = 0;
        for (int i = 0; i < count; i++) {
            final int at = i * Abi.SimSpan.SIZE;
            final long startNs = in.getLong(at + Abi.SimSpan.START_NS_OFFSET);
            final long endNs = in.getLong(at + Abi.SimSpan.END_NS_OFFSET);
            final int pid = in.getInt(at + Abi.SimSpan.PID_OFFSET);
            final boolean removed = in.getInt(at + Abi.SimSpan.FLAGS_OFFSET) == 0;
            while (first < windows.size() && windows.get(first).toNs() <= startNs) {
                first++;
            }
            for (int w = first; w < windows.size() && windows.get(w).fromNs() < endNs; w++) {
                if (windows.get(w).pid() != pid && !mayRun(pid, startNs, endNs, windows.get(w))
                    && !(removed && diedBefore(pid, startNs, windows.get(w)))) {
                    overlap("process " + pid + " ran " + startNs + ".." + endNs + " ns in the window of process "
                        + windows.get(w).pid() + ", " + windows.get(w).fromNs() + ".." + windows.get(w).toNs() + " ns");
                }
            }
        }
        return count;
    }

    /** True if the process was executing when the daemon learned of its death, and that was before the window. */
    private boolean diedBefore(final int pid, final long startNs, final Window window) {
        return deaths.stream()
            .anyMatch(d -> d.pid() == pid && startNs <= d.heardNs() && d.heardNs() <= window.fromNs());
    }

    /** True if the overlap falls between the task's begin and the moment the daemon received it. */
    private boolean mayRun(final int pid, final long startNs, final long endNs, final Window window) {
        final long fromNs = Math.max(startNs, window.fromNs());
        final long toNs = Math.min(endNs, window.toNs());
        return ahead.stream().anyMatch(a -> a.pid() == pid
            && Priority.isHigherThan(a.priority(), window.priority()) && a.beginNs() <= fromNs && toNs <= a.heardNs());
    }
}
