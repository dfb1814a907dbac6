/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** Reads DISB workloads: {@link ForeignFormat#DISB}. Stateless. */
final class DisbImporter {
    /** What the file says about the run of the benchmark, not about its tasks. */
    private static final Set<String> ROOT_KEYS = Set.of("time", "tasks", "clients");
    private static final Set<String> TASK_KEYS = Set.of("id", "name", "model", "load", "client", "exec_ms",
        "latency_ms", "deadline_ms", "priority", "type", "strategy", "frequency", "interval_ms");
    private static final Set<String> LOAD_KEYS = Set.of("type", "strategy", "frequency", "interval_ms", "priority",
        "trace", "prev_task_ids");
    private static final Set<String> CLIENT_KEYS = Set.of("name", "model_name", "batch_size", "priority",
        "tfs_grpc_addr", "triton_grpc_addr");
    private static final List<String> SPACED = List.of("periodic", "uniform");
    private static final List<String> LOADS = List.of("periodic", "uniform", "poisson", "continuous", "closed",
        "closed-loop", "trace", "dependent");
    private static final long SECOND_NS = 1_000_000_000L;
    private static final int MAX_PRIORITY = 99;

    private DisbImporter() {
    }

    static List<Task> tasks(final Node root) throws InvalidFileException {
        root.requireMapping(ROOT_KEYS, "{\"tasks\": [...]}");
        if (root.get("tasks") != null && root.get("clients") != null) {
            throw root.get("clients").refuse("stands beside 'tasks'; write one list");
        }
        final Node list = root.get("clients") != null ? root.get("clients") : root.get("tasks");
        if (list == null) {
            throw root.refuse("has no list 'tasks' (or 'clients'); this importer reads DISB workloads");
        }
        final List<Task> tasks = new ArrayList<>();
        for (final Node item : list.requireList("task", "a list of tasks")) {
            tasks.add(task(item.requireMapping(TASK_KEYS), tasks.size() + 1));
        }
        return tasks;
    }

    private static Task task(final Node item, final int number) throws InvalidFileException {
        final Node client = item.get("client");
        if (client != null) {
            client.requireMapping(CLIENT_KEYS);
        }
        final String name = name(item, client) + "-" + number;
        item.callIt("task \"" + name + "\"");
        final boolean own = item.get("load") != null;
        final Node load = own ? item.get("load").requireMapping(LOAD_KEYS) : item;
        for (final String key : List.of("type", "strategy", "frequency", "interval_ms")) {
            if (own && item.get(key) != null) {
                throw item.get(key).refuse("stands beside 'load'; write it once, in 'load'");
            }
        }
        final Node type = one(load, "type", "strategy");
        final boolean spaced = type == null || SPACED.contains(type.oneOf(LOADS));
        final Node time = one(item, "exec_ms", "latency_ms");
        if (time == null) {
            throw item.refuse("has no exec_ms; add the longest time of a request on the GPU, in milliseconds");
        }
        final long execution = ForeignTime.ns(time, ForeignTime.MILLISECONDS);
        final Node rate = one(load, "frequency", "interval_ms");
        if (rate == null && spaced) {
            throw load.refuse("has no frequency; write requests per second");
        }
        final long period = rate == null ? Math.max(1, execution)
            : rate == load.get("frequency") ? perSecond(rate) : ForeignTime.ns(rate, ForeignTime.MILLISECONDS);
        final Node deadline = item.get("deadline_ms");
        final Node given = item.get("priority");
        final int priority = given == null ? 0 : given.integer(0, MAX_PRIORITY);
        if (priority > 0 && !spaced) {
            throw given.refuse("is " + given.show() + ", and its load is '" + type.text() + "', whose requests have no "
                + "shortest distance: it can only be best effort; leave priority out, or make the load periodic");
        }
        return ForeignFormat.task(item, name, 0, period, deadline == null ? period
            : ForeignTime.ns(deadline, ForeignTime.MILLISECONDS), priority, !spaced || given != null && priority == 0,
            List.of(new Segment.Gpu(0, execution)));
    }

    private static String name(final Node item, final Node client) throws InvalidFileException {
        for (final String key : List.of("name", "id", "model")) {
            if (item.get(key) != null) {
                return item.get(key).word();
            }
        }
        for (final String key : List.of("name", "model_name")) {
            if (client != null && client.get(key) != null) {
                return client.get(key).word();
            }
        }
        return "client";
    }

    /** The value of one of two keys that mean the same; null if neither is there. */
    private static Node one(final Node of, final String first, final String second) throws InvalidFileException {
        if (of.get(first) != null && of.get(second) != null) {
            throw of.get(second).refuse("stands beside '" + first + "'; write one of them");
        }
        return of.get(first) != null ? of.get(first) : of.get(second);
    }

    private static long perSecond(final Node rate) throws InvalidFileException {
        final BigDecimal hertz = ForeignTime.number(rate);
        if (hertz.signum() <= 0) {
            throw rate.refuse("is " + rate.show() + "; it must be positive");
        }
        return BigDecimal.valueOf(SECOND_NS).divide(hertz, 0, RoundingMode.FLOOR)
            .min(BigDecimal.valueOf(Durations.MAX_NS)).longValue();
    }
}
