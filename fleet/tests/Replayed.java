/* SPDX-License-Identifier: Apache-2.0 */

import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.tools.demo.Workload;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.SimulatedMachine;
import dev.gpuseg.tools.trace.RecordedTask;
import dev.gpuseg.tools.trace.Recorder;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBuilder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;

/** Makes recordings by replaying the workloads; started by {@code fleet/tests/replayed}. */
final class Replayed {
    private static final Duration FIRST = Duration.ofSeconds(4);
    private static final Duration LENGTH = Duration.ofSeconds(2);
    /** Until the processes of the tasks have started. */
    private static final Duration LEAD = Duration.ofMillis(600);

    private final Path directory;
    private final Map<String, Robot> robots = new ConcurrentSkipListMap<>();
    private final AtomicInteger made = new AtomicInteger();
    private final AtomicLong events = new AtomicLong();
    private final AtomicLong bytes = new AtomicLong();
    /** What failed, and why. */
    private final Map<String, String> failed = new ConcurrentSkipListMap<>();

    private interface Work {
        void run() throws Exception;
    }

    private Replayed(final Path directory) {
        this.directory = directory;
    }

    public static void main(final String[] arguments) throws Exception {
        final int count = Integer.parseInt(arguments[1]);
        final long beganNs = System.nanoTime();
        final long untilNs = beganNs + TimeUnit.MINUTES.toNanos(Integer.parseInt(arguments[2]));
        final Replayed all = new Replayed(Files.createDirectories(Path.of(arguments[0])).toAbsolutePath());
        final List<String> names;
        try (Stream<Path> files = Files.list(Path.of(System.getProperty("gpuseg.root"), "traces", "workloads"))) {
            names = files.map(f -> f.getFileName().toString()).filter(n -> n.endsWith(".yaml"))
                .map(n -> n.replace(".yaml", "")).sorted().toList();
        }
        final ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(arguments[3]));
        int number = 0;
        for (final String name : names) {
            final int i = number++;
            pool.execute(() -> all.attempt(name, () -> all.start(name, i)));
        }
        for (; number < count; number++) {
            final int i = number;
            final String name = names.get(i % names.size());
            pool.execute(() -> all.attempt(name + ", recording " + i, () -> {
                if (all.robots.containsKey(name) && System.nanoTime() - untilNs < 0) {
                    all.replay(all.robots.get(name), i, i / names.size() % 2 == 0);
                }
            }));
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.DAYS);
        final double seconds = (System.nanoTime() - beganNs) / 1e9;
        for (final Robot robot : all.robots.values()) {
            all.attempt(robot.name, robot::close);
        }
        all.failed.forEach((what, why) -> System.out.println("failed: " + what + ": " + why));
        System.out.printf(Locale.ROOT, "%d recordings of %d workloads, %d events, %.3f MB in %.0f s: 1000 take %.0f min%n",
            all.made.get(), all.robots.size(), all.events.get(), all.bytes.get() / 1e6, seconds,
            seconds / Math.max(1, all.made.get()) * 1000 / 60);
        System.exit(all.made.get() > 0 && all.failed.isEmpty() ? 0 : 1);
    }

    private void attempt(final String what, final Work work) {
        try {
            work.run();
        } catch (final Exception e) {
            failed.put(what, String.valueOf(e.getMessage()).lines().findFirst().orElse(e.toString()));
        }
    }

    /** A robot: a virtual GPU, a daemon, and a workload. */
    private static final class Robot {
        private final String name;
        private final Path kept = MemoryDirectory.createOnDisk("gpuseg-fleet-");
        private final Path root = MemoryDirectory.create("gpuseg-fleet-");
        private final SimulatedMachine machine = new SimulatedMachine(root, kept, true);
        /** What it did at first, with the medians and with the longest of the measured parts. */
        private List<RecordedTask> median;
        private List<RecordedTask> longest;

        Robot(final Workload workload, final String name) throws IOException, InterruptedException {
            this.name = name;
            machine.directory().create();
            machine.startGpu(workload.gpuOptions());
            final List<String> options = new ArrayList<>(List.of("--policy", "fp", "--journal",
                kept.resolve("journal").toString()));
            options.addAll(DaemonSettings.write(kept.resolve("settings.yaml"), "warm-up: false"));
            machine.startDaemon(List.of(), options);
        }

        /** Starts the tasks, follows the journal while they run, and ends them. */
        synchronized void play(final Map<String, List<String>> tasks, final Duration length, final Path file,
            final String version) throws IOException, InterruptedException, TimeoutException {
            final long startNs = System.nanoTime() + LEAD.toNanos();
            final List<Child> players = new ArrayList<>();
            for (final Map.Entry<String, List<String>> task : tasks.entrySet()) {
                final List<String> options = new ArrayList<>(task.getValue());
                options.addAll(List.of("--start-at", Long.toString(startNs), "--duration", length.toMillis() + "ms",
                    "--cpu-mode", "sleep"));
                players.add(machine.startTask(task.getKey(), options));
            }
            try {
                Recorder.follow(kept.resolve("journal"), file, LEAD.plus(length).plus(LEAD), false, Map.of("robot",
                    name, "version", version));
                for (final Child player : players) {
                    // best-effort work that is still busy is not waited for
                    if (!player.isAlive() && player.awaitExit(1) != 0) {
                        throw new IllegalStateException("a task failed: " + player.said());
                    }
                }
            } finally {
                players.forEach(Child::close);
            }
        }

        void close() throws InterruptedException, TimeoutException, IOException {
            final int status = machine.stopDaemon();
            machine.stopGpu();
            machine.close();
            MemoryDirectory.delete(root);
            MemoryDirectory.delete(kept);
            if (status != 0) {
                throw new IllegalStateException("the daemon stopped with status " + status);
            }
        }
    }

    private void start(final String name, final int number) throws Exception {
        final Workload workload = Workload.named(name);
        final Robot robot = new Robot(workload, name);
        robots.put(name, robot);
        final Map<String, List<String>> tasks = new TreeMap<>();
        for (final Task task : workload.set().tasks()) {
            tasks.put(task.name(), List.of("--priority", Integer.toString(task.priority()), "--gpu-priority",
                Integer.toString(task.gpuPriority()), "--period", Workload.us(task.periodNs()), "--deadline",
                Workload.us(task.deadlineNs()), "--segments", segments(task)));
        }
        final Path file = file(number);
        robot.play(tasks, FIRST, file, "1");
        count(file);
        final Trace trace = TraceBuilder.read(Source.open(file));
        robot.longest = RecordedTask.of(trace, false);
        robot.median = RecordedTask.of(trace, true);
    }

    private static String segments(final Task task) {
        final List<String> parts = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            parts.add(segment instanceof Segment.Gpu gpu ? "gpu:" + Workload.us(gpu.hostNs()) + "+"
                + Workload.us(gpu.deviceNs()) : "cpu:" + Workload.us(((Segment.Cpu) segment).durationNs()));
        }
        return String.join(",", parts);
    }

    private void replay(final Robot robot, final int number, final boolean median) throws Exception {
        synchronized (robot) {
            if (robot.median == null) {
                return;   // it has failed at first, which was said
            }
            final Map<String, List<String>> tasks = new TreeMap<>();
            for (final RecordedTask task : median ? robot.median : robot.longest) {
                tasks.put(task.name(), List.of("--priority", Integer.toString(task.priority()), "--gpu-priority",
                    Integer.toString(task.gpuPriority()), "--period", task.periodNs() + "ns", "--deadline",
                    task.deadlineNs() + "ns", "--offset", task.offsetNs() + "ns", "--segments", task.segments()));
            }
            final Path file = file(number);
            robot.play(tasks, LENGTH, file, median ? "1" : "2");
            count(file);
        }
    }

    private Path file(final int number) {
        return directory.resolve(String.format("%06d.gpuseg", number));
    }

    private void count(final Path file) throws IOException {
        events.addAndGet(Source.open(file).manifest().path("events").asLong());
        bytes.addAndGet(Files.size(file));
        made.incrementAndGet();
    }
}
