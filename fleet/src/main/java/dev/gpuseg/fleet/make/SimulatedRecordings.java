/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.make;

import dev.gpuseg.analysis.assign.PriorityAssignment;
import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.tools.trace.RecordingWriter;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.api.java.function.FlatMapFunction;

/** Writes the recordings of a plan: simulated runs of task sets with random arrivals and execution times. */
public final class SimulatedRecordings {
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int PERCENT = 100;
    private static final int KINDS = 3;

    private final RecordingPlan plan;
    private final Path workloads;

    /**
     * Recordings.
     *
     * @param plan      which
     * @param workloads directory with task sets; each machine must see it
     */
    public SimulatedRecordings(final RecordingPlan plan, final Path workloads) {
        this.plan = plan;
        this.workloads = workloads.toAbsolutePath();
    }

    /**
     * What was written.
     *
     * @param events     in all recordings
     * @param bytes      of all files, before some are damaged
     * @param eventBytes of the events in them
     */
    public record Written(long events, long bytes, long eventBytes) implements Serializable {
        private static final Written NOTHING = new Written(0, 0, 0);

        private Written plus(final Written more) {
            return new Written(events + more.events, bytes + more.bytes, eventBytes + more.eventBytes);
        }
    }

    /** What an executor does for its part of the recordings: it reads the task sets once. */
    private record Make(RecordingPlan plan, String workloads, String directory)
        implements FlatMapFunction<Iterator<Integer>, Written> {
        @Override
        public Iterator<Written> call(final Iterator<Integer> part) throws IOException {
            final List<TaskSet> sets = sets(Path.of(workloads));
            Written all = Written.NOTHING;
            while (part.hasNext()) {
                final int i = part.next();
                final TaskSet set = sets.get(plan.robot(i) % sets.size());
                all = all.plus(make(plan, i, plan.isSlower(i) ? slower(set, plan.driftPercent()) : set,
                    Path.of(directory)));
            }
            return List.of(all).iterator();
        }
    }

    /**
     * Writes them.
     *
     * @param engine    does the work; stays open
     * @param directory of the recordings; made if it is not there
     * @return what was written
     * @throws IOException              if a file exists or cannot be written, or a task set cannot be read
     * @throws IllegalArgumentException if there is no task set
     */
    public Written write(final Engine engine, final Path directory) throws IOException {
        sets(workloads);
        for (int i = 0; i < plan.count(); i++) {
            if (Files.exists(directory.resolve(plan.path(i)))) {
                throw new IllegalArgumentException(directory.resolve(plan.path(i)) + " exists; name a new directory");
            }
            Files.createDirectories(directory.resolve(plan.path(i)).getParent());
        }
        final List<Integer> all = IntStream.range(0, plan.count()).boxed().toList();
        return engine.context().parallelize(new ArrayList<>(all), Math.min(plan.count(), engine.partitions()))
            .mapPartitions(new Make(plan, workloads.toString(), directory.toAbsolutePath().toString()))
            .reduce(Written::plus);
    }

    /** The task sets of a directory, in the order of their names, ready for the simulator. */
    private static List<TaskSet> sets(final Path directory) throws IOException {
        final List<TaskSet> sets = new ArrayList<>();
        try (Stream<Path> files = Files.list(directory)) {
            for (final Path file : files.filter(f -> f.toString().endsWith(".yaml")).sorted().toList()) {
                sets.add(prepared(new TaskSetReader().read(file)));
            }
        }
        if (sets.isEmpty()) {
            throw new IllegalArgumentException(directory + ": no task set (*.yaml); name another --workloads");
        }
        return sets;
    }

    /** With priorities. */
    private static TaskSet prepared(final TaskSet set) {
        final boolean complete = set.tasks().stream().allMatch(t -> t.bestEffort() || t.priority() > 0);
        return complete ? set : PriorityAssignment.of("rm").assign(set, Analyses.get("gcaps-window-suspend"));
    }

    /** With longer device parts of the first real-time task that has any. */
    private static TaskSet slower(final TaskSet set, final int percent) {
        final List<Task> tasks = new ArrayList<>(set.tasks());
        for (int i = 0; i < tasks.size(); i++) {
            if (!tasks.get(i).bestEffort() && tasks.get(i).gpuSegmentCount() > 0) {
                final List<Segment> segments = new ArrayList<>();
                for (final Segment segment : tasks.get(i).segments()) {
                    segments.add(segment instanceof Segment.Gpu gpu ? longer(gpu, percent) : segment);
                }
                tasks.set(i, tasks.get(i).withSegments(segments));
                return set.withTasks(tasks);
            }
        }
        return set;
    }

    private static Segment longer(final Segment.Gpu gpu, final int percent) {
        final long moreNs = gpu.deviceNs() * percent / PERCENT;
        return new Segment.Gpu(gpu.hostNs(), gpu.deviceNs() + moreNs, gpu.totalNs() + moreNs, gpu.bursts());
    }

    private static Written make(final RecordingPlan plan, final int i, final TaskSet set, final Path directory)
        throws IOException {
        final Path file = directory.resolve(plan.path(i));
        // a task that is repeated after its executor was lost finds what it left
        Files.deleteIfExists(file);
        final SimulationOptions usual = SimulationOptions.ofDurationNs(plan.seconds() * NS_PER_S);
        final SimulationOptions options = usual.with(SimulationOptions.Arrivals.PERIODIC,
            SimulationOptions.Offsets.RANDOM, SimulationOptions.Execution.RANDOM, SimulationOptions.Jitter.RANDOM)
            .with(SimulationOptions.Hold.WINDOW, true, SimulationOptions.Update.STALL)
            .withSeed(Seeds.of(plan.seed(), 0, i));
        final Written written;
        try (RecordingWriter writer = new RecordingWriter(file)) {
            writer.label("robot", String.format("r%03d", plan.robot(i)));
            writer.label("version", plan.version(i));
            final SimulatedJournal journal = new SimulatedJournal(set, writer);
            final Simulator simulator = new Simulator(set);
            simulator.setEvents(journal);
            journal.start();
            simulator.execute(options);
            journal.stop();
            writer.finish("");
            written = new Written(writer.events(), Files.size(file), journal.bytes());
        }
        if (plan.isDamaged(i)) {
            damage(file, plan.seed(), i);
        }
        return written;
    }

    /** By turns: the end is missing, a byte is another, nothing is left. */
    private static void damage(final Path file, final long seed, final int i) throws IOException {
        final SplittableRandom random = Seeds.random(seed, 1, i);
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            final int kind = random.nextInt(KINDS);
            if (kind == 0) {
                channel.truncate(channel.size() / 2);
            } else if (kind == 1) {
                channel.write(ByteBuffer.wrap(new byte[] {(byte) random.nextInt(), (byte) random.nextInt(),
                    (byte) random.nextInt(), (byte) random.nextInt()}), channel.size() / 2);
            } else {
                channel.truncate(0);
            }
        }
    }
}
