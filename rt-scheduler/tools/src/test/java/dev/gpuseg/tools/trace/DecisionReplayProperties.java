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
import java.util.function.Function;
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
    private static final int ANTICIPATED_STEPS = 3000;

    /** What a test does with a run's journal. */
    private interface Use {
        void of(Path directory, Path journal) throws IOException;
    }

    private static void run(final String policy, final boolean preemptive, final boolean shares, final long seed,
        final Use use) throws IOException {
        run(ring -> new JournaledRun(ring, policy, preemptive, shares, seed), STEPS, use);
    }

    /** Chains, cycles and periods that are learned, hints, budgets and modes that change. */
    private static void anticipated(final String policy, final boolean shares, final long seed, final Use use)
        throws IOException {
        run(ring -> new JournaledRun(ring, policy, true, shares, true, seed), ANTICIPATED_STEPS, use);
    }

    private static void run(final Function<JournalRing, JournaledRun> made, final int steps, final Use use)
        throws IOException {
        final Path directory = Files.createTempDirectory("gpuseg-replay-test-");
        try {
            try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
                JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 22)) {
                final JournaledRun run = made.apply(ring);
                for (int i = 0; i < steps; i++) {
                    run.step();
                    if (i % STEPS == 0) {
                        agent.drain();
                    }
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

    @Property(tries = 40, shrinking = ShrinkingMode.OFF, edgeCases = EdgeCasesMode.NONE)
    void shouldExpectTheSameAgain(@ForAll final long seed, @ForAll final boolean shares,
        @ForAll @IntRange(max = 6) final int policy) throws IOException {
        anticipated(JournaledRun.POLICIES.get(policy), shares, seed, (directory, journal) -> {
            final DecisionReplay.Result result = DecisionReplay.of(Source.open(journal));
            assertTrue(result.agrees(), result::toString);
        });
    }

    /** The property is about something: chains and cycles are anticipated in its journals. */
    @Example
    void shouldHaveChainsAndCyclesToExpect() throws IOException {
        final int[] acted = new int[JournaledAnticipation.CHAINED + 1];
        for (long seed = 0; seed < 10; seed++) {
            anticipated("fp", false, seed, (directory, journal) -> Source.open(journal).forEach(event -> {
                if (isActed(event) && event.arg2() == 0 && event.taskId() < acted.length) {
                    acted[event.taskId()]++;
                }
            }));
        }
        assertTrue(acted[JournaledAnticipation.CHAINED] > 50, acted[JournaledAnticipation.CHAINED] + " by a chain");
        assertTrue(acted[JournaledAnticipation.CYCLIC] > 50, acted[JournaledAnticipation.CYCLIC] + " by a cycle");
    }

    private static boolean isActed(final JournalEvent event) {
        return event.kind() == EventKind.ANTICIPATE && event.flags() == Abi.ANTICIPATION_ACTED;
    }

    /** One that is changed, one that is missing, one too many: of the begins that follow from a chain. */
    @Example
    void shouldFindAChangedExpectation() throws IOException {
        anticipated("fp", false, 1, (directory, journal) -> {
            final List<JournalEvent> events = new ArrayList<>();
            Source.open(journal).forEach(event -> events.add(event.copy()));
            int at = events.size() - 1;
            while (!isActed(events.get(at)) || events.get(at).taskId() != JournaledAnticipation.CHAINED
                || events.get(at - 1).kind() != EventKind.END) {
                at--;
            }
            final JournalEvent acted = events.get(at);
            for (final int offset : new int[] {Abi.Event.ARG0_OFFSET, Abi.Event.ARG1_OFFSET}) {
                events.set(at, Recordings.with(acted, offset, acted.arg0() + 1));
                assertDiffers(Recordings.write(events, directory.resolve("changed" + offset)), acted.seq());
            }
            events.remove(at);
            assertEquals(1, DecisionReplay.of(Source.open(Recordings.writeNumbered(events,
                directory.resolve("missing")))).differences().size());
            events.add(at, acted);
            events.add(at, acted);
            assertDiffers(Recordings.writeNumbered(events, directory.resolve("twice")), acted.seq() + 1);
        });
    }

    private static void assertDiffers(final Path recording, final long seq) throws IOException {
        final DecisionReplay.Result result = DecisionReplay.of(Source.open(recording));
        assertEquals(1, result.differences().size(), result::toString);
        assertTrue(result.differences().get(0).startsWith("event " + seq + ": the daemon decided"), result::toString);
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
