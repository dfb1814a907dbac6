/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.http.LoopbackServer;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import io.prometheus.metrics.core.metrics.Histogram;
import io.prometheus.metrics.exporter.httpserver.MetricsHandler;
import io.prometheus.metrics.instrumentation.jvm.JvmGarbageCollectorMetrics;
import io.prometheus.metrics.instrumentation.jvm.JvmMemoryMetrics;
import io.prometheus.metrics.instrumentation.jvm.ProcessMetrics;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot;
import io.prometheus.metrics.model.snapshots.InfoSnapshot.InfoDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import io.prometheus.metrics.model.snapshots.Unit;
import java.io.IOException;
import java.util.List;

/**
 * Shows a {@link LiveModel} to Prometheus at {@code /metrics}, in the format that the asker prefers: text, OpenMetrics,
 * or protobuf, which alone carries native histograms. The client library counts durations on the journal's thread;
 * all else is read at the moment of a scrape.
 */
public final class PrometheusExporter implements AutoCloseable {
    private static final String TASK = "task";
    private static final String PID = "pid";
    private static final String GPU = "gpu";
    private static final double NS_PER_S = 1e9;
    /** Upper bounds of the classic buckets, s: 10 us to 10 s. */
    private static final double[] RESPONSE_BOUNDS_S = {1e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 7.5e-3, 1e-2,
        1.5e-2, 2e-2, 3e-2, 5e-2, 7.5e-2, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 10};
    /** Upper bounds of the classic buckets of what the scheduler itself takes, s: 10 us to 100 ms. */
    private static final double[] COST_BOUNDS_S = {1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 3e-4, 5e-4, 7.5e-4, 1e-3, 1.5e-3,
        2e-3, 3e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1};
    /** Native buckets grow by 2^(1/8), 9 %, until there are too many of them. */
    private static final int NATIVE_SCHEMA = 3;
    private static final int NATIVE_BUCKETS_MAX = 120;

    private final LiveModel model;
    private final DaemonReadings readings;
    private final PrometheusRegistry registry = new PrometheusRegistry();
    private final HttpHandler scrapes = new MetricsHandler(registry);
    private final LoopbackServer server;

    /**
     * Listens from now on. To be made before the first event, so that no duration is missed.
     *
     * @param model    what is shown
     * @param readings the rest
     * @param at       where to listen
     * @throws java.io.UncheckedIOException if that is impossible, in one line
     */
    public PrometheusExporter(final LiveModel model, final DaemonReadings readings, final Endpoint at) {
        this.model = model;
        this.readings = readings;
        model.observer(new Durations());
        JvmGarbageCollectorMetrics.builder().register(registry);
        JvmMemoryMetrics.builder().register(registry);
        ProcessMetrics.builder().register(registry);
        registry.register((MultiCollector) this::collect);
        server = LoopbackServer.start(at, "gpuseg-metrics", this::answer);
    }

    /** Where it listens: the endpoint, with the port that was given. */
    public Endpoint endpoint() {
        return server.endpoint();
    }

    @Override
    public void close() {
        server.close();
    }

    /** Whether it reads nothing any more: true once it is closed and the last answer has ended. */
    public boolean isClosed() {
        return server.isClosed();
    }

    // ---- durations: on the journal's thread -----------------------------------------------------------------------

    private final class Durations implements ModelObserver {
        private final Histogram responses = histogram("gpuseg_segment_response_seconds",
            "Time from a segment's begin to its end, as the application sees it, in seconds", RESPONSE_BOUNDS_S, TASK,
            PID, GPU);
        private final Histogram waits = histogram("gpuseg_segment_queue_wait_seconds",
            "Time from a segment's begin to its grant, in seconds; 0 if it was granted in advance", RESPONSE_BOUNDS_S,
            TASK, PID, GPU);
        private final Histogram jobs = histogram("gpuseg_job_response_seconds",
            "Time from a job's release to its end, in seconds; of a task that marks none, every segment is a job",
            RESPONSE_BOUNDS_S, TASK, PID, GPU);
        private final Histogram enforcement = histogram("gpuseg_enforcement_seconds",
            "Time from the decision for a real-time segment until every context that it preempts is disabled, in "
                + "seconds",
            COST_BOUNDS_S, GPU);
        private final Histogram switches = histogram("gpuseg_runlist_update_seconds",
            "Time that one operation on one context takes, in seconds, by op: disable or enable", COST_BOUNDS_S, GPU,
            "op");
        private final Histogram stalls = histogram("gpuseg_dispatcher_stall_seconds",
            "Duty cycles of the dispatcher that took longer than 1 ms, in seconds", COST_BOUNDS_S);

        private Histogram histogram(final String name, final String help, final double[] bounds,
            final String... labels) {
            return Histogram.builder().name(name).unit(Unit.SECONDS).help(help).labelNames(labels)
                .classicUpperBounds(bounds).nativeInitialSchema(NATIVE_SCHEMA)
                .nativeMaxNumberOfBuckets(NATIVE_BUCKETS_MAX).withoutExemplars().register(registry);
        }

        @Override
        public TaskObserver task(final String name, final int pid, final int gpu) {
            final String[] labels = {name, Integer.toString(pid), Integer.toString(gpu)};
            final DistributionDataPoint wait = waits.labelValues(labels);
            final DistributionDataPoint response = responses.labelValues(labels);
            return new TaskObserver() {
                private DistributionDataPoint job;

                @Override
                public void waited(final long ns) {
                    wait.observe(ns / NS_PER_S);
                }

                @Override
                public void segmentEnded(final long ns) {
                    response.observe(ns / NS_PER_S);
                }

                @Override
                public void jobEnded(final long ns) {
                    if (job == null) {
                        job = jobs.labelValues(labels);
                    }
                    job.observe(ns / NS_PER_S);
                }

                @Override
                public void forgotten() {
                    waits.remove(labels);
                    responses.remove(labels);
                    jobs.remove(labels);
                }
            };
        }

        @Override
        public void enforced(final int gpu, final long ns) {
            enforcement.labelValues(Integer.toString(gpu)).observe(ns / NS_PER_S);
        }

        @Override
        public void contextSwitched(final int gpu, final boolean off, final long ns) {
            switches.labelValues(Integer.toString(gpu), off ? "disable" : "enable").observe(ns / NS_PER_S);
        }

        @Override
        public void stalled(final long ns) {
            stalls.observe(ns / NS_PER_S);
        }
    }

    // ---- everything else: at a scrape -----------------------------------------------------------------------------

    private MetricSnapshots collect() {
        final long nowNs = System.nanoTime();
        final MetricSnapshots.Builder all = MetricSnapshots.builder();
        collectTasks(all, nowNs);
        collectGpus(all, nowNs);
        final Labels.Builder info = Labels.builder();
        readings.info().forEach(info::label);
        info.label("policy", model.policy());
        all.metricSnapshot(InfoSnapshot.builder().name("gpuseg_daemon")
            .help("Properties of the daemon; always 1. simulated=\"true\": no hardware is behind these numbers")
            .dataPoint(InfoDataPointSnapshot.builder().labels(info.build()).build()).build());
        final CounterFamily events = new CounterFamily("gpuseg_events",
            "Counters of the dispatcher and the mechanism since start, by event, as `gpuseg status` lists them");
        readings.counters((label, value) -> events.add(Labels.of("event", label), value));
        events.addTo(all);
        final CounterFamily desk = new CounterFamily("gpuseg_conductor_events",
            "Counters of the registration socket since start, by event, as `gpuseg status` lists them");
        readings.conductorCounters((label, value) -> desk.add(Labels.of("event", label), value));
        desk.addTo(all);
        counter(all, "gpuseg_journal_written_events", "Events written to the journal since start",
            readings.journalWritten());
        counter(all, "gpuseg_journal_lost_events",
            "Events that the journal lacks since start: ring full or disk error",
            readings.journalLost());
        counter(all, "gpuseg_metrics_missed_events",
            "Events that these metrics did not see because the journal's ring was full, since start", model.gaps());
        counter(all, "gpuseg_tasks_untracked", "Tasks opened beyond the " + LiveModel.TASKS_MAX
            + " that can have series, since start", model.untracked());
        final ObserverReadings observer = readings.observer();
        counter(all, "gpuseg_observer_records", "Records of the observer (BPF) since start",
            observer.records());
        counter(all, "gpuseg_observer_lost_records",
            "Records of the observer that were lost since start; a scan of all processes answers each loss",
            observer.lost());
        counter(all, "gpuseg_observer_restarts",
            "Times since start that the observer ended and was started or connected to again",
            observer.restarts());
        gauge(all, "gpuseg_observer_live", "1: GPU processes are seen by the observer; 0: they are scanned",
            observer.live() ? 1 : 0);
        gauge(all, "gpuseg_held_contexts", "Contexts in the held file: disabled, or about to be",
            readings.heldContexts());
        gauge(all, "gpuseg_clients", "Registered client processes", model.clientCount());
        all.metricSnapshot(GaugeSnapshot.builder().name("gpuseg_dispatcher_cycle_max_seconds").unit(Unit.SECONDS)
            .help("Longest duty cycle of the dispatcher since start, in seconds")
            .dataPoint(GaugeDataPointSnapshot.builder().value(readings.maxCycleNs() / NS_PER_S).build()).build());
        return all.build();
    }

    private void collectTasks(final MetricSnapshots.Builder all, final long nowNs) {
        final CounterFamily segments = new CounterFamily("gpuseg_segments", "Segments ended, per task");
        final CounterFamily jobs = new CounterFamily("gpuseg_jobs",
            "Jobs ended, per task; of a task that marks none, every segment is a job");
        final CounterFamily misses = new CounterFamily("gpuseg_deadline_miss",
            "Real-time segments whose absolute deadline passed before their end, per task");
        final CounterFamily late = new CounterFamily("gpuseg_job_deadline_miss",
            "Jobs of real-time tasks that ended after their deadline, or were given up after it, per task");
        final CounterFamily skipped = new CounterFamily("gpuseg_jobs_skipped",
            "Jobs that their application released and then skipped, without those that missed, per task");
        final CounterFamily overruns = new CounterFamily("gpuseg_budget_overrun",
            "Segments that used up their budget, per task");
        final CounterFamily preemptions = new CounterFamily("gpuseg_preemptions",
            "Times that a segment was preempted, per task");
        final CounterFamily busy = new CounterFamily("gpuseg_gpu_busy_seconds",
            "Time for which a task was allowed to use the GPU, in seconds; divided equally while several share it");
        final GaugeFamily priorities = new GaugeFamily("gpuseg_task_priority",
            "Priority of an open task, 1..99, 99 highest; 0 is best effort");
        final GaugeFamily deadlines = new GaugeFamily("gpuseg_task_deadline_seconds",
            "Relative deadline of an open task, in seconds; 0 if it has none");
        final int[] open = {0};
        model.forEachTask(task -> {
            final Labels labels = Labels.of(TASK, task.name, PID, Integer.toString(task.pid), GPU,
                Integer.toString(task.gpu));
            segments.add(labels, task.segments);
            jobs.add(labels, task.account.jobs());
            misses.add(labels, task.deadlineMisses);
            late.add(labels, task.account.misses());
            skipped.add(labels, task.account.skipped());
            overruns.add(labels, task.overruns);
            preemptions.add(labels, task.preemptions);
            busy.add(labels, model.busy(task, nowNs) / NS_PER_S);
            if (task.isOpen()) {
                priorities.add(labels, task.priority);
                deadlines.add(labels, task.deadlineNs / NS_PER_S);
                open[0]++;
            }
        });
        for (final CounterFamily family : List.of(segments, jobs, misses, late, skipped, overruns, preemptions, busy)) {
            family.addTo(all);
        }
        priorities.addTo(all);
        deadlines.addTo(all);
        gauge(all, "gpuseg_tasks", "Open tasks that have series", open[0]);
    }

    private void collectGpus(final MetricSnapshots.Builder all, final long nowNs) {
        final GaugeFamily depth = new GaugeFamily("gpuseg_queue_depth",
            "Begun segments that may not use the GPU now: waiting or preempted");
        final GaugeFamily running = new GaugeFamily("gpuseg_running_segments", "Segments that may use the GPU now");
        final CounterFamily held = new CounterFamily("gpuseg_gpu_held_seconds",
            "Time in which at least one segment was allowed to use the GPU, in seconds");
        final GaugeFamily fairness = new GaugeFamily("gpuseg_fairness_jain",
            "Jain's index of the GPU time of best-effort tasks over the last 5 s: 1 = equal; 1 with fewer than two");
        model.forEachGpu((gpu, index) -> {
            final Labels labels = Labels.of(GPU, Integer.toString(index));
            depth.add(labels, gpu.waiting + gpu.preempted);
            running.add(labels, gpu.time.running());
            held.add(labels, gpu.time.busyNs(nowNs) / NS_PER_S);
            fairness.add(labels, model.fairness(index, nowNs));
        });
        depth.addTo(all);
        running.addTo(all);
        held.addTo(all);
        fairness.addTo(all);
    }

    private static void counter(final MetricSnapshots.Builder all, final String name, final String help,
        final double value) {
        final CounterFamily family = new CounterFamily(name, help);
        family.add(Labels.EMPTY, value);
        family.addTo(all);
    }

    private static void gauge(final MetricSnapshots.Builder all, final String name, final String help,
        final double value) {
        final GaugeFamily family = new GaugeFamily(name, help);
        family.add(Labels.EMPTY, value);
        family.addTo(all);
    }

    private static final class CounterFamily {
        private final CounterSnapshot.Builder builder;

        CounterFamily(final String name, final String help) {
            builder = CounterSnapshot.builder().name(name).help(help);
        }

        void add(final Labels labels, final double value) {
            builder.dataPoint(CounterDataPointSnapshot.builder().labels(labels).value(value).build());
        }

        void addTo(final MetricSnapshots.Builder all) {
            all.metricSnapshot(builder.build());
        }
    }

    private static final class GaugeFamily {
        private final GaugeSnapshot.Builder builder;

        GaugeFamily(final String name, final String help) {
            builder = GaugeSnapshot.builder().name(name).help(help);
        }

        void add(final Labels labels, final double value) {
            builder.dataPoint(GaugeDataPointSnapshot.builder().labels(labels).value(value).build());
        }

        void addTo(final MetricSnapshots.Builder all) {
            all.metricSnapshot(builder.build());
        }
    }

    // ---- HTTP -----------------------------------------------------------------------------------------------------

    private void answer(final HttpExchange exchange) throws IOException {
        if ("/metrics".equals(exchange.getRequestURI().getPath())) {
            scrapes.handle(exchange);
        } else {
            LoopbackServer.sendText(exchange, 404, "nothing here but /metrics");
        }
    }
}
