/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The analyses by name. */
public final class Analyses {
    private static final Map<String, Analysis> BY_NAME = register();
    /** What time partitions are analysed by, with a table that is none. */
    private static final List<Analysis> PARTITIONED = List.of(partitioned(FixedPriority.INSTANCE, false),
        partitioned(EarliestDeadlineFirst.INSTANCE, false), partitioned(EarliestDeadlineFirst.INSTANCE, true));

    private Analyses() {
    }

    /**
     * Every analysis, in the order of the documentation.
     *
     * @return an immutable list
     */
    public static List<Analysis> all() {
        return List.copyOf(BY_NAME.values());
    }

    /**
     * The twelve fixed-priority analyses of the published comparison and of this project.
     *
     * @return an immutable list
     */
    public static List<Analysis> twelve() {
        return all().subList(0, 12);
    }

    /**
     * The analysis to trust for a set that runs under this project's daemon with default settings.
     *
     * @param mode wait mode of the set
     * @return {@code gcaps-window-suspend} or {@code gcaps-window-busy}
     */
    public static Analysis recommended(final WaitMode mode) {
        return get("gcaps-window-" + mode.word());
    }

    /**
     * One analysis.
     *
     * @param name its name
     * @return the analysis
     * @throws IllegalArgumentException if there is none of that name, with the names that exist
     */
    public static Analysis get(final String name) {
        final Analysis analysis = BY_NAME.get(name);
        if (analysis == null && PARTITIONED.stream().anyMatch(p -> p.name().equals(name))) {
            throw new IllegalArgumentException("analysis '" + name + "' needs the table of windows; give it with "
                + "--policy-file, and no --analysis");
        }
        if (analysis == null) {
            throw new IllegalArgumentException("analysis '" + name + "' does not exist; known are "
                + String.join(", ", BY_NAME.keySet()));
        }
        return analysis;
    }

    /**
     * The analysis that gave a result, for what can be said of it without a set; with time partitions, one of no table.
     *
     * @param result of any analysis
     * @return its name, summary, mode and claim; for analysing, only if it needs no table
     */
    public static Analysis describing(final AnalysisResult result) {
        for (final Analysis partitioned : PARTITIONED) {
            if (partitioned.name().equals(result.analysis())) {
                return partitioned;
            }
        }
        return get(result.analysis());
    }

    /**
     * Several analyses.
     *
     * @param names comma-separated names, or {@code all}
     * @return in the order given
     * @throws IllegalArgumentException if a name does not exist
     */
    public static List<Analysis> parse(final String names) {
        final List<Analysis> chosen = new ArrayList<>();
        for (final String part : names.split(",", -1)) {
            final String name = part.trim();
            if (name.equals("all")) {
                for (final Analysis analysis : all()) {
                    if (!chosen.contains(analysis)) {
                        chosen.add(analysis);
                    }
                }
            } else {
                final Analysis analysis = get(name);
                if (!chosen.contains(analysis)) {
                    chosen.add(analysis);
                }
            }
        }
        return chosen;
    }

    private static Analysis partitioned(final Policy inner, final boolean edfCores) {
        return new TimePartitioned(new TimePartitions(inner, 1, 0, 0, false, new TimePartitions.Window(1, 0, 1)),
            task -> 1, edfCores);
    }

    private static Map<String, Analysis> register() {
        final Map<String, Analysis> map = new LinkedHashMap<>();
        final List<Analysis> analyses = List.of(
            new TsgRrBusy(), new TsgRrSuspend(), new GcapsBusy(), new GcapsSuspend(),
            new GcapsWindow(WaitMode.BUSY), new GcapsWindow(WaitMode.SUSPEND),
            new GcapsBoost(WaitMode.BUSY), new GcapsBoost(WaitMode.SUSPEND),
            new Mpcp(WaitMode.BUSY), new Mpcp(WaitMode.SUSPEND), new Fmlp(WaitMode.BUSY), new Fmlp(WaitMode.SUSPEND),
            new Gate(WaitMode.BUSY), new Gate(WaitMode.SUSPEND),
            new EdfWindow(Windows.Order.EDF, WaitMode.BUSY), new EdfWindow(Windows.Order.EDF, WaitMode.SUSPEND),
            new EdfWindow(Windows.Order.EDF_GPU, WaitMode.SUSPEND), new GcapsSuspendCapped(), new GcapsBusyPrinted());
        for (final Analysis analysis : analyses) {
            map.put(analysis.name(), analysis);
        }
        return map;
    }
}
