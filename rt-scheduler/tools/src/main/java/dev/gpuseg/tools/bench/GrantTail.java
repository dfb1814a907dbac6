/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;

/**
 * The tail of begin to grant, with a cause for every stall: one spinning client at a fixed rate against a spinning
 * daemon on the virtual GPU.
 *
 * @param durationMs of each measurement
 * @param rate       begins per second
 * @param cores      CPUs, two or more
 */
public record GrantTail(long durationMs, int rate, Cores cores) {
    private static final int LIMIT_S = 60;
    private static final int LISTED = 20;
    /** Processes that come and go in each second meanwhile. */
    private static final int CHURN = 5;
    /** A process that comes and goes. */
    private static final List<String> PASSING = List.of("--clients", "1", "--rate", "100", "--warmup", "0ms",
        "--duration", "50ms");
    /** While one is there each begin disables it: what the device takes for that is not the daemon's delay. */
    private static final List<String> INSTANT = List.of("--switch-cost", "0us", "--disable-cost", "0us",
        "--enable-cost", "0us");
    private static final int CPUS_WITH_WITNESS = 5;
    private static final long GOAL_P99_99_NS = 20_000;
    private static final long GOAL_MAX_NS = 200_000;

    /**
     * Starts everything, measures, ends everything.
     *
     * @return the figures, with the causes of stalls
     * @throws IOException          if a file cannot be read
     * @throws TimeoutException     if a process does not end
     */
    public ObjectNode measure() throws IOException, InterruptedException, TimeoutException {
        try (LoadRig rig = new LoadRig()) {
            final Path log = rig.errors().resolve("jvm.log");
            final List<String> jvm = List.of("-Xlog:safepoint=info,gc=info,jit+compilation=debug:file=" + log
                + ":timenanos:filecount=0");
            final boolean witness = cores.count() >= CPUS_WITH_WITNESS;
            if (cores.enough()) {
                rig.confine(cores.below(witness ? 3 : 2));
            }
            final int priority = cores.priority();
            final List<String> run = new ArrayList<>(List.of("--idle", "spin", "--cpu",
                Integer.toString(cores.fromTop(0))));
            run.addAll(DaemonSettings.write(rig.errors().resolve("settings.yaml"), "queue-size: 16MiB"));
            final List<String> client = new ArrayList<>(List.of("--clients", "1", "--rate", Integer.toString(rate),
                "--duration", durationMs + "ms", "--warmup", "2s", "--priority", "99", "--wait", "spin",
                "--cpus", Integer.toString(cores.fromTop(1)), "--stalls"));
            if (priority > 0) {
                run.addAll(List.of("--priority", Integer.toString(priority)));
                client.addAll(List.of("--scheduling", "fifo:" + priority));
            }
            if (witness) {
                client.addAll(List.of("--witness", Integer.toString(cores.fromTop(2))));
            }
            rig.start(jvm, run, INSTANT);
            final Child generator = rig.clients(client);
            final long clientPid = childOf(generator.pid());
            final JsonNode before = rig.status();
            try (Evidence evidence = new Evidence(rig.daemon().pid(), clientPid);
                Churn comeAndGo = new Churn(rig.clientsCommand(PASSING), CHURN)) {
                final JsonNode seen = LoadRig.result(generator, LIMIT_S + (int) (durationMs / 1000));
                final int passed = comeAndGo.finish();
                final JsonNode after = rig.status();
                rig.stop();
                evidence.finish(log);
                final ObjectNode one = judged(seen, before, after, evidence);
                one.put("fifo", priority).put("churn", CHURN).put("processes_came_and_went", passed);
                evidence.stolen(cores.fromTop(0), cores.fromTop(1)).forEach(one::put);
                return one;
            }
        }
    }

    private static long childOf(final long pid) throws InterruptedException {
        final long[] found = new long[1];
        Polling.until(() -> {
            found[0] = ProcessHandle.of(pid).flatMap(p -> p.children()
                .min(Comparator.comparing(ProcessHandle::pid))).map(ProcessHandle::pid).orElse(0L);
            return found[0] != 0;
        }, 1_000);
        if (found[0] == 0) {
            throw new IllegalStateException("gpuseg-bench-load has no client");
        }
        return found[0];
    }

    private static ObjectNode judged(final JsonNode seen, final JsonNode before, final JsonNode after,
        final Evidence evidence) {
        final ObjectNode one = JsonNodeFactory.instance.objectNode();
        one.set("due_to_grant_ns", seen.path("due_ns"));
        one.set("begin_to_grant_ns", seen.path("begin_ns"));
        one.put("goal_p99_99", seen.path("begin_ns").path("p99_99").asLong() <= GOAL_P99_99_NS);
        one.put("goal_max", seen.path("begin_ns").path("max").asLong() <= GOAL_MAX_NS);
        final long allocated = hotPathBytes(after) - hotPathBytes(before);
        one.put("allocated_bytes", allocated).put("allocated_bytes_per_begin", (double) allocated
            / Math.max(1, seen.path("begins").asLong()));
        final long fromNs = seen.path("from_ns").asLong();
        one.put("collections", evidence.collections(fromNs)).put("safepoints", evidence.safepoints(fromNs));
        one.put("longest_safepoint_ns", evidence.longestSafepointNs(fromNs))
            .put("safepoint_ns", evidence.safepointNs(fromNs));
        if (seen.has("witness")) {
            one.set("witness", seen.path("witness"));
        }
        one.put("stalls", seen.path("stalls_seen").asLong()).put("stalls_examined", seen.path("stalls").size());
        causes(seen.path("stalls"), evidence, one);
        return one;
    }

    private static long hotPathBytes(final JsonNode status) {
        return status.path("daemon").path("hot_path_allocated_bytes").asLong();
    }

    /** A begin that was due before the one before had its grant is late because of that one: the same cause. */
    private static void causes(final JsonNode stalls, final Evidence evidence, final ObjectNode one) {
        final Map<String, long[]> causes = new TreeMap<>();
        final List<ObjectNode> listed = new ArrayList<>();
        String cause = "";
        long endNs = Long.MIN_VALUE;
        for (final JsonNode stall : stalls) {
            final long dueNs = stall.get(0).asLong();
            final long tookNs = stall.get(1).asLong();
            final boolean first = dueNs >= endNs;
            if (first) {
                cause = evidence.cause(dueNs, tookNs, stall.get(2).asLong());
                listed.add(JsonNodeFactory.instance.objectNode().put("due_ns", dueNs).put("took_ns", tookNs)
                    .put("client_late_ns", stall.get(2).asLong()).put("cause", cause));
            }
            endNs = dueNs + tookNs;
            final long[] sum = causes.computeIfAbsent(cause, key -> new long[3]);
            sum[0]++;
            sum[1] += first ? 1 : 0;
            sum[2] = Math.max(sum[2], tookNs);
        }
        final ObjectNode byCause = one.putObject("stalls_by_cause");
        causes.forEach((name, sum) -> byCause.putObject(name).put("count", sum[0]).put("incidents", sum[1])
            .put("longest_ns", sum[2]));
        listed.sort(Comparator.comparing((ObjectNode stall) -> -stall.path("took_ns").asLong()));
        one.putArray("longest").addAll(listed.subList(0, Math.min(LISTED, listed.size())));
    }
}
