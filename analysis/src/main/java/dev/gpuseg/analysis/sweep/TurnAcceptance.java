/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * How many sets of {@link TurnSets#robot} the bounds by calls and the bounds by turns accept, by epsilon. Those by
 * turns do not depend on it.
 */
public final class TurnAcceptance {
    private static final long US = 1_000;
    private static final long[] EPSILON_NS = {200 * US, 800 * US, 3_400 * US, 55_000 * US};
    private static final List<TurnLimits> TURNS = List.of(new TurnLimits(100 * US, 1), new TurnLimits(100 * US, 2),
        new TurnLimits(500 * US, 1), new TurnLimits(500 * US, 2));
    private static final List<String> CALLS = List.of("gcaps-window-suspend", "gcaps-boost-tight-suspend");
    private static final String BETTER = "boost-tight or first turns";

    private final long seed;
    private final int sets;
    private final Path directory;
    private final SetCounter counter;

    /**
     * A sweep.
     *
     * @param seed      of the sets
     * @param sets      at each epsilon, at least 1
     * @param directory receives {@code turns.csv} and {@code turns.md}
     * @param counter   counts the sets; stays open
     */
    public TurnAcceptance(final long seed, final int sets, final Path directory, final SetCounter counter) {
        this.seed = seed;
        this.sets = sets;
        this.directory = directory;
        this.counter = counter;
    }

    /** Number of sets at all epsilons. */
    public long totalSets() {
        return (long) sets * EPSILON_NS.length;
    }

    private static List<String> names() {
        final List<String> names = new ArrayList<>(CALLS);
        for (final TurnLimits turns : TURNS) {
            names.add("turns of " + Durations.format(turns.sliceNs()) + " with " + turns.contexts() + " met");
        }
        names.add(BETTER);
        return names;
    }

    /**
     * Counts and writes the tables.
     *
     * @param progress receives the number of sets done
     * @throws IOException          if a file cannot be written
     * @throws InterruptedException if the thread is interrupted
     */
    public void run(final Progress progress) throws IOException, InterruptedException {
        final List<String> names = names();
        final StringBuilder csv = new StringBuilder("epsilon,sets," + String.join(",", names) + "\n");
        final StringBuilder table = new StringBuilder("| epsilon | " + String.join(" | ", names) + " |\n|---"
            + "|---".repeat(names.size()) + "|\n");
        for (final long epsilonNs : EPSILON_NS) {
            final List<Long> counts = new ArrayList<>(counter.count(new Accepted(seed, epsilonNs), 0, sets, progress)
                .byName(names).values());
            csv.append(Durations.format(epsilonNs)).append(',').append(sets);
            table.append("| ").append(Durations.format(epsilonNs)).append(' ');
            for (final long count : counts) {
                csv.append(',').append(count);
                table.append("| ").append(count).append(' ');
            }
            csv.append('\n');
            table.append("|\n");
        }
        ResultFile.write(directory.resolve("turns.csv"), csv);
        ResultFile.write(directory.resolve("turns.md"), table);
    }

    /** The sets at one epsilon. */
    private record Accepted(long seed, long epsilonNs) implements SetWork {
        @Override
        public List<String> columns() {
            return names();
        }

        @Override
        public SetJudge open() {
            return (k, counts) -> {
                int at = 0;
                boolean tight = false;
                for (final String name : CALLS) {
                    tight = accepts(name, TurnSets.robot(seed, k, epsilonNs, TURNS.get(0)));
                    counts[at++] += tight ? 1 : 0;
                }
                final int first = at;
                boolean better = tight;
                for (final TurnLimits turns : TURNS) {
                    final boolean accepted = accepts("turns-suspend", TurnSets.robot(seed, k, epsilonNs, turns));
                    better |= accepted && at == first;
                    counts[at++] += accepted ? 1 : 0;
                }
                counts[at] += better ? 1 : 0;
            };
        }

        private static boolean accepts(final String name, final TaskSet set) {
            return Analyses.get(name).isSchedulable(PreparedSet.of(set));
        }
    }
}
