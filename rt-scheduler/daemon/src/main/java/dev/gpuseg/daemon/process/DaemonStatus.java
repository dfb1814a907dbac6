/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.ProvenAdmission;
import dev.gpuseg.daemon.cgroup.Cgroups;
import dev.gpuseg.daemon.cgroup.ObservedGroups;
import dev.gpuseg.daemon.conductor.ConductorCounter;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.StatusView;
import dev.gpuseg.daemon.metrics.DaemonReadings;
import dev.gpuseg.daemon.metrics.LiveModel;
import dev.gpuseg.daemon.metrics.ObserverReadings;
import dev.gpuseg.daemon.space.SpaceKeeper;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import dev.gpuseg.mechanisms.observer.Observer;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import java.util.function.ObjLongConsumer;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;

/**
 * What the daemon says of itself: in its START event, to {@code status}, {@code top} and {@code live}, to Prometheus.
 * Background thread and the exporter's, never the dispatcher's.
 */
final class DaemonStatus implements DaemonReadings {
    /** The same for all. */
    static final String VERSION = "0.1.0";
    private static final int NOBODY = -1;

    /**
     * Where it looks.
     *
     * @param config        of the daemon
     * @param incarnationNs when it started
     * @param simulated     whether its mechanism is a stand-in
     * @param tasksMax      highest task id
     * @param contextsMax   highest context id
     * @param warmUpBytes   allocated per record in the warm-up, -1 = without
     * @param mechanism     of GPU 0
     * @param observer      that sees GPU processes, or none
     * @param counters      of the dispatcher
     * @param conductor     its counters
     * @param held          contexts that are disabled
     * @param ring          events on their way
     * @param journal       events that were written
     * @param liveModel     what top and live show
     * @param cgroups       GPU time by control group
     * @param admission     null while it is off
     * @param watchdog      that watches it
     * @param hotPathBytes  allocated by the dispatcher's hot path
     * @param metricsAt     where Prometheus reads, empty = nowhere
     */
    record Sources(DaemonConfig config, long incarnationNs, boolean simulated, int tasksMax, int contextsMax,
        double warmUpBytes, Mechanism mechanism, Observer observer, Counters counters,
        ToLongFunction<ConductorCounter> conductor, HeldFile held, JournalRing ring, JournalAgent journal,
        LiveModel liveModel, Cgroups cgroups,
        ProvenAdmission admission, WatchdogKeeper watchdog, SpaceKeeper space, LongSupplier hotPathBytes,
        Supplier<String> metricsAt) {
    }

    private final Sources from;
    private final DaemonConfig config;

    DaemonStatus(final Sources sources) {
        from = sources;
        config = sources.config();
    }

    /** What the daemon was started with; also the text of its START event. */
    ObjectNode configuration() {
        final Capabilities capabilities = from.mechanism().capabilities();
        final ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("pid", ProcessHandle.current().pid());
        node.put("incarnation_ns", from.incarnationNs());
        node.put("dir", config.directory().root().toString());
        node.put("policy", config.policy().name());
        node.put("policy_text", config.settings().policyText());
        node.put("inputs", "all");
        node.put("budgets", "from-grant");
        node.put("announcements", "charged");
        node.put("mechanism", from.mechanism().name());
        node.put("level", capabilities.level());
        node.put("level_name", capabilities.levelName());
        node.put("consequence", consequence());
        node.put("simulated", from.simulated());
        node.put("gpus", config.gpus());
        node.put("preemptive", capabilities.preemptive());
        node.put("holds_launches", capabilities.holdsLaunches());
        node.put("tasks_max", from.tasksMax());
        node.put("contexts_max", from.contextsMax());
        node.put("disable_ns", capabilities.disableNs());
        node.put("enable_ns", capabilities.enableNs());
        node.put("idle", config.idle().name().toLowerCase(Locale.ROOT));
        node.put("optimistic", config.optimistic());
        node.put("journal", config.journal().toString());
        node.put("journal_bytes", config.journalBytes());
        node.put("metrics", from.metricsAt().get());
        node.put("watchdog_period_ms", config.watchdogPeriodMs());
        node.put("warm_up_records", config.warmUpRecords());
        node.put("admission", config.site().admission().mode().word());
        node.put("unmanaged", config.site().unmanaged() == Unmanaged.ALLOW ? "allow" : "best-effort");
        return node;
    }

    /** What enforcement means for work that runs. */
    private String consequence() {
        return MechanismCatalog.find(from.mechanism().name()).map(MechanismDescription::consequence).orElse("");
    }

    private ObjectNode self(final String policy) {
        final ObjectNode self = configuration();
        self.put("uptime_ns", System.nanoTime() - from.incarnationNs());
        self.put("policy", policy);
        self.put("held_contexts", from.held().count());
        return self;
    }

    /** What {@code top} and {@code live} show. */
    ObjectNode live(final JsonNode request) {
        final ObjectNode view = from.liveModel().view(request.path("since").asLong(-2),
            request.path("columns").asBoolean(), System.nanoTime());
        final ObjectNode self = self(view.path("policy").asText());
        self.put("tap_failure", from.journal().tapFailure());
        self.put("heap_used_bytes", ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
        view.set("daemon", self);
        final ObjectNode counted = view.putObject("counters");
        for (final Counter counter : Counter.values()) {
            counted.put(counter.label(), from.counters().get(counter));
        }
        return view;
    }

    /**
     * Adds to the dispatcher's snapshot what else {@code status} shows, and removes what is not for the peer.
     *
     * @param root the snapshot
     * @param view of the process that asks
     */
    void complete(final ObjectNode root, final StatusView view) {
        final boolean all = view.all();
        if (!all) {
            final Set<Integer> members = view.group() == null ? null : from.cgroups().processesOf(view.group());
            StatusFilter.keepOwn(root, view.uid(), pid -> members == null || members.contains(pid));
        }
        final Set<Integer> own = new HashSet<>();
        root.path("clients").forEach(client -> own.add(client.path("pid").asInt()));
        final ObjectNode groups = from.cgroups().status(System.nanoTime(), pid -> all || own.contains(pid));
        if (all) {   // an account is of all members of a group, whoever they belong to
            ObservedGroups.add(groups, from.observer()::account);
        }
        root.set("cgroups", groups);
        if (from.space() != null) {
            root.set("space", from.space().status());
        }
        if (from.admission() != null) {
            root.set("admission", from.admission().status(all, view.group() == null ? view.uid() : NOBODY));
        }
        final Map<Integer, ObjectNode> tasks = new HashMap<>();
        root.path("tasks").forEach(task -> tasks.put(task.path("id").asInt(), (ObjectNode) task));
        from.liveModel().forEachOpen(System.nanoTime(), (id, busyNs, share) -> {
            if (tasks.containsKey(id)) {
                tasks.get(id).put("busy_ns", busyNs).put("gpu_share", share);
            }
        });
        final ObjectNode self = self(root.path("policy").asText());
        self.put("watchdog_pid", from.watchdog().pid());
        self.put("watchdog_restarts", from.watchdog().restarts());
        self.put("watchdog_failure", from.watchdog().failure());
        self.put("observer", from.observer().isLive() ? from.observer().origin() : "");
        self.put("observer_problem", from.observer().problem());
        self.put("observer_records", from.observer().records());
        self.put("observer_lost", from.observer().lost());
        self.put("observer_restarts", from.observer().restarts());
        self.put("journal_events", from.journal().written());
        self.put("journal_lost", from.journal().lost());
        self.put("journal_failure", from.journal().failure());
        self.put("journal_tap_failure", from.journal().tapFailure());
        self.put("warm_up_bytes_per_record", from.warmUpBytes());
        self.put("hot_path_allocated_bytes", from.hotPathBytes().getAsLong());
        root.set("daemon", self);
        final ArrayNode list = root.putArray("counters");
        for (final Counter counter : Counter.values()) {
            list.addObject().put("label", counter.label()).put("description", counter.description())
                .put("value", from.counters().get(counter)).put("trouble", counter.isTrouble());
        }
        for (final ConductorCounter counter : ConductorCounter.values()) {
            list.addObject().put("label", "conductor_" + counter.name().toLowerCase(Locale.ROOT))
                .put("description", counter.description()).put("value", from.conductor().applyAsLong(counter))
                .put("trouble", counter.isTrouble());
        }
    }

    // ---- to Prometheus --------------------------------------------------------------------------------------------

    @Override
    public Map<String, String> info() {
        return Map.of("version", VERSION, "mechanism", from.mechanism().name(), "level",
            from.mechanism().capabilities().levelName(), "consequence", consequence(), "simulated",
            Boolean.toString(from.simulated()));
    }

    @Override
    public void counters(final ObjLongConsumer<String> to) {
        for (final Counter counter : Counter.values()) {
            if (counter != Counter.MAX_CYCLE_NS) {   // no counter: shown as a gauge
                to.accept(counter.label(), from.counters().get(counter));
            }
        }
    }

    @Override
    public void conductorCounters(final ObjLongConsumer<String> to) {
        for (final ConductorCounter counter : ConductorCounter.values()) {
            to.accept(counter.name().toLowerCase(Locale.ROOT), from.conductor().applyAsLong(counter));
        }
    }

    @Override
    public int heldContexts() {
        return from.held().count();
    }

    @Override
    public long maxCycleNs() {
        return from.counters().get(Counter.MAX_CYCLE_NS);
    }

    @Override
    public long journalWritten() {
        return from.journal().written();
    }

    @Override
    public long journalLost() {
        return from.journal().lost() + from.ring().dropped();
    }

    @Override
    public ObserverReadings observer() {
        final Observer observer = from.observer();
        return new ObserverReadings(observer.isLive(), observer.records(), observer.lost(), observer.restarts());
    }
}
