/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * A task set that {@code gpuseg-demo-task} processes play on the virtual GPU: a file, or one of those in
 * {@code traces/workloads}.
 *
 * @param set what is played
 */
public record Workload(TaskSet set) {
    /** The one that is played if none is named. */
    public static final String DEFAULT = "robot";

    private static final String ROOT_PROPERTY = "gpuseg.root";
    private static final String SUFFIX = ".yaml";
    private static final long NS_PER_US = 1_000;
    /** Of what an update of the runlist costs, this much is the disable; the rest is the enable. */
    private static final int DISABLE_QUARTERS = 3;

    public Workload {
        for (final Task task : set.tasks()) {
            if (!task.bestEffort() && task.priority() == 0) {
                throw new IllegalArgumentException("workload \"" + set.id() + "\": task \"" + task.name()
                    + "\" has no priority; write one of 1..99, or best_effort: true");
            }
        }
        if (set.platform().gpus().size() > 1) {
            throw new IllegalArgumentException("workload \"" + set.id() + "\" uses " + set.platform().gpus().size()
                + " GPUs; the virtual GPU is one");
        }
    }

    /**
     * Reads one.
     *
     * @param nameOrFile name of a shipped workload, or a task-set file
     * @return the workload
     * @throws IOException              if the file cannot be read or is not valid
     * @throws IllegalArgumentException if there is none of that name, or it cannot be played
     */
    public static Workload named(final String nameOrFile) throws IOException {
        final Path shipped = directory().resolve(nameOrFile + SUFFIX);
        final Path file = nameOrFile.indexOf('/') < 0 && Files.exists(shipped) ? shipped : Path.of(nameOrFile);
        if (!Files.exists(file)) {
            throw new IllegalArgumentException("there is no workload \"" + nameOrFile
                + "\" and no such file; use one of " + String.join(", ", names()) + ", or a task-set file");
        }
        return new Workload(new TaskSetReader().read(file));
    }

    /**
     * The shipped ones.
     *
     * @return names in alphabetical order, none if they are not there
     * @throws IOException if their directory cannot be read
     */
    static List<String> names() throws IOException {
        if (!Files.isDirectory(directory())) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(directory())) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(SUFFIX))
                .map(name -> name.substring(0, name.length() - SUFFIX.length())).sorted().toList();
        }
    }

    private static Path directory() {
        final String root = System.getProperty(ROOT_PROPERTY, "");
        return Path.of(root.isEmpty() ? "." : root, "traces", "workloads").toAbsolutePath().normalize();
    }

    List<Task> tasks() {
        return set.tasks();
    }

    public int cpus() {
        return set.platform().cpus();
    }

    /** Options of gpuseg-vgpu for this platform. */
    public List<String> gpuOptions() {
        final Gpu gpu = set.platform().gpus().isEmpty() ? Gpu.ofEpsilon(0) : set.platform().gpus().get(0);
        final long disableNs = gpu.alphaNs() * DISABLE_QUARTERS / 4;
        return List.of("--timeslice", us(gpu.timesliceNs()), "--switch-cost", us(gpu.thetaNs()), "--disable-cost",
            us(disableNs), "--enable-cost", us(gpu.alphaNs() - disableNs));
    }

    /** The same, to be read. */
    public String describeGpu() {
        final List<String> o = gpuOptions();
        return "time slice " + o.get(1) + ", switch " + o.get(3) + ", disable " + o.get(5) + ", enable " + o.get(7);
    }

    /** How gpuseg-demo-task is to wait for the GPU. */
    String waitOption() {
        return set.mode() == WaitMode.BUSY ? "busy" : "block";
    }

    /** The segments of a task in the form of gpuseg-demo-task. */
    static String segments(final Task task) {
        final List<String> parts = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu gpu) {
                parts.add("gpu:" + us(gpu.hostNs()) + "+" + us(gpu.deviceNs()));
            } else {
                parts.add("cpu:" + us(((Segment.Cpu) segment).durationNs()));
            }
        }
        return String.join(",", parts);
    }

    /** Rounded up: the programs take whole microseconds. */
    public static String us(final long ns) {
        return (ns + NS_PER_US - 1) / NS_PER_US + "us";
    }
}
