/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/**
 * What takes the driver's lock while delays are measured: processes that come and go ({@link Churn}), and monitors: one
 * that polls all the time and one that is started again and again. A measurement during which a monitor ended is none.
 */
final class Disturbances implements AutoCloseable {
    /** The monitor of every NVIDIA driver. */
    static final String MONITOR = "nvidia-smi";
    private static final List<String> POLLS = List.of("-lms", "100");
    private static final double STARTS_PER_SECOND = 2;

    private final Churn churn;
    private final Process poller;
    private final Churn starts;
    private final Set<String> monitors = new LinkedHashSet<>();

    /**
     * Starts all.
     *
     * @param perSecond processes per second, positive
     * @param command   of the process of a number, from 0; it must end by itself
     * @param monitor   program to poll with, null = none
     * @throws IOException if the monitor cannot be started
     */
    Disturbances(final double perSecond, final IntFunction<List<String>> command, final Path monitor)
        throws IOException {
        if (monitor == null) {
            poller = null;
            starts = null;
        } else {
            final List<String> polls = new ArrayList<>(List.of(monitor.toString()));
            polls.addAll(POLLS);
            poller = new ProcessBuilder(polls).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
            starts = new Churn(STARTS_PER_SECOND, i -> List.of(monitor.toString()));
            monitors.add(monitor.getFileName() + " " + String.join(" ", POLLS));
            monitors.add(monitor.getFileName() + ", " + (int) STARTS_PER_SECOND + " starts/s");
        }
        churn = new Churn(perSecond, command);
    }

    /** A program of that name in the directories of PATH; null = there is none. */
    static Path find(final String name, final String path) {
        for (final String directory : (path == null ? "" : path).split(File.pathSeparator)) {
            final Path file = Path.of(directory.isEmpty() ? "." : directory, name);
            if (Files.isRegularFile(file) && Files.isExecutable(file)) {
                return file;
            }
        }
        return null;
    }

    /** What polled, in words; empty if nothing did. */
    Set<String> monitors() {
        return monitors;
    }

    /** Whether a monitor polls now. */
    boolean isPolling() {
        return poller != null && poller.isAlive();
    }

    /**
     * Stops all, and waits for the processes that still run.
     *
     * @return how many came and went, monitors not counted
     * @throws IllegalStateException if one failed, or a monitor did not poll to the end
     */
    int stop() throws InterruptedException {
        if (poller != null) {
            if (!isPolling()) {
                throw new IllegalStateException("calibrate: a monitor (" + monitors.iterator().next() + ") ended with "
                    + "status " + poller.exitValue() + " before the measurement did; make it work, or remove it from "
                    + "PATH to measure without");
            }
            poller.destroy();
            poller.waitFor();
            starts.stop();
        }
        return churn.stop();
    }

    @Override
    public void close() {
        churn.close();
        if (poller != null) {
            starts.close();
            poller.destroyForcibly();
        }
    }
}
