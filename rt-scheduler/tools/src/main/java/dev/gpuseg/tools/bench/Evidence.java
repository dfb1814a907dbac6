/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
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
    private static final int STEAL = 8;
    private static final long MS_PER_TICK = 10;
    private static final String CLIENT_WAITED = "scheduler: the client waited for its CPU";
    private static final Pattern LOG = Pattern.compile("\\[(\\d+)ns\\](?:\\[[^\\]]*\\])*\\s*(.*)");
    private static final Pattern SAFEPOINT = Pattern.compile("Safepoint \"([^\"]+)\".*?Total:\\s*(\\d+) ns.*");
    /** A thread that waited for a CPU for that share of a stall has its cause. */
    private static final double SHARE = 0.3;

    private static final String DEOPTIMISATION = "JIT: code of a method was thrown away meanwhile";
    private static final String COMPILATION = "JIT: a method was compiled meanwhile";

    private record Sample(long atNs, long dispatcherWaitedNs, long clientWaitedNs, long faults, long clientFaults) {
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
    private final List<JvmEvent> safepoints = new ArrayList<>();
    private final List<Long> collections = new ArrayList<>();
    private final Map<Integer, Long> stolenBefore = stolenTicks();

    /** Samples from now on: the JVM, and the only client's process. */
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
                samples.add(new Sample(System.nanoTime(), waitedNs(dispatcher), waitedNs(client), faults(dispatcher),
                    faults(client)));
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
            final JvmEvent stop = new JvmEvent(atNs - Long.parseLong(safepoint.group(2)), atNs, "safepoint "
                + safepoint.group(1));
            safepoints.add(stop);
            jvm.add(stop);
        } else if (endsCollection(text)) {
            collections.add(atNs);
        } else if (text.contains("made not entrant")) {
            jvm.add(new JvmEvent(atNs, atNs, DEOPTIMISATION));
        } else if (text.contains("dev.gpuseg") || text.contains("org.agrona")) {
            jvm.add(new JvmEvent(atNs, atNs, COMPILATION));
        }
    }

    /** Whether a line of the JVM's log, level info, says that a collection has ended. ZGC also says when one begins. */
    static boolean endsCollection(final String text) {
        return (text.contains(" Pause ") || text.contains(" Collection (")) && text.contains("->");
    }

    /** Safepoints from a time on. */
    long safepoints(final long fromNs) {
        return safepoints.stream().filter(stop -> stop.toNs >= fromNs).count();
    }

    /** How long the longest of them stopped the JVM, ns; 0 if there is none. */
    long longestSafepointNs(final long fromNs) {
        return safepoints.stream().filter(stop -> stop.toNs >= fromNs).mapToLong(stop -> stop.toNs - stop.fromNs).max()
            .orElse(0);
    }

    /** How long they stopped the JVM together, ns. */
    long safepointNs(final long fromNs) {
        return safepoints.stream().filter(stop -> stop.toNs >= fromNs).mapToLong(stop -> stop.toNs - stop.fromNs).sum();
    }

    /** Collections that stopped the JVM, from a time on. */
    long collections(final long fromNs) {
        return collections.stream().filter(atNs -> atNs >= fromNs).count();
    }

    /** Time that the hypervisor gave to others since the start, in ms, by {@code /proc/stat} (in ticks of 10 ms). */
    Map<String, Long> stolen(final int dispatcherCpu, final int clientCpu) throws IOException {
        final Map<Integer, Long> now = stolenTicks();
        return Map.of("stolen_ms_dispatcher_cpu", stolenMs(now, dispatcherCpu), "stolen_ms_client_cpu",
            stolenMs(now, clientCpu));
    }

    private long stolenMs(final Map<Integer, Long> now, final int cpu) {
        return (now.getOrDefault(cpu, 0L) - stolenBefore.getOrDefault(cpu, 0L)) * MS_PER_TICK;
    }

    private static Map<Integer, Long> stolenTicks() throws IOException {
        final Map<Integer, Long> ticks = new HashMap<>();
        for (final String line : Files.readAllLines(Path.of("/proc/stat"))) {
            final String[] fields = line.split("\\s+");
            if (fields[0].matches("cpu\\d+") && fields.length > STEAL) {
                ticks.put(Integer.parseInt(fields[0].substring(3)), Long.parseLong(fields[STEAL]));
            }
        }
        return ticks;
    }

    /**
     * The cause of a stall, as far as there is evidence for one.
     *
     * @param dueNs  when it began
     * @param tookNs how long it took
     * @param lateNs of that, before the client even called begin: the daemon has no part in it
     */
    String cause(final long dueNs, final long tookNs, final long lateNs) {
        final boolean clientLate = lateNs > tookNs / 2;
        final long toNs = dueNs + tookNs;
        if (!clientLate) {
            for (final JvmEvent event : jvm) {
                if (event.toNs > dueNs && event.fromNs < toNs && event.toNs > event.fromNs) {
                    return event.what;
                }
            }
        }
        final int after = firstAtOrAfter(toNs);
        final int before = firstAtOrAfter(dueNs + 1) - 1;
        if (before < 0 || after == samples.size()) {
            return "unexplained: not sampled";
        }
        final String seen = clientLate ? ofClient(samples.get(before), samples.get(after), tookNs)
            : ofDispatcher(samples.get(before), samples.get(after), tookNs);
        if (!seen.isEmpty()) {
            return seen;
        }
        for (final JvmEvent event : jvm) {
            if (!clientLate && event.toNs >= dueNs && event.fromNs <= toNs) {
                return event.what;
            }
        }
        return clientLate ? "the client's CPU stood still: hypervisor or interrupt, not seen by Linux or the JVM"
            : "unexplained: nothing seen by Linux or the JVM (hypervisor, interrupt, the dispatcher's own work)";
    }

    private static String ofClient(final Sample before, final Sample after, final long tookNs) {
        if (after.clientWaitedNs - before.clientWaitedNs > tookNs * SHARE) {
            return CLIENT_WAITED;
        }
        return after.clientFaults > before.clientFaults ? "page fault of the client" : "";
    }

    private static String ofDispatcher(final Sample before, final Sample after, final long tookNs) {
        if (after.dispatcherWaitedNs - before.dispatcherWaitedNs > tookNs * SHARE) {
            return "scheduler: the dispatcher waited for its CPU";
        }
        if (after.clientWaitedNs - before.clientWaitedNs > tookNs * SHARE) {
            return CLIENT_WAITED;
        }
        if (after.faults > before.faults) {
            return "page fault of the dispatcher";
        }
        return after.clientFaults > before.clientFaults ? "page fault of the client" : "";
    }

    /** The first sample not before a time; their number if there is none. */
    private int firstAtOrAfter(final long ns) {
        int low = 0;
        int high = samples.size();
        while (low < high) {
            final int middle = (low + high) >>> 1;
            if (samples.get(middle).atNs < ns) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }

    @Override
    public void close() {
        running = false;
    }
}
