/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.tools.bench.PeriodicProcesses.Part;
import dev.gpuseg.tools.demo.Workload;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeoutException;

/**
 * Workloads A to E of DISB, the inference serving benchmark of REEF (OSDI 2022), as {@code traces/workloads} has them:
 * real-time models beside best-effort ones, by the driver, in MPS and by gpuseg. An inference is a graph of
 * {@value #KERNELS} equal kernels as long as the model's; the models themselves do not run. What arrives as a Poisson
 * process in E begins at a drawn time of each period here.
 */
final class DisbScenario implements GpuScenario {
    static final String NAME = "disb";
    private static final int KERNELS = 10;
    private static final double NS_PER_MS = 1e6;
    /** Fewer in tests. */
    private static final List<String> LETTERS =
        List.of(System.getProperty("gpuseg.bench.disb", "a,b,c,d,e").split(","));
    private static final String DRAWN = "e";
    private static final String MPS = "MPS";

    /** One workload, and what its real-time tasks did alone. */
    private record Set(String letter, List<Part> parts, int others, double otherMs, ArrayNode alone) {
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final ArrayNode alone = into.putObject("alone").putArray("tasks");
        into.putArray("cells");
        for (final String letter : LETTERS) {
            final Set set = read(letter, into.arrayNode());
            new PeriodicProcesses(bench, name() + "-" + letter).alone(set.parts, set.alone);
            alone.addAll(set.alone);
            measure(bench, set, into);
        }
    }

    private static Set read(final String letter, final ArrayNode alone) throws IOException {
        final List<Part> parts = new ArrayList<>();
        int others = 0;
        double otherMs = 0;
        for (final Task task : Workload.named("disb-" + letter).set().tasks()) {
            if (task.bestEffort()) {
                others++;
                otherMs = gpuMs(task);
                continue;
            }
            final double periodMs = task.periodNs() / NS_PER_MS;
            parts.add(new Part(task.name(), gpuMs(task), KERNELS, periodMs, task.priority(), letter.equals(DRAWN)
                ? new String[] {"--undeclared", "--jitter-ms", Double.toString(periodMs - gpuMs(task))}
                : new String[0]));
        }
        return new Set(letter, parts, others, otherMs, alone);
    }

    private static double gpuMs(final Task task) {
        return task.segments().stream().filter(Segment.Gpu.class::isInstance).map(Segment.Gpu.class::cast)
            .mapToLong(gpu -> gpu.hostNs() + gpu.deviceNs()).sum() / NS_PER_MS;
    }

    private void measure(final GpuBench bench, final Set set, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        final double[] byDriver = {0};
        bench.against(set.others, set.otherMs, into, running -> {
            if (bench.plan().strategies().contains(GpuStrategy.NONE)) {
                byDriver[0] = cell(bench, set, GpuStrategy.NONE.title(), into, List.of(), null, running, 0);
            }
            if (bench.plan().strategies().contains(GpuStrategy.OPTIMISTIC)) {
                cell(bench, set, GpuStrategy.OPTIMISTIC.title(), into, List.of(), List.of(), running, byDriver[0]);
            }
        });
        if (bench.plan().strategies().contains(GpuStrategy.NONE)) {
            try (MpsServer mps = new MpsServer(bench.directory())) {
                bench.against(set.others, set.otherMs, into, mps.environment(), running -> cell(bench, set, MPS, into,
                    mps.environment(), null, running, byDriver[0]));
            } catch (final IllegalStateException e) {
                bench.cell(title(set, MPS), set.others, (ArrayNode) into.path("cells"), () -> {
                    throw e;
                });
            }
        }
    }

    private static String title(final Set set, final String way) {
        return set.letter.toUpperCase(Locale.ROOT) + ", " + way;
    }

    /** Measures one; kernels of the best-effort models per millisecond, 0 if it failed. */
    private double cell(final GpuBench bench, final Set set, final String way, final ObjectNode into,
        final List<String> environment, final List<String> daemon, final List<CudaBench.Other> running,
        final double byDriver) throws IOException, InterruptedException {
        final PeriodicProcesses processes = new PeriodicProcesses(bench, name() + "-" + set.letter, environment);
        final JsonNode cell = bench.cell(title(set, way), running.size(), (ArrayNode) into.path("cells"), () -> {
            final ObjectNode seen = processes.together(way.replaceAll("[^A-Za-z]+", "-"), set.parts, set.alone, daemon,
                running);
            if (byDriver > 0) {
                seen.put("others_to_default", GpuBench.rounded(seen.path("others_per_ms").asDouble() / byDriver));
            }
            return seen;
        });
        return cell.path("others_per_ms").asDouble();
    }
}
