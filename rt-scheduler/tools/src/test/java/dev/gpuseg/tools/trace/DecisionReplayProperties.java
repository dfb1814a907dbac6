/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.constraints.IntRange;

/**
 * A journal of any run, written in the daemon's order (an input, then what was decided of it; some grants later), gives
 * the same decisions again: under every policy, with weights, caps, groups, overrun actions and all of them changing.
 */
class DecisionReplayProperties {
    private static final int STEPS = 500;

    /** What a test does with a run's journal. */
    private interface Use {
        void of(Path directory, Path journal) throws IOException;
    }

    private static void run(final String policy, final boolean preemptive, final boolean shares, final long seed,
        final Use use) throws IOException {
        final Path directory = Files.createTempDirectory("gpuseg-replay-test-");
        try {
            try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
                JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 22)) {
                final JournaledRun run = new JournaledRun(ring, policy, preemptive, shares, seed);
                for (int i = 0; i < STEPS; i++) {
                    run.step();
                }
                agent.drain();
            }
            use.of(directory, directory.resolve("journal"));
        } finally {
            RuntimeDirectory.deleteTree(directory);
        }
    }

    @Property(tries = 80, shrinking = ShrinkingMode.OFF, edgeCases = EdgeCasesMode.NONE)
    void shouldDecideTheSameAgain(@ForAll final long seed, @ForAll final boolean preemptive,
        @ForAll final boolean shares, @ForAll @IntRange(max = 6) final int policy) throws IOException {
        run(JournaledRun.POLICIES.get(policy), preemptive, shares, seed, (directory, journal) -> {
            final DecisionReplay.Result result = DecisionReplay.of(Source.open(journal));
            assertTrue(result.agrees(), result::toString);
            assertTrue(result.decisions() > 20 && result.inputs() > 100, result::toString);
        });
    }

    /** Without what the journal was given for it the replay would go another way: the events are needed. */
    @Example
    void shouldNeedTheLooksAtTheClockAndWhatWasApplied() throws IOException {
        int differ = 0;
        for (long seed = 0; seed < 10; seed++) {
            final int[] differs = new int[1];
            run("fp", true, true, seed, (directory, journal) -> {
                final List<JournalEvent> kept = new ArrayList<>();
                Source.open(journal).forEach(event -> {
                    if (event.kind() != EventKind.TIMER && event.kind() != EventKind.DISABLE
                        && event.kind() != EventKind.ENABLE) {
                        kept.add(event.copy());
                    }
                });
                final Path without = Recordings.writeNumbered(kept, directory.resolve("without"));
                differs[0] = DecisionReplay.of(Source.open(without)).differences().size();
            });
            differ += differs[0];
        }
        assertTrue(differ > 0, "they change nothing");
    }

    @Example
    void shouldRefuseWhatAnOlderJournalDoesNotHold() throws IOException {
        run("fp", true, true, 1, (directory, journal) -> {
            final List<JournalEvent> events = new ArrayList<>();
            Source.open(journal).forEach(event -> events.add(event.copy()));
            events.set(0, Recordings.withText(events.get(0), events.get(0).text().replace("\"inputs\":\"all\",", "")));
            final DecisionReplay.Result result =
                DecisionReplay.of(Source.open(Recordings.write(events, directory.resolve("old"))));
            assertTrue(result.incomplete().contains("older daemon"), result::toString);
            assertFalse(result.incomplete().contains("\n"), "one line");
        });
    }

    @Example
    void shouldRefuseParametersThatWereCutOff() throws IOException {
        final String partitions = JournaledRun.POLICIES.get(5);
        run(partitions, true, false, 1, (directory, journal) -> {
            final List<JournalEvent> events = new ArrayList<>();
            Source.open(journal).forEach(event -> {
                if (events.size() == 1) {
                    events.add(Recordings.with(Recordings.withText(event, "policy " + partitions.substring(0, 60)),
                        Abi.Event.SEQ_OFFSET, 2));
                    events.set(1, Recordings.withKind(events.get(1), EventKind.POLICY));
                } else {
                    events.add(event.copy());
                }
            });
            final DecisionReplay.Result result =
                DecisionReplay.of(Source.open(Recordings.write(events, directory.resolve("cut"))));
            assertTrue(result.incomplete().startsWith("event 2 cannot be replayed: policy partitions"),
                result::toString);
            assertEquals(0, result.differences().size(), result::toString);
        });
    }
}
