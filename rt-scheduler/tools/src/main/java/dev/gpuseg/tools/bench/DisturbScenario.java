/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.tools.bench.PeriodicProcesses.Part;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * What a task that does not keep to its period costs others: a task above it and a task below it keep to theirs, while
 * it is regular, stops, doubles its period or begins up to 2 ms early and late. Releases have fixed phases such that
 * jobs of the three do not overlap in any of these cases, so whatever changes for the other two comes from begins that
 * were expected in vain.
 *
 * <p>Each cell has the p99 of the two against the cell in which all are regular ({@code p99_to_regular}) and the time
 * that the daemon kept the GPU free ({@code kept_free_share}), which its budget limits.
 */
final class DisturbScenario implements GpuScenario {
    static final String NAME = "disturb";
    static final String REGULAR = "regular";
    static final String TO_REGULAR = "p99_to_regular";
    private static final double OTHER_MS = 20;
    private static final int OTHERS = 3;
    private static final List<String> ANTICIPATED = List.of("--anticipate", "declared");

    private static final Part ABOVE = new Part("control", 0.35, 10, 10, 85, "--phase-ms", "0");
    private static final Part BELOW = new Part("camera", 5, 1, 40, 60, "--phase-ms", "12");
    private static final String CHANGING = "changing";

    /** What the third one does. */
    private record Way(String title, String key, Part changing) {
    }

    private static final List<Way> WAYS = List.of(
        new Way(REGULAR, "regular", changing(1, "--phase-ms", "5")),
        new Way("stops", "stops", changing(1, "--phase-ms", "5", "--silent")),
        // half of its jobs take twice as long: as many jobs would take 1.5 times the cell
        new Way("doubles its period", "doubles", changing(2.0 / 3, "--phase-ms", "5", "--rare")),
        new Way("jitters by +-2 ms", "jitters", changing(1, "--phase-ms", "3", "--jitter-ms", "4")));

    private static Part changing(final double share, final String... options) {
        return new Part(CHANGING, 1, 5, 20, 70, share, List.of(options));
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public void measure(final GpuBench bench, final ObjectNode into)
        throws IOException, InterruptedException, TimeoutException {
        into.put("other_kernel_ms", OTHER_MS);
        final PeriodicProcesses processes = new PeriodicProcesses(bench, NAME);
        final ArrayNode alone = into.putObject("alone").putArray("tasks");
        processes.alone(parts(WAYS.get(0)), alone);
        final ArrayNode cells = into.putArray("cells");
        if (!bench.plan().strategies().contains(GpuStrategy.OPTIMISTIC)) {
            return;
        }
        bench.against(OTHERS, OTHER_MS, into, running -> {
            final List<ObjectNode> regular = new ArrayList<>();
            for (final Way way : WAYS) {
                final ObjectNode cell = bench.cell(way.title(), OTHERS, cells,
                    () -> processes.together(way.key(), parts(way), alone, ANTICIPATED, running));
                if (!cell.has("tasks")) {
                    continue;
                }
                if (way.title().equals(REGULAR)) {
                    regular.add(cell);
                }
                regular.forEach(basis -> compare(cell, basis));
            }
        });
    }

    private static List<Part> parts(final Way way) {
        return List.of(ABOVE, way.changing(), BELOW);
    }

    /** The two that do not change, against the cell in which nothing changes. */
    private static void compare(final ObjectNode cell, final ObjectNode regular) {
        for (int i = 0; i < cell.path("tasks").size(); i++) {
            final ObjectNode task = (ObjectNode) cell.path("tasks").get(i);
            if (!task.path("task").asText().equals(CHANGING)) {
                task.put(TO_REGULAR, GpuBench.ratio(task, regular.path("tasks").get(i), "p99"));
            }
        }
    }
}
