/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.tools.bench.PeriodicProcesses.Part;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * A robot on one GPU: ten periodic processes of different rank, 0.1 to 10 ms at 10 to 500 Hz, beside best-effort work.
 * For each: jobs that were late or left out, and the response against the same process alone.
 */
final class RobotScenario implements GpuScenario {
    private static final double OTHER_MS = 20;
    private static final int OTHERS = 3;
    private static final List<Part> PARTS = List.of(
        new Part("servo", 0.1, 1, 2, 95),
        new Part("imu", 0.15, 2, 5, 90),
        new Part("control", 0.35, 10, 10, 85),
        new Part("grasp", 0.5, 5, 20, 80),
        new Part("lidar", 1, 5, 25, 75),
        new Part("stereo", 2, 4, 33.333, 70),
        new Part("detect", 4, 1, 40, 65),
        new Part("track", 5, 1, 50, 60),
        new Part("map", 8, 1, 100, 55),
        new Part("plan", 10, 1, 100, 50));

    /** A way of running it. */
    private record Way(String title, String key, GpuStrategy strategy, List<String> daemon) {
    }

    private static final List<Way> WAYS = List.of(
        new Way("default", "none", GpuStrategy.NONE, null),
        new Way("not anticipated", "off", GpuStrategy.OPTIMISTIC, List.of("--anticipate", "off")),
        new Way("anticipated", "declared", GpuStrategy.OPTIMISTIC, List.of("--anticipate", "declared")));

    @Override
    public String name() {
        return "robot";
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("other_kernel_ms", OTHER_MS);
        final PeriodicProcesses processes = new PeriodicProcesses(bench, name());
        final ArrayNode alone = into.putObject("alone").putArray("tasks");
        processes.alone(PARTS, alone);
        final ArrayNode cells = into.putArray("cells");
        bench.against(OTHERS, OTHER_MS, into, running -> {
            double offPerMs = 0;
            for (final Way way : WAYS) {
                if (!bench.plan().strategies().contains(way.strategy())) {
                    continue;
                }
                final double basis = offPerMs;
                final ObjectNode cell = bench.cell(way.title(), OTHERS, cells, () -> {
                    final ObjectNode seen = processes.together(way.key(), PARTS, alone, way.daemon(), running);
                    if (basis > 0) {
                        seen.put("others_to_unanticipated",
                            GpuBench.rounded(seen.path("others_per_ms").asDouble() / basis));
                    }
                    return seen;
                });
                if (way.key().equals("off") && cell.has("others_per_ms")) {
                    offPerMs = cell.path("others_per_ms").asDouble();
                }
            }
        });
    }
}
