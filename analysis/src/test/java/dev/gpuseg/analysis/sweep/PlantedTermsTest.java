/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisDescription;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.PlantedTerm;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Mutation tests of the theorems: each term of each recurrence, left out or without its jitter, gives a bound that the
 * campaign exceeds within {@link #SETS} sets, each with {@link #RUNS} random runs and {@link #CLIMBS} of a directed
 * search.
 */
@Timeout(600)
@Tag("long")
class PlantedTermsTest {
    private static final int SETS = 400;
    private static final int CARRY_IN_SETS = 1_500;
    private static final int STEP = 50;
    private static final long MS = 1_000_000L;
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

    private static final Set<PlantedTerm> CARRY_IN = EnumSet.of(PlantedTerm.B_JITTER, PlantedTerm.C_JITTER,
        PlantedTerm.D_JITTER);

    /** Theorem 11 has terms of its own, and {@link BoostMutantsTest} errors in them. */
    private static boolean hasOtherTerms(final Claim claim) {
        return List.of("gcaps-boost-tight-suspend", "edf-boost-suspend").contains(claim.analysis().name());
    }

    private static List<Claim> claims() {
        final List<Claim> claims = new ArrayList<>(Claim.all().stream().filter(Claim::claimed)
            .filter(claim -> !hasOtherTerms(claim)).toList());
        claims.add(Claim.partitions().get(0));
        return claims;
    }

    static List<Arguments> errors() {
        final List<Arguments> errors = new ArrayList<>();
        for (final Claim claim : claims()) {
            for (final PlantedTerm error : PlantedTerm.values()) {
                if (error != PlantedTerm.NONE && occurs(claim, error) && !isHidden(claim, error)) {
                    errors.add(Arguments.of(claim, error));
                }
            }
        }
        return errors;
    }

    /** Whether the recurrence has the term; {@link #shouldHaveNoSuchTerm} checks it. */
    private static boolean occurs(final Claim claim, final PlantedTerm error) {
        final String name = claim.analysis().name();
        return switch (error) {
            case DEADLINES -> name.startsWith("edf");
            case TABLE -> name.startsWith("partition");
            case B, B_JITTER, B_GPU -> !name.equals("edf-fp-suspend");   // charged as (c) and (d)
            case C, C_JITTER -> claim.analysis().mode() == WaitMode.SUSPEND;   // threads that spin are all in (b)
            default -> true;
        };
    }

    /** Errors that the campaign does not find, each with its reason. */
    private static boolean isHidden(final Claim claim, final PlantedTerm error) {
        final String name = claim.analysis().name();
        return switch (error) {
            // one epsilon per window and one more, which no proof needs; otherwise it is the hold of lower windows
            case BLOCKING -> name.equals("gcaps-window-busy") || name.equals("edf-edf-busy")
                || name.startsWith("partition");
            // at a gate the simulator takes the switch as part of the measured device part; of a partition the slack
            // above is larger than the own updates
            case OWN_UPDATES -> name.startsWith("gate") || name.startsWith("partition");
            // with a boost only holders of another GPU stop a window; in a partition the table is charged for far more
            case E -> name.startsWith("gcaps-boost") || name.startsWith("partition");
            case A_JITTER -> name.startsWith("partition");
            // at a gate the blocker of each window is longer than what the jitter adds
            case D_JITTER -> name.startsWith("partition") || name.startsWith("gate");
            default -> false;
        };
    }

    /** A task whose release is late, on another core than the task that its windows delay. */
    private static TaskSet remote(final long k) {
        final SplittableRandom random = Seeds.random(SEED, 56, k);
        final long period = (6 + random.nextInt(10)) * MS;
        final long unit = period / 20;
        final List<Segment> often = List.of(new Segment.Cpu(unit * random.nextInt(2)),
            new Segment.Gpu(unit * random.nextInt(2), unit * (2 + random.nextInt(4))));
        final List<Segment> seldom = List.of(new Segment.Gpu(unit * random.nextInt(2), unit * (2 + random.nextInt(9))));
        final long longPeriod = period * (2 + random.nextInt(4));
        return new TaskSet("r" + k, Platform.of(2, new Gpu(0, 0, 0, MS)), WaitMode.SUSPEND, List.of(
            new Task("often", 1, 0, period, period, unit * (4 + random.nextInt(9)), 0, 9, 9, false, often),
            new Task("seldom", 2, 0, longPeriod, longPeriod, 0, 0, 8, 8, false, seldom)));
    }

    /**
     * Few tasks of short periods on one or two cores: a job of one that waits long, and the next one at once, both
     * within one job of another task.
     */
    private static TaskSet carryIn(final long k) {
        final SplittableRandom random = Seeds.random(SEED, 55, k);
        final long[] periods = {6, 8, 10, 12, 16, 20, 30, 60};
        final int cpus = 1 + random.nextInt(2);
        final int gpus = 1 + random.nextInt(2);
        final int count = 3 + random.nextInt(2);
        final Integer[] drawn = new Integer[count];
        Arrays.setAll(drawn, i -> random.nextInt(periods.length));
        Arrays.sort(drawn);
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final long period = periods[drawn[i]] * MS;
            final long unit = period / 20;
            final List<Segment> segments = new ArrayList<>();
            segments.add(new Segment.Cpu(unit * random.nextInt(4)));
            if (random.nextInt(4) != 0) {
                segments.add(new Segment.Gpu(unit * random.nextInt(3), unit * (1 + random.nextInt(6))));
                segments.add(new Segment.Cpu(unit * random.nextInt(3)));
            }
            tasks.add(new Task("t" + i, 1 + random.nextInt(cpus), random.nextInt(gpus), period, period,
                random.nextBoolean() ? 0 : unit * random.nextInt(12), 0, 50 - i, 50 - i, false, segments));
        }
        final Gpu gpu = new Gpu(0, 0, 0, MS);
        return new TaskSet("k" + k, gpus == 1 ? Platform.of(cpus, gpu) : new Platform(cpus, List.of(gpu, gpu), false,
            null), WaitMode.SUSPEND, tasks);
    }

    @ParameterizedTest
    @MethodSource("errors")
    void shouldFindABoundWithAWrongTerm(final Claim claim, final PlantedTerm error) {
        final Claim wrong = new Claim(new Wrong(claim, error), claim.mechanism(), false);
        final boolean carryIn = CARRY_IN.contains(error);
        final LongFunction<TaskSet> drawn = error == PlantedTerm.D_JITTER ? PlantedTermsTest::remote
            : carryIn ? PlantedTermsTest::carryIn : k -> CampaignSets.generate(SEED, k);
        final Campaign campaign = new Campaign(List.of(wrong), drawn, SEED, RUNS, CLIMBS);
        long exceeded = 0;
        int sets = 0;
        for (; sets < (carryIn ? CARRY_IN_SETS : SETS) && exceeded == 0; sets += STEP) {
            exceeded = campaign.run(sets, sets + STEP).get("exceeded sets of " + wrong.title());
        }
        assertTrue(exceeded > 0, claim.title() + " without " + error + " is not exceeded in " + sets + " sets");
    }

    /** The solver of the wrong bounds gives bounds that hold where nothing is wrong. */
    @Test
    void shouldNotExceedABoundWithoutAnError() {
        for (final Claim claim : claims()) {
            final Claim same = new Claim(new Wrong(claim, PlantedTerm.NONE), claim.mechanism(), false);
            final Campaign campaign = new Campaign(List.of(same), k -> CampaignSets.generate(SEED, k), SEED, RUNS);
            assertEquals(0L, campaign.run(0, 150).get("exceeded sets of " + same.title()), same.title());
        }
    }

    /** What is said not to occur changes no bound. */
    @Test
    void shouldHaveNoSuchTerm() {
        for (final Claim claim : claims()) {
            for (final PlantedTerm error : PlantedTerm.values()) {
                for (long k = 0; k < 60 && !occurs(claim, error); k++) {
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
