/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What happened beside a measurement, to name the causes of its stalls: how long the dispatcher's and the client's
 * thread waited for a CPU and how often they faulted (sampled from {@code /proc}), and the JVM's safepoints,
 * compilations and deoptimisations (its own log, in the same clock).
 */
final class Evidence implements AutoCloseable {
    private static final long SAMPLE_US = 2_000;
    private static final int MINFLT = 7;
    private static final int MAJFLT = 9;
    private static final Pattern LOG = Pattern.compile("\\[(\\d+)ns\\](?:\\[[^\\]]*\\])*\\s*(.*)");
    private static final Pattern SAFEPOINT = Pattern.compile("Safepoint \"([^\"]+)\".*?Total:\\s*(\\d+) ns.*");
    /** A thread that waited for a CPU for that share of a stall has its cause. */
    private static final double SHARE = 0.3;

    private static final String DEOPTIMISATION = "JIT: code of a method was thrown away meanwhile";
    private static final String COMPILATION = "JIT: a method was compiled meanwhile";

    private record Sample(long atNs, long dispatcherWaitedNs, long clientWaitedNs, long faults) {
    }

    private record JvmEvent(long fromNs, long toNs, String what) {
    }

    private final Path dispatcher;
    private final Path client;
    private final List<Sample> samples = new ArrayList<>();
    private final List<JvmEvent> jvm = new ArrayList<>();
    private final Thread sampler = new Thread(this::sample, "gpuseg-evidence");
    private final long startNs = System.nanoTime();
    private volatile boolean running = true;
    private int safepoints;
    private int collections;

    /**
     * Samples from now on.
     *
     * @param daemonPid the JVM
     * @param clientPid the only client's process
     */
    Evidence(final long daemonPid, final long clientPid) throws IOException {
        dispatcher = threadNamed(daemonPid, "gpuseg-dispatc");
        client = Path.of("/proc/" + clientPid + "/task/" + clientPid);
        sampler.setDaemon(true);
        sampler.start();
    }

    private static Path threadNamed(final long pid, final String prefix) throws IOException {
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
            for (final Path task : tasks) {
                if (Files.readString(task.resolve("comm")).startsWith(prefix)) {
                    return task;
                }
            }
        }
        throw new IllegalStateException("process " + pid + " has no thread " + prefix);
    }

    private void sample() {
        try {
            while (running) {
                samples.add(new Sample(System.nanoTime(), waitedNs(dispatcher), waitedNs(client), faults(dispatcher)));
                TimeUnit.MICROSECONDS.sleep(SAMPLE_US);
            }
        } catch (final IOException e) {
            return;   // a process has ended: so has the measurement
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static long waitedNs(final Path task) throws IOException {
        return Long.parseLong(Files.readString(task.resolve("schedstat")).split(" ")[1]);
    }

    private static long faults(final Path task) throws IOException {
        final String stat = Files.readString(task.resolve("stat"));
        final String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[MINFLT]) + Long.parseLong(fields[MAJFLT]);
    }

    /** Ends the sampling and reads the JVM's log. */
    void finish(final Path log) throws IOException, InterruptedException {
        running = false;
        sampler.join();
        for (final String line : Files.readAllLines(log, StandardCharsets.UTF_8)) {
            final Matcher m = LOG.matcher(line);
            if (m.matches()) {
                onLine(Long.parseLong(m.group(1)), m.group(2));
            }
        }
    }

    private void onLine(final long atNs, final String text) {
        if (atNs - startNs < 0) {
            return;   // start and warm-up
        }
        final Matcher safepoint = SAFEPOINT.matcher(text);
        if (safepoint.matches()) {   // written at its end
            safepoints++;
            jvm.add(new JvmEvent(atNs - Long.parseLong(safepoint.group(2)), atNs, "safepoint "
                + safepoint.group(1)));
        } else if (text.contains("Pause ")) {
            collections++;
        } else if (text.contains("made not entrant")) {
            jvm.add(new JvmEvent(atNs, atNs, DEOPTIMISATION));
        } else if (text.contains("dev.gpuseg") || text.contains("org.agrona")) {
            jvm.add(new JvmEvent(atNs, atNs, COMPILATION));
        }
    }

    int safepoints() {
        return safepoints;
    }

    int collections() {
        return collections;
    }

    /** The cause of a stall, as far as there is evidence for one. */
    String cause(final long fromNs, final long tookNs) {
        final long toNs = fromNs + tookNs;
        for (final JvmEvent event : jvm) {
            if (event.toNs > fromNs && event.fromNs < toNs && event.toNs > event.fromNs) {
                return event.what;
            }
        }
        Sample before = null;
        Sample after = null;
        for (final Sample sample : samples) {
            if (sample.atNs <= fromNs) {
                before = sample;
            } else if (sample.atNs >= toNs) {
                after = sample;
                break;
            }
        }
        if (before != null && after != null) {
            if (after.dispatcherWaitedNs - before.dispatcherWaitedNs > tookNs * SHARE) {
                return "scheduler: the dispatcher waited for its CPU";
            }
            if (after.clientWaitedNs - before.clientWaitedNs > tookNs * SHARE) {
                return "scheduler: the client waited for its CPU";
            }
            if (after.faults > before.faults) {
                return "page fault of the dispatcher";
            }
        }
        for (final JvmEvent event : jvm) {
            if (event.toNs >= fromNs && event.fromNs <= toNs) {
                return event.what;
            }
        }
        return before == null || after == null ? "unexplained: not sampled" : "unexplained";
    }

    @Override
    public void close() {
        running = false;
    }
}
