/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.bench.GpuShare;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code gpuseg bench fair}: how exactly weights and caps are kept, on a virtual GPU of its own. */
@Command(name = "fair", mixinStandardHelpOptions = true,
    description = {"Measure shares with weights 1:2:4 and a cap of 25 %% on the virtual GPU (simulated), by its log.",
        "Exit: 0 within 3 %% (weights) and 2 %% (cap) in every run, 3 not."})
final class BenchFairCommand implements Callable<Integer> {
    private static final int[] WEIGHTS = {100, 200, 400};
    private static final double WEIGHT_LIMIT = 0.03;
    private static final double CAP = 0.25;
    private static final double CAP_LIMIT = 0.02;
    private static final int START_LIMIT_S = 40;
    private static final long SETTLE_MS = 500;
    private static final long LOG_MS = 300;
    private static final long POLL_MS = 5;

    @Spec
    private CommandSpec spec;

    @Mixin
    private BenchOptions form;

    @Option(names = "--runs", paramLabel = "N", defaultValue = "1", description = "default: ${DEFAULT-VALUE}")
    private int runs;

    @Option(names = "--quantum", paramLabel = "D", defaultValue = "10ms",
        description = "longest turn (default: ${DEFAULT-VALUE})")
    private String quantum;

    private final List<Child> children = new ArrayList<>();
    private RuntimeDirectory directory;
    private Path log;

    @Override
    public Integer call() throws Exception {
        if (form.durationMs() < 1_000 || form.durationMs() > 60_000 || runs < 1 || runs > 100) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--duration is " + form.durationMs()
                + "ms, --runs is " + runs + "; use 1s..1min and 1..100");
        }
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("duration_ms", form.durationMs()).put("quantum", quantum);
        final ArrayNode list = result.putArray("runs");
        boolean holds = true;
        for (int i = 0; i < runs; i++) {
            final ObjectNode run = list.addObject();
            measure(run);
            holds &= run.path("worst_weight_error").asDouble() <= WEIGHT_LIMIT
                && run.path("worst_cap_error").asDouble() <= CAP_LIMIT;
        }
        result.put("holds", holds);
        print(result);
        return holds ? ExitCode.OK : ExitCode.NO;
    }

    private void measure(final ObjectNode run) throws IOException, InterruptedException {
        final Path root = Files.createTempDirectory(Path.of("/dev/shm"), "gpuseg-fair-");
        try {
            directory = RuntimeDirectory.resolve(root.toString());
            log = root.resolve("vgpu.spans");
            start(root);
            final List<Child> weighted = new ArrayList<>();
            for (final int weight : WEIGHTS) {
                weighted.add(endless(root, "weight-" + weight, weight));
            }
            final double[] shares = shares(weighted);
            weights(run, shares);
            for (final Child child : weighted) {
                child.close();
            }
            final Child capped = endless(root, "capped", 100);
            setting("tasks", "task", "capped", "cap", "25ms/100ms");
            final double alone = shares(List.of(capped))[0];
            final Child other = endless(root, "other", 100);
            final double[] beside = shares(List.of(capped, other));
            run.put("cap_alone", alone).put("cap_beside_another", beside[0]).put("the_other", beside[1]);
            run.put("worst_cap_error", Math.max(Math.abs(alone - CAP), Math.abs(beside[0] - CAP)));
        } finally {
            for (int i = children.size() - 1; i >= 0; i--) {
                children.get(i).close();
            }
            children.clear();
            RuntimeDirectory.deleteTree(root);
        }
    }

    private static void weights(final ObjectNode run, final double[] shares) {
        final double sum = shares[0] + shares[1] + shares[2];
        double worst = 0;
        for (int i = 0; i < shares.length; i++) {
            final double ideal = WEIGHTS[i] / 700.0;
            run.put("share_of_weight_" + WEIGHTS[i], shares[i] / sum);
            worst = Math.max(worst, Math.abs(shares[i] / sum / ideal - 1));
        }
        run.put("gpu_in_use", sum).put("worst_weight_error", worst);
    }

    private void start(final Path root) throws IOException, InterruptedException {
        final Child gpu = Child.start("gpuseg-vgpu", List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
            root.toString(), "--log", log.toString(), "--parent", Long.toString(ProcessHandle.current().pid()),
            "--scheduling", "fifo:98"), root.resolve("vgpu.err"));
        children.add(gpu);
        gpu.await("ready", START_LIMIT_S);
        Files.writeString(root.resolve("policy.yaml"), "sharing: turns\nquantum: " + quantum + "\n");
        final List<String> arguments = new ArrayList<>(List.of("--dir", root.toString(), "--mechanism", "sim",
            "--policy", "fp", "--policy-file", root.resolve("policy.yaml").toString()));
        if (RealTime.isPermitted()) {
            arguments.addAll(List.of("--priority", "90"));
        }
        final Child daemon = Child.start("gpuseg run", JavaCommand.daemon(arguments), root.resolve("daemon.err"));
        children.add(daemon);
        daemon.await("ready", START_LIMIT_S);
    }

    private Child endless(final Path root, final String name, final int weight) throws InterruptedException {
        final Child child = Child.start(name, List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            root.toString(), "--name", name, "--priority", "0", "--period", "1000s", "--segments", "gpu:0ms+1000s",
            "--duration", "1000s", "--cpu-mode", "sleep", "--weight", Integer.toString(weight)),
            root.resolve(name + ".err"));
        children.add(child);
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_LIMIT_S);
        while (!hasBegun(name)) {
            if (System.nanoTime() - limitNs > 0) {
                throw new IllegalStateException("task " + name + " does not begin: " + child.said());
            }
            TimeUnit.MILLISECONDS.sleep(POLL_MS);
        }
        return child;
    }

    private boolean hasBegun(final String name) {
        for (final JsonNode task : AdminClient.ask(directory, AdminClient.command("status")).path("tasks")) {
            if (task.path("name").asText().equals(name)) {
                return List.of("running", "preempted").contains(task.path("state").asText());
            }
        }
        return false;
    }

    private void setting(final String list, final String kind, final String name, final String key,
        final String value) {
        final ObjectNode request = AdminClient.command("policy");
        request.putObject("settings").putArray(list).addObject().put(kind, name).put(key, value);
        AdminClient.ask(directory, request);
    }

    private double[] shares(final List<Child> tasks) throws IOException, InterruptedException {
        TimeUnit.MILLISECONDS.sleep(SETTLE_MS);
        final long fromNs = System.nanoTime();
        TimeUnit.MILLISECONDS.sleep(form.durationMs());
        final long toNs = System.nanoTime();
        TimeUnit.MILLISECONDS.sleep(LOG_MS);   // the turn in progress is logged when it ends
        final double[] shares = new double[tasks.size()];
        for (int i = 0; i < shares.length; i++) {
            shares[i] = GpuShare.of(log, tasks.get(i).pid(), fromNs, toNs);
        }
        return shares;
    }

    private void print(final ObjectNode result) {
        final PrintWriter out = spec.commandLine().getOut();
        if (form.json()) {
            out.println(result);
        } else {
            out.println("Shares of best-effort work (simulated GPU, by its own log)");
            for (final JsonNode run : result.path("runs")) {
                out.println(String.format(Locale.ROOT, "  weights 1:2:4  %.4f %.4f %.4f  worst error %.2f %%, GPU in "
                    + "use %.1f %%;  cap 25 %%: alone %.2f %%, beside another %.2f %%",
                    run.path("share_of_weight_100").asDouble(), run.path("share_of_weight_200").asDouble(),
                    run.path("share_of_weight_400").asDouble(), 100 * run.path("worst_weight_error").asDouble(),
                    100 * run.path("gpu_in_use").asDouble(), 100 * run.path("cap_alone").asDouble(),
                    100 * run.path("cap_beside_another").asDouble()));
            }
            out.println(result.path("holds").asBoolean() ? "within 3 % and 2 %" : "NOT within 3 % and 2 %");
        }
        out.flush();
    }
}
