/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A bound and the mechanism it is compared with.
 *
 * @param analysis  the bound
 * @param mechanism what is simulated
 * @param claimed   true if no response may exceed the bound; false where the comparison shows what an unsound bound
 *                  costs
 */
public record Claim(Analysis analysis, Mechanism mechanism, boolean claimed) {
    /**
     * What is simulated.
     *
     * @param scheduler of the GPU
     * @param cpuPolicy of the cores
     * @param hold      what holds the GPU
     */
    public record Mechanism(Scheduler scheduler, CpuPolicy cpuPolicy, Hold hold) {
        /** A number of its own for each mechanism, for seeds. */
        int number() {
            return 100 * scheduler.ordinal() + 10 * cpuPolicy.ordinal() + hold.ordinal();
        }

        @Override
        public String toString() {
            return scheduler.word() + "/" + cpuPolicy.name().toLowerCase(Locale.ROOT) + "/"
                + hold.name().toLowerCase(Locale.ROOT);
        }
    }

    private static final Mechanism WINDOW = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism BOOST = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.BOOST);
    private static final Mechanism CEILING = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.CEILING);
    private static final Mechanism GATE = new Mechanism(Scheduler.GATE, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism LOCK = new Mechanism(Scheduler.GATE, CpuPolicy.FP, Hold.BOOST);
    private static final Mechanism SHARED = new Mechanism(Scheduler.RR, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism ABSTRACT = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.ABSTRACT);

    /**
     * All comparisons.
     *
     * @return claims of soundness first
     */
    public static List<Claim> all() {
        final List<Claim> claims = new ArrayList<>();
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-window-" + mode), WINDOW, true));
            claims.add(new Claim(Analyses.get("gcaps-boost-" + mode), BOOST, true));
            claims.add(new Claim(Analyses.get("gate-" + mode), GATE, true));
            claims.add(new Claim(Analyses.get("edf-edf-" + mode), new Mechanism(Scheduler.EDF, CpuPolicy.EDF,
                Hold.WINDOW),
                true));
        }
        claims.add(new Claim(Analyses.get("edf-fp-suspend"), new Mechanism(Scheduler.EDF, CpuPolicy.FP, Hold.WINDOW),
            true));
        claims.add(new Claim(Analyses.get("gcaps-boost-suspend"), CEILING, true));
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-" + mode), ABSTRACT, false));
            claims.add(new Claim(Analyses.get("gcaps-" + mode), WINDOW, false));
            claims.add(new Claim(Analyses.get("tsg-rr-" + mode), SHARED, false));
            claims.add(new Claim(Analyses.get("mpcp-" + mode), LOCK, false));
        }
        claims.add(new Claim(Analyses.get("gcaps-suspend-capped"), ABSTRACT, false));
        claims.add(new Claim(Analyses.get("gcaps-busy-printed"), ABSTRACT, false));
        return List.copyOf(claims);
    }

    /**
     * What the bound for spinning threads would have to hold for, if the boost lasted from begin to end.
     *
     * @return a comparison that shows why it is not used for that
     */
    static Claim spinningAtACeiling() {
        return new Claim(Analyses.get("gcaps-boost-busy"), CEILING, false);
    }

    /**
     * The published bounds and this project's against whole windows.
     *
     * @return for each mode the published bound, the window bound and the boost bound
     */
    static List<Claim> gap() {
        final List<Claim> claims = new ArrayList<>();
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-" + mode), WINDOW, false));
            claims.add(new Claim(Analyses.get("gcaps-window-" + mode), WINDOW, true));
            claims.add(new Claim(Analyses.get("gcaps-boost-" + mode), BOOST, true));
        }
        return List.copyOf(claims);
    }

    /**
     * Name for tables.
     *
     * @return analysis and mechanism
     */
    public String title() {
        return analysis.name() + " @ " + mechanism;
    }
}
