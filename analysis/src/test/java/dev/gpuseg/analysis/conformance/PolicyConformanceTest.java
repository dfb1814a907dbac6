/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.SegmentView;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Every built-in policy passes; every broken one is caught, by the property that it breaks. */
class PolicyConformanceTest {
    private static final Effort EFFORT = new Effort(7, 40, 100, 60, 60_000_000_000L);

    private static ConformanceReport verify(final Policy policy) throws InterruptedException {
        return PolicyConformance.verify(policy, EFFORT);
    }

    private static void passes(final Policy policy) throws InterruptedException {
        for (final Effort effort : List.of(EFFORT, Effort.FAST)) {
            final ConformanceReport report = PolicyConformance.verify(policy, effort);
            assertTrue(report.passed(), () -> policy.describe() + System.lineSeparator() + report.failures());
            assertEquals("policy " + policy.name() + ": all " + report.properties().size() + " properties hold",
                report.summary());
        }
    }

    /** Also by the fast form, which guards a daemon. */
    private static String caught(final String property, final Policy policy) throws InterruptedException {
        for (final Effort effort : List.of(Effort.FAST, EFFORT)) {
            final ConformanceReport report = PolicyConformance.verify(policy, effort);
            final List<String> failed = report.failures().stream().map(PropertyResult::name).toList();
            assertTrue(failed.contains(property), () -> property + " is not among " + failed);
            assertTrue(report.summary().contains(property), report.summary());
        }
        return of(property, verify(policy));
    }

    private static String of(final String property, final ConformanceReport report) {
        return report.failures().stream().filter(p -> p.name().equals(property)).findFirst().orElseThrow()
            .counterexample();
    }

    @Test
    void shouldPassEveryBuiltInPolicy() throws InterruptedException {
        for (final PolicyDescription row : PolicyCatalog.builtIn().all()) {
            if (row.hasDefaults()) {
                passes(PolicyCatalog.builtIn().create(row.name()));
            }
        }
        passes(new HighestClassFirst(10));
    }

    @Test
    void shouldPassTimePartitions() throws InterruptedException {
        for (final boolean lending : List.of(false, true)) {
            for (final String inside : List.of("fp", "edf", "classes")) {
                passes(new TimePartitions(PolicyCatalog.builtIn().create(inside), 100, 7, 3, lending,
                    new TimePartitions.Window(2, 30, 20), new TimePartitions.Window(1, 0, 30)));
            }
        }
    }

    /** As edf, in a form that a subclass can break. */
    private static class Base implements Policy {
        @Override
        public String name() {
            return "broken";
        }

        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return a.isRealTime() && b.isRealTime() ? Long.compare(a.deadlineNs(), b.deadlineNs())
                : a.isRealTime() ? -1 : b.isRealTime() ? 1 : 0;
        }

        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            return !leader.isRealTime() && !other.isRealTime();
        }

        @Override
        public boolean admitsBackground(final SegmentView leader) {
            return !leader.isRealTime();
        }

        @Override
        public int pregrantCeiling(final SegmentView begun) {
            return begun.isRealTime() ? Priority.MAX : Priority.BELOW_ALL;
        }
    }

    /** A rock, paper, scissors of three priorities. */
    private static final class Circular extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            if (!a.isRealTime() || !b.isRealTime()) {
                return super.compare(a, b);
            }
            final int difference = Math.floorMod(a.gpuPriority() - b.gpuPriority(), 3);
            return difference == 0 ? 0 : difference == 1 ? -1 : 1;
        }
    }

    private static final class Greedy extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return a.isRealTime() && b.isRealTime() ? -1 : super.compare(a, b);
        }
    }

    private static final class BestEffortFirst extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return -super.compare(a, b);
        }
    }

    private static final class Sociable extends Base {
        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            return true;
        }
    }

    private static final class OpenHouse extends Base {
        @Override
        public boolean admitsBackground(final SegmentView leader) {
            return true;
        }
    }

    private static final class Asymmetric extends Base {
        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            return leader.isRealTime() == other.isRealTime()
                && (!leader.isRealTime() || leader.gpuPriority() > other.gpuPriority());
        }
    }

    private static final class Generous extends Base {
        @Override
        public int pregrantCeiling(final SegmentView begun) {
            return begun.isRealTime() ? begun.gpuPriority() : Priority.BELOW_ALL;
        }
    }

    private static final class OffTheScale extends Base {
        @Override
        public int pregrantCeiling(final SegmentView begun) {
            return begun.isRealTime() ? 1000 : Priority.BELOW_ALL;
        }
    }

    private static final class Clock extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return a.isRealTime() && b.isRealTime() && System.nanoTime() % 3 == 0 ? 0 : super.compare(a, b);
        }
    }

    private static final class Moody extends Base {
        private int asked;

        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            asked++;
            return super.mayRunBeside(leader, other) && asked % 40 != 0;
        }
    }

    /** Remembers objects, so that equal segments are not treated alike. */
    private static final class ByIdentity extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return a.isRealTime() && b.isRealTime() && a.deadlineNs() == b.deadlineNs()
                ? Integer.compare(a.hashCode(), b.hashCode()) : super.compare(a, b);
        }
    }

    private static final class Allocating extends Base {
        private final List<Object> garbage = new ArrayList<>();

        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            garbage.clear();
            garbage.add(new long[8]);
            return super.compare(a, b);
        }
    }

    private static final class Slow extends Base {
        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            final long before = System.nanoTime();
            long now = before;
            while (now - before < 200_000) {   // by the clock: a compiler cannot leave it out
                now = System.nanoTime();
            }
            return super.mayRunBeside(leader, other);
        }
    }

    private static final class Endless extends Base {
        @Override
        public int pregrantCeiling(final SegmentView begun) {
            long x = begun.beginNs();
            while (x != 0) {
                x |= 1;
            }
            return Priority.MAX;
        }
    }

    private static final class Throwing extends Base {
        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            if (a.gpuPriority() == 50) {
                throw new IllegalStateException("fifty");
            }
            return super.compare(a, b);
        }
    }

    /** Closes its window earlier than it says. */
    private static final class WrongWindow extends Base {
        @Override
        public boolean isTimed() {
            return true;
        }

        @Override
        public boolean isOpen(final int partition, final long nowNs) {
            return nowNs % 100 < 50;
        }

        @Override
        public long nextChangeNs(final long nowNs) {
            return nowNs - nowNs % 100 + 100;
        }
    }

    @Test
    void shouldCatchAnOrderThatIsNone() throws InterruptedException {
        assertTrue(caught("transitive", new Circular()).contains("compare(a, c) is"));
        assertTrue(caught("antisymmetric", new Greedy()).contains("compare(a, b) is -1 and compare(b, a) is -1"));
    }

    @Test
    void shouldCatchBestEffortBeforeOrBesideRealTime() throws InterruptedException {
        caught("real-time-first", new BestEffortFirst());
        caught("real-time-apart", new Sociable());
        final String beside = caught("exclusive", new Sociable());
        assertTrue(beside.contains("beside real-time task"), beside);
        caught("real-time-apart", new OpenHouse());
        caught("exclusive", new OpenHouse());
    }

    @Test
    void shouldCatchAsymmetry() throws InterruptedException {
        caught("symmetric", new Asymmetric());
    }

    @Test
    void shouldCatchPregrantsThatAreNotSoundWithFewEvents() throws InterruptedException {
        final String counterexample = caught("pregrant-sound", new Generous());
        assertTrue(counterexample.contains("pregrantCeiling(b) is"), counterexample);
        caught("pregrant-sound", new OffTheScale());
    }

    @Test
    void shouldCatchAnswersThatDependOnMoreThanTheQuestion() throws InterruptedException {
        caught("pure", new Clock());
        assertTrue(caught("effects", new Clock()).contains("uses java.lang.System"));
        caught("pure", new Moody());
        assertTrue(caught("stateless", new Moody()).contains("field asked of"));
        caught("pure", new ByIdentity());
    }

    @Test
    void shouldCatchAllocation() throws InterruptedException {
        assertTrue(caught("no-allocation", new Allocating()).contains("bytes in"));
    }

    @Test
    void shouldCatchWhatTakesLongOrForEver() throws InterruptedException {
        final Effort small = new Effort(1, 5, 2, 5, 60_000_000_000L);
        final ConformanceReport slow = PolicyConformance.verify(new Slow(), small);
        assertTrue(slow.summary().contains("time"), slow.summary());
        final ConformanceReport endless = PolicyConformance.verify(new Endless(), small.withLimit(300_000_000));
        final String hang = of("time", endless);
        assertTrue(hang.contains("did not end within 300 ms") && hang.contains("pregrantCeiling"), hang);
    }

    @Test
    void shouldCatchWhatThrows() throws InterruptedException {
        final ConformanceReport report = verify(new Throwing());
        assertFalse(report.passed());
        assertTrue(of("pure", report).contains("fifty"), report.summary());
    }

    @Test
    void shouldCatchWindowsThatChangeUnannounced() throws InterruptedException {
        caught("windows", new WrongWindow());
    }

    @Test
    void shouldTellFewEventsAndHowToSeeThemAgain() throws InterruptedException {
        final String counterexample = caught("exclusive", new OpenHouse());
        assertTrue(counterexample.matches(".*after seed \\d+.*"), counterexample);
        assertTrue(counterexample.split("; \\+|: \\+", -1).length <= 3 || counterexample.split(" ns: ", -1).length <= 3,
            counterexample);
    }

    @Test
    void shouldFindTheSameAgainWithTheSameSeed() throws InterruptedException {
        assertEquals(caught("exclusive", new Sociable()), caught("exclusive", new Sociable()));
    }
}
