/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static dev.gpuseg.analysis.model.WaitMode.BUSY;
import static dev.gpuseg.analysis.model.WaitMode.SUSPEND;
import static dev.gpuseg.analysis.rta.Analysis.Claim.COMPARISON;
import static dev.gpuseg.analysis.rta.Analysis.Claim.MODEL_ONLY;
import static dev.gpuseg.analysis.rta.Analysis.Claim.PROVEN_ELSEWHERE;
import static dev.gpuseg.analysis.rta.Analysis.Claim.SOUND;
import static dev.gpuseg.analysis.rta.AnalysisDescription.Origin.OURS;
import static dev.gpuseg.analysis.rta.AnalysisDescription.Origin.PUBLISHED;

import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * All analyses, one row each, in the order of lists. Commands, reports and sweeps ask this catalogue, so that a new
 * analysis is one class and one row.
 */
public final class Analyses {
    /** The sweep over the published figures includes it. */
    private static final boolean IN_FIGURES = true;
    /** It is run by name only. */
    private static final boolean BY_REQUEST = false;

    /** An analysis and how to make it. */
    private record Row(AnalysisDescription description, Function<AnalysisDescription, Analysis> maker) {
        Row(final String name, final WaitMode mode, final AnalysisDescription.Origin origin,
            final Analysis.Claim claim, final Model model, final boolean inFigures, final String summary,
            final Function<AnalysisDescription, Analysis> maker) {
            this(new AnalysisDescription(name, mode, origin, claim, model, inFigures, summary), maker);
        }
    }

    private static final List<Row> ROWS = List.of(
        new Row("tsg-rr-busy", BUSY, PUBLISHED, MODEL_ONLY, Model.TIME_SLICES, IN_FIGURES,
            "default time-sliced round robin, threads spin (GCAPS Eq. 5-7)", TsgRrBusy::new),
        new Row("tsg-rr-suspend", SUSPEND, PUBLISHED, MODEL_ONLY, Model.TIME_SLICES, IN_FIGURES,
            "default time-sliced round robin, threads suspend (GCAPS Eq. 5, 8)", TsgRrSuspend::new),
        new Row("gcaps-busy", BUSY, PUBLISHED, MODEL_ONLY, Model.DEVICE_PARTS, IN_FIGURES,
            "GCAPS as published, threads spin (Eq. 9-12, corrected for CPU-only tasks)", GcapsBusy::new),
        new Row("gcaps-suspend", SUSPEND, PUBLISHED, MODEL_ONLY, Model.DEVICE_PARTS, IN_FIGURES,
            "GCAPS as published, threads suspend (Eq. 9, 13, 14); charges device parts, not windows",
            GcapsSuspend::new),
        new Row("gcaps-window-busy", BUSY, OURS, SOUND, Model.WINDOWS, IN_FIGURES,
            "exclusive windows from begin to end, threads spin (docs/window.md, theorem 1)", GcapsWindow::new),
        new Row("gcaps-window-suspend", SUSPEND, OURS, SOUND, Model.WINDOWS, IN_FIGURES,
            "exclusive windows from begin to end, threads suspend (docs/window.md, theorem 1)", GcapsWindow::new),
        new Row("gcaps-boost-busy", BUSY, OURS, PROVEN_ELSEWHERE, Model.BOOSTED_WINDOWS, IN_FIGURES,
            "exclusive windows, the holder at a CPU ceiling, threads spin (docs/window.md, theorem 2)",
            GcapsBoost::new),
        new Row("gcaps-boost-suspend", SUSPEND, OURS, SOUND, Model.BOOSTED_WINDOWS, IN_FIGURES,
            "exclusive windows, the holder at a CPU ceiling, threads suspend (docs/window.md, theorem 2)",
            GcapsBoost::new),
        new Row("gcaps-boost-tight-suspend", SUSPEND, OURS, SOUND, Model.BOOSTED_WINDOWS, BY_REQUEST,
            "as gcaps-boost-suspend, charged by request and window, lower tasks by their bounds (docs/boost.md, "
                + "theorem 11)", BoostedWindows::new),
        new Row("mpcp-busy", BUSY, PUBLISHED, MODEL_ONLY, Model.LOCK, IN_FIGURES,
            "GPU as an MPCP lock, threads spin (Lakshmanan 2009, Patel 2018; docs/locks.md)", Mpcp::new),
        new Row("mpcp-suspend", SUSPEND, PUBLISHED, MODEL_ONLY, Model.LOCK, IN_FIGURES,
            "GPU as an MPCP lock, threads suspend (Lakshmanan 2009, Patel 2018; docs/locks.md)", Mpcp::new),
        new Row("fmlp-busy", BUSY, PUBLISHED, MODEL_ONLY, Model.LOCK, IN_FIGURES,
            "GPU as an FMLP+ (FIFO) lock, threads spin (Brandenburg 2014; docs/locks.md)", Fmlp::new),
        new Row("fmlp-suspend", SUSPEND, PUBLISHED, MODEL_ONLY, Model.LOCK, IN_FIGURES,
            "GPU as an FMLP+ (FIFO) lock, threads suspend (Brandenburg 2014; docs/locks.md)", Fmlp::new),
        new Row("gate-busy", BUSY, OURS, SOUND, Model.GATED_WINDOWS, BY_REQUEST,
            "non-preemptive windows (launch-level gate), threads spin (docs/gate.md, theorem 3)", Gate::new),
        new Row("gate-suspend", SUSPEND, OURS, SOUND, Model.GATED_WINDOWS, BY_REQUEST,
            "non-preemptive windows (launch-level gate), threads suspend (docs/gate.md, theorem 3)", Gate::new),
        new Row("edf-edf-busy", BUSY, OURS, SOUND, Model.DEADLINE_WINDOWS, BY_REQUEST,
            "exclusive windows by deadline, cores by deadline, threads spin (docs/edf.md, theorem 4)",
            EdfWindow::new),
        new Row("edf-edf-suspend", SUSPEND, OURS, SOUND, Model.DEADLINE_WINDOWS, BY_REQUEST,
            "exclusive windows by deadline, cores by deadline, threads suspend (docs/edf.md, theorem 4)",
            EdfWindow::new),
        new Row("edf-fp-suspend", SUSPEND, OURS, SOUND, Model.DEADLINE_WINDOWS_FIXED_CORES, BY_REQUEST,
            "exclusive windows by deadline, cores by fixed priority, threads suspend (docs/edf.md, theorem 4)",
            EdfWindow::new),
        new Row("edf-boost-suspend", SUSPEND, OURS, SOUND, Model.BOOSTED_DEADLINE_WINDOWS, BY_REQUEST,
            "exclusive windows by deadline, boosted; cores by fixed priority, threads suspend (docs/boost.md, "
                + "theorem 11)", BoostedWindows::new),
        new Row("gcaps-suspend-capped", SUSPEND, OURS, MODEL_ONLY, Model.DEVICE_PARTS, BY_REQUEST,
            "gcaps-suspend with a request-driven cap on GPU interference", GcapsSuspendCapped::new),
        new Row("gcaps-busy-printed", BUSY, PUBLISHED, COMPARISON, Model.DEVICE_PARTS, BY_REQUEST,
            "GCAPS Eq. 9-12 as printed; wrong for CPU-only tasks", GcapsBusyPrinted::new));

    /** These need a statement of the platform that most sets do not make. */
    private static final List<Row> WITH_TURNS = List.of(
        new Row(TurnsSuspend.NAME, SUSPEND, OURS, SOUND, Model.TURNS, BY_REQUEST,
            "begins that wait for no driver call: long time slices, best effort takes turns; needs turns of the "
                + "platform (docs/turns.md, theorem 16)", TurnsSuspend::new));

    /** These need the table of windows, so they are made by {@link TimePartitioned}, not by name. */
    private static final List<AnalysisDescription> WITH_TABLE = List.of(
        new AnalysisDescription("partition-fp-suspend", SUSPEND, OURS, SOUND, Model.PARTITIONS, BY_REQUEST,
            "time partitions, fp inside a window, threads suspend (docs/partitions.md, theorem 6)"),
        new AnalysisDescription("partition-edf-fp-suspend", SUSPEND, OURS, SOUND, Model.PARTITIONS, BY_REQUEST,
            "time partitions, edf inside a window, threads suspend (docs/partitions.md, theorem 6)"),
        new AnalysisDescription("partition-edf-edf-suspend", SUSPEND, OURS, SOUND, Model.PARTITIONS_DEADLINE_CORES,
            BY_REQUEST, "time partitions, edf inside a window, threads suspend (docs/partitions.md, theorem 6)"));

    private static final Map<String, Analysis> BY_NAME = byName();
    private static final Map<String, Analysis> TURNS_BY_NAME = withTurns();
    private static final Map<String, AnalysisDescription> DESCRIPTIONS = descriptions();

    private Analyses() {
    }

    private static Map<String, Analysis> byName() {
        final Map<String, Analysis> map = new LinkedHashMap<>();
        for (final Row row : ROWS) {
            map.put(row.description().name(), row.maker().apply(row.description()));
        }
        return map;
    }

    private static Map<String, Analysis> withTurns() {
        final Map<String, Analysis> map = new LinkedHashMap<>();
        for (final Row row : WITH_TURNS) {
            map.put(row.description().name(), row.maker().apply(row.description()));
        }
        return map;
    }

    private static Map<String, AnalysisDescription> descriptions() {
        final Map<String, AnalysisDescription> map = new LinkedHashMap<>();
        ROWS.forEach(row -> map.put(row.description().name(), row.description()));
        WITH_TURNS.forEach(row -> map.put(row.description().name(), row.description()));
        WITH_TABLE.forEach(description -> map.put(description.name(), description));
        return map;
    }

    /** Every analysis that needs nothing but a task set; an immutable list, in the order of the catalogue. */
    public static List<Analysis> all() {
        return List.copyOf(BY_NAME.values());
    }

    /**
     * Those that a platform must state more for: how best effort takes turns.
     *
     * @return an immutable list
     */
    public static List<Analysis> withStatedTurns() {
        return List.copyOf(TURNS_BY_NAME.values());
    }

    /**
     * The analyses of the published comparison, and those of this project that a sweep compares with them.
     *
     * @return an immutable list, in the order of the catalogue
     */
    public static List<Analysis> inFigures() {
        return all().stream().filter(analysis -> analysis.description().inFigures()).toList();
    }

    /**
     * The analysis that is sound for a set under this project's daemon with default settings.
     *
     * @param mode wait mode of the set
     * @return {@code gcaps-window-suspend} or {@code gcaps-window-busy}
     */
    public static Analysis recommended(final WaitMode mode) {
        return get("gcaps-window-" + mode.word());
    }

    /** The analysis of begins that wait for no driver call, for a platform that states how best effort takes turns. */
    public static Analysis byTurns() {
        return get(TurnsSuspend.NAME);
    }

    /**
     * One analysis.
     *
     * @param name its name
     * @return the analysis
     * @throws IllegalArgumentException if there is none of that name, with the names that exist
     */
    public static Analysis get(final String name) {
        final Analysis analysis = BY_NAME.getOrDefault(name, TURNS_BY_NAME.get(name));
        if (analysis == null && DESCRIPTIONS.containsKey(name)) {
            throw new IllegalArgumentException("analysis '" + name + "' needs the table of windows; give it with "
                + "--policy-file, and no --analysis");
        }
        if (analysis == null) {
            throw new IllegalArgumentException("analysis '" + name + "' does not exist; known are "
                + String.join(", ", BY_NAME.keySet()) + ", " + String.join(", ", TURNS_BY_NAME.keySet()));
        }
        return analysis;
    }

    /**
     * The row of an analysis, also of one that needs a table of windows.
     *
     * @param name its name
     * @return what is known of it apart from its equations
     * @throws IllegalArgumentException if there is none of that name
     */
    public static AnalysisDescription describe(final String name) {
        final AnalysisDescription description = DESCRIPTIONS.get(name);
        return description != null ? description : get(name).description();
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
}
