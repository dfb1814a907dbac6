/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What taking the others off the GPU cost the daemon, step by step from its journal, beside the bare driver call. */
public final class EnforcementCosts {
    /** From the client's record to the dispatcher that read it. */
    private static final String TO_DAEMON = "record_to_dispatcher";
    /** Decision, held file, wake-up of the enforcer. */
    private static final String TO_CALL = "dispatcher_to_call";
    /** The driver calls of one segment, first begin to last end. */
    private static final String CALL = "call";
    /** Until the dispatcher knew. */
    private static final String TO_TOLD = "call_to_dispatcher";
    /** Until the grant word was written; blocking begins only. */
    private static final String TO_GRANT = "dispatcher_to_grant";
    /** Until the caller went on; blocking begins only. */
    private static final String TO_RETURN = "grant_to_return";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** One begin of the task. */
    public static final class Begin {
        private final long ticket;
        private final long clientNs;
        private final long readNs;
        private long callNs = Long.MAX_VALUE;
        private long callEndNs = Long.MIN_VALUE;
        private long toldNs;
        private long grantNs;
        private int disabled;

        Begin(final JournalEvent event) {
            ticket = event.ticket();
            clientNs = event.arg0();
            readNs = event.timeNs();
        }

        /** From the first driver call's begin to the last one's end; 0 = there was none. */
        public long callsNs() {
            return disabled == 0 ? 0 : callEndNs - callNs;
        }

        /** Contexts that the driver took off. */
        public int disabled() {
            return disabled;
        }
    }

    private EnforcementCosts() {
    }

    /**
     * Adds {@code calls_ns} (every disable while the task lived, one figure per driver call) and {@code steps_ns} to a
     * cell. The steps are those of begins that found a context to disable.
     *
     * @param journal  of the daemon, which has stopped
     * @param taskName of the cell
     * @param samples  of the cell: the times of begin as its caller saw them
     * @param cell     gets the figures
     */
    static void describe(final Path journal, final String taskName, final Path samples, final ObjectNode cell)
        throws IOException {
        final TreeMap<Long, Long> calls = new TreeMap<>();
        final List<Begin> begins = begins(journal, taskName, calls);
        cell.set("calls_ns", figures(calls.values().stream().mapToLong(Long::longValue).toArray()));
        final Map<String, List<Long>> steps = new LinkedHashMap<>();
        final long[] seen = beginTimes(samples);
        for (int i = 0; i < begins.size(); i++) {
            final Begin b = begins.get(i);
            if (b.toldNs == 0) {
                continue;   // the others were off already
            }
            add(steps, TO_DAEMON, b.readNs - b.clientNs);
            add(steps, TO_CALL, b.callNs - b.readNs);
            add(steps, CALL, b.callEndNs - b.callNs);
            add(steps, TO_TOLD, b.toldNs - b.callEndNs);
            if ("wait".equals(cell.path("mode").asText()) && b.grantNs > 0) {
                add(steps, TO_GRANT, b.grantNs - b.toldNs);
                if (seen.length == begins.size()) {
                    add(steps, TO_RETURN, b.clientNs + seen[i] - b.grantNs);
                }
            }
        }
        final ObjectNode into = cell.putObject("steps_ns");
        steps.forEach((step, values) ->
            into.set(step, figures(values.stream().mapToLong(Long::longValue).toArray())));
    }

    /** The begins of a task, in their order; adds what disables took while it was open, by the begin of the call. */
    public static List<Begin> begins(final Path journal, final String taskName, final Map<Long, Long> calls) {
        final List<Begin> begins = new ArrayList<>();
        final int[] task = {-1};
        final boolean[] open = {false};
        final Begin[] current = {null};
        JournalReader.forEach(journal, event -> {
            final EventKind kind = event.kind();
            if (kind == EventKind.TASK_OPEN && taskName.equals(name(event))) {
                task[0] = event.taskId();
                open[0] = true;
            } else if (kind == EventKind.TASK_CLOSE && event.taskId() == task[0]) {
                open[0] = false;
            } else if (open[0]) {
                follow(event, task[0], calls, begins, current);
            }
        });
        return begins;
    }

    /**
     * What it took to bring others back, once for each update, from the journal of a daemon that served one task.
     *
     * @param journal of a daemon that has stopped
     * @return the driver's calls of each update, added, ns; none of before the first disable
     */
    public static List<Long> returns(final Path journal) {
        final Returns returns = new Returns();
        JournalReader.forEach(journal, event -> {
            if (event.kind() == EventKind.DISABLE) {
                returns.disabled();
            } else if (event.kind() == EventKind.ENABLE) {
                returns.enabled(event.arg0(), event.arg1());
            }
        });
        return returns.sums();
    }

    private static void follow(final JournalEvent event, final int task, final Map<Long, Long> calls,
        final List<Begin> begins, final Begin[] current) {
        final EventKind kind = event.kind();
        final Begin begin = current[0];
        if (kind == EventKind.DISABLE && event.arg1() > 0) {   // 0: a process without work on the GPU, no call
            calls.put(event.arg0(), event.arg1());   // contexts of one call share its times
            if (begin != null && event.arg0() - begin.clientNs >= 0) {
                begin.callNs = Math.min(begin.callNs, event.arg0());
                begin.callEndNs = Math.max(begin.callEndNs, event.arg0() + event.arg1());
                begin.toldNs = event.arg2();
                begin.disabled++;
            }
        } else if (event.taskId() == task && kind == EventKind.BEGIN) {
            current[0] = new Begin(event);
            begins.add(current[0]);
        } else if (event.taskId() == task && begin != null && event.ticket() == begin.ticket) {
            if (kind == EventKind.GRANT) {
                begin.grantNs = event.timeNs();
            } else if (kind == EventKind.END) {
                current[0] = null;
            }
        }
    }

    private static String name(final JournalEvent event) {
        try {
            return JSON.readTree(event.text()).path("name").asText();
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("journal: attributes of task " + event.taskId() + " are not JSON: "
                + event.text(), e);
        }
    }

    /** Column begin_ns of a file of samples. */
    public static long[] beginTimes(final Path samples) throws IOException {
        final List<String> lines = Files.readAllLines(samples);
        final int column = Arrays.asList(lines.get(0).split(",")).indexOf("begin_ns");
        return lines.stream().skip(1).mapToLong(line -> Long.parseLong(line.split(",")[column])).toArray();
    }

    private static void add(final Map<String, List<Long>> steps, final String step, final long ns) {
        steps.computeIfAbsent(step, k -> new ArrayList<>()).add(ns);
    }

    /** n, p50, p99, max; sorts the values. */
    public static ObjectNode figures(final long[] values) {
        Arrays.sort(values);
        final ObjectNode figures = JsonNodeFactory.instance.objectNode().put("n", values.length);
        if (values.length > 0) {
            figures.put("p50", values[values.length / 2]).put("p99", values[(int) (values.length * 0.99)])
                .put("max", values[values.length - 1]);
        }
        return figures;
    }

    /**
     * The daemon beside the bare call, of the cells of one number of processes.
     *
     * @param cells of a scenario
     * @param first index of the first of them
     * @return ratios; empty without a bare call
     */
    static ObjectNode compare(final ArrayNode cells, final int first) {
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        final JsonNode bare = find(cells, first, GpuStrategy.BARE_BLOCKING).path("begin_ns");
        final JsonNode blocking = find(cells, first, GpuStrategy.BLOCKING);
        if (bare.isMissingNode() || !blocking.has("begin_ns")) {
            return result;
        }
        result.set("bare_call_ns", bare);
        result.set("begin_to_grant_ns", blocking.path("begin_ns"));
        result.set("daemon_call_ns", blocking.path("calls_ns"));
        result.set("steps_ns", blocking.path("steps_ns"));
        for (final String figure : List.of("p50", "p99")) {
            final double floor = bare.path(figure).asDouble();
            result.put("begin_to_bare_" + figure, GpuBench.rounded(blocking.path("begin_ns").path(figure).asDouble()
                / floor));
            if (blocking.path("calls_ns").has(figure)) {
                result.put("call_to_bare_" + figure,
                    GpuBench.rounded(blocking.path("calls_ns").path(figure).asDouble() / floor));
            }
        }
        return result;
    }

    private static JsonNode find(final ArrayNode cells, final int first, final GpuStrategy strategy) {
        for (int i = first; i < cells.size(); i++) {
            if (strategy.title().equals(cells.get(i).path("strategy").asText())) {
                return cells.get(i);
            }
        }
        return JsonNodeFactory.instance.missingNode();
    }
}
