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
 * it is regular, begins up to 2 ms early and late, stops, or doubles its period. Releases have fixed phases such that
 * neither jobs of the three overlap in any of these cases, nor a job and what disabling and enabling others takes
 * before and after another one. So whatever changes for the other two comes from begins that were expected in vain. A
 * check of results takes 0.8 ms inside the segment and would delay a begin of another task: checks are rare, and at the
 * same releases in each cell.
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

    /** One job of so many has its result checked. */
    private static final String CHECKED = "64";

    private static final Part ABOVE = new Part("control", 0.35, 10, 10, 85, "--phase-ms", "0", "--check-every",
        CHECKED);
    private static final Part BELOW = new Part("camera", 5, 1, 40, 60, "--phase-ms", "12", "--check-every",
        CHECKED);
    private static final String CHANGING = "changing";

    /** What the third one does. */
    private record Way(String title, String key, Part changing) {
    }

    private static final List<Way> WAYS = List.of(
        new Way(REGULAR, "regular", changing(1, "4.2")),
        new Way("jitters by +-2 ms", "jitters", changing(1, "2.2", "--jitter-ms", "4")),
        new Way("stops", "stops", changing(1, "4.2", "--silent")),
        // half of its jobs take twice as long: as many jobs would take 1.5 times the cell
        new Way("doubles its period", "doubles", changing(2.0 / 3, "4.2", "--rare")));

    private static Part changing(final double share, final String phaseMs, final String... more) {
        final List<String> options = new ArrayList<>(List.of("--phase-ms", phaseMs, "--check-every", CHECKED));
        options.addAll(List.of(more));
        return new Part(CHANGING, 1, 5, 20, 70, share, options);
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
                bench.cell(way.title(), OTHERS, cells, () -> {
                    final ObjectNode cell = processes.together(way.key(), parts(way), alone, ANTICIPATED, running);
                    if (way.title().equals(REGULAR)) {
                        regular.add(cell);
                    }
                    regular.forEach(basis -> compare(cell, basis));
                    return cell;
                });
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
