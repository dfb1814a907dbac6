/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisDescription;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.PlantedTerm;
import dev.gpuseg.analysis.rta.PreparedSet;
import dev.gpuseg.analysis.sweep.WitnessSets.Shape;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Mutation tests of the theorems: each term of each recurrence, left out or without its jitter, gives a bound that the
 * campaign exceeds within {@link #SETS} sets of one or two shapes, each with {@link #RUNS} random runs and
 * {@link #CLIMBS} of a directed search: 8,800 runs. There are no exceptions.
 */
@Timeout(300)
@Tag("long")
class PlantedTermsTest {
    private static final int SETS = 200;
    private static final int STEP = 10;
    private static final int RUNS = 4;
    private static final int CLIMBS = 40;
    private static final long SEED = 11;

    /** An analysis with an error. */
    private record Wrong(dev.gpuseg.analysis.sweep.Claim right, PlantedTerm error) implements Analysis {
        @Override
        public AnalysisDescription description() {
            return right.analysis().description();
        }

        @Override
        public boolean needsPriorities() {
            return right.analysis().needsPriorities();
        }

        @Override
        public AnalysisResult analyse(final TaskSet set) {
            return error.analyse(right.analysisOf(set), set);
        }

        @Override
        public AnalysisResult analyse(final PreparedSet set) {
            return analyse(set.taskSet());
        }

        @Override
        public boolean isSchedulable(final PreparedSet set) {
            return right.analysis().isSchedulable(set);
        }
    }

    private static List<Claim> claims() {
        final List<Claim> claims = new ArrayList<>(Claim.all().stream().filter(Claim::claimed).toList());
        claims.addAll(Claim.partitions());
        return claims;
    }

    static List<Arguments> errors() {
        final List<Arguments> errors = new ArrayList<>();
        for (final Claim claim : claims()) {
            for (final PlantedTerm error : PlantedTerm.values()) {
                if (error != PlantedTerm.NONE && occurs(claim, error)) {
                    errors.add(Arguments.of(claim, error));
                }
            }
        }
        return errors;
    }

    private static boolean isGate(final Claim claim) {
        return claim.analysis().name().startsWith("gate");
    }

    /** Theorem 11 has terms of its own: {@link BoostMutantsTest} has errors in them. */
    private static boolean isWindowByWindow(final Claim claim) {
        return List.of("gcaps-boost-tight-suspend", "edf-boost-suspend").contains(claim.analysis().name());
    }

    /** Whether the recurrence has the term; {@link #shouldHaveNoSuchTerm} checks it. */
    private static boolean occurs(final Claim claim, final PlantedTerm error) {
        final String name = claim.analysis().name();
        return switch (error) {
            case DEADLINES -> name.contains("edf") && !isWindowByWindow(claim);
            case TABLE -> name.startsWith("partition");
            case B, B_JITTER, B_GPU -> !name.contains("edf-fp") && !isWindowByWindow(claim);   // charged as (c) and (d)
            case C, C_JITTER -> claim.analysis().mode() == WaitMode.SUSPEND;   // threads that spin are all in (b)
            case E -> !isWindowByWindow(claim);
            // windows of a process are shared where threads suspend, without boosts and partitions
            case LOWER -> isGate(claim) || name.startsWith("gcaps-boost") && !isWindowByWindow(claim)
                || List.of("gcaps-window-suspend", "edf-edf-suspend", "edf-fp-suspend").contains(name);
            default -> true;
        };
    }

    /** Sets in which the term is a large part of a bound. */
    private static Shape shape(final Claim claim, final PlantedTerm error, final long k) {
        return switch (error) {
            case DECLARED -> Shape.BLOCKED;
            case OWN_UPDATES -> isGate(claim) ? Shape.SWITCHES : Shape.UPDATES;
            case LOWER -> isGate(claim) || claim.analysis().name().startsWith("gcaps-boost") ? Shape.TINY
                : Shape.SHARED;
            case A_JITTER, B_JITTER, C_JITTER -> Shape.LATE_LOCAL;
            case D_JITTER -> isGate(claim) ? Shape.LATE_AT_GATE : Shape.LATE_REMOTE;
            case E -> Shape.STOPPED;
            default -> k % 2 == 0 ? Shape.TINY : Shape.CARRY_IN;
        };
    }

    @ParameterizedTest
    @MethodSource("errors")
    void shouldFindABoundWithAWrongTerm(final Claim claim, final PlantedTerm error) {
        final Claim wrong = new Claim(new Wrong(claim, error), claim.mechanism(), false);
        final Campaign campaign = new Campaign(List.of(wrong), k -> WitnessSets.generate(shape(claim, error, k), SEED,
            k), SEED, RUNS, CLIMBS);
        long exceeded = 0;
        int sets = 0;
        for (; sets < SETS && exceeded == 0; sets += STEP) {
            exceeded = campaign.run(sets, sets + STEP).get("exceeded sets of " + wrong.title());
        }
        assertTrue(exceeded > 0, claim.title() + " without " + error + " is not exceeded in " + sets + " sets");
    }

    /** The solver of the wrong bounds gives bounds that hold where nothing is wrong. */
    @Test
    void shouldNotExceedABoundWithoutAnError() {
        for (final Claim claim : claims()) {
            final Claim same = new Claim(new Wrong(claim, PlantedTerm.NONE), claim.mechanism(), false);
            final Campaign campaign = new Campaign(List.of(same), k -> CampaignSets.mixed(SEED, k), SEED, RUNS);
            assertEquals(0L, campaign.run(0, 150).get("exceeded sets of " + same.title()), same.title());
        }
    }

    /** No bound is exceeded in the sets in which single terms decide. */
    @Test
    void shouldNeverExceedARightBoundOfAShape() {
        final List<Claim> right = claims();
        for (final Shape shape : Shape.values()) {
            final Campaign campaign = new Campaign(right, k -> WitnessSets.generate(shape, SEED, k), SEED, RUNS,
                CLIMBS);
            final var counts = campaign.run(0, 20);
            long accepted = 0;
            for (final Claim claim : right) {
                assertEquals(0L, counts.get("exceeded sets of " + claim.title()), () -> shape + ": "
                    + campaign.excesses());
                accepted += counts.get("accepted of " + claim.title());
            }
            assertTrue(accepted >= 20, shape + " is accepted " + accepted + " times");
        }
    }

    /** What is said not to occur changes no bound. */
    @Test
    void shouldHaveNoSuchTerm() {
        for (final Claim claim : claims()) {
            for (final PlantedTerm error : PlantedTerm.values()) {
                // the parts of theorem 11 that are no sum of jobs are one term to the solver
                final boolean other = isWindowByWindow(claim) && (error == PlantedTerm.E
                    || error == PlantedTerm.DEADLINES);
                for (long k = 0; k < 60 && !occurs(claim, error) && !other; k++) {
                    final TaskSet set = CampaignSets.generate(SEED, k).withMode(claim.analysis().mode());
                    if (claim.conflict(set).isEmpty()) {
                        final Analysis analysis = claim.analysisOf(set);
                        final AnalysisResult right = PlantedTerm.NONE.analyse(analysis, set);
                        assertFalse(PlantedTerm.isLower(right, error.analyse(analysis, set)),
                            claim.title() + " has " + error);
                    }
                }
            }
        }
    }
}
