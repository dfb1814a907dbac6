/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.StringWriter;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TaskSetGeneratorTest {
    private static final long MS = 1_000_000L;

    @ParameterizedTest
    @EnumSource(Variant.class)
    void shouldKeepEveryRangeOfThePublishedTable(final Variant variant) {
        final TaskSetGenerator generator = new TaskSetGenerator(Experiment.published(variant));
        for (int k = 0; k < 300; k++) {
            final TaskSet set = generator.generate(5, 0, k);
            assertEquals(4, set.platform().cpus());
            assertTrue(set.tasks().size() >= 12 && set.tasks().size() <= 24, "tasks: " + set.tasks().size());
            for (final Task task : set.tasks()) {
                assertEquals(0, task.periodNs() % MS);
                assertTrue(task.periodNs() >= 30 * MS && task.periodNs() <= 500 * MS, "period: " + task.periodNs());
                assertEquals(task.periodNs(), task.deadlineNs());
                if (task.gpuSegmentCount() > 0) {
                    assertTrue(task.gpuSegmentCount() <= 3);
                    for (final Segment segment : task.segments()) {
                        if (segment instanceof Segment.Gpu gpu && gpu.totalNs() > 1_000) {
                            final double share = (double) gpu.hostNs() / gpu.totalNs();
                            assertTrue(share > 0.099 && share < 0.301, "G^m / G: " + share);
                        }
                    }
                }
            }
        }
    }

    @Test
    void shouldKeepTheUtilisationOfEachCoreWhereTasksStayOnTheirCore() {
        final TaskSetGenerator generator = new TaskSetGenerator(Experiment.published(Variant.AS_CODED)
            .withCpuUtilisation(Range.of(0.5)));
        for (int k = 0; k < 200; k++) {
            final double[] load = new double[5];
            for (final Task task : generator.generate(1, 0, k).tasks()) {
                load[task.cpu()] += (double) (task.cpuNs() + task.gpuNs()) / task.periodNs();
            }
            for (int cpu = 1; cpu <= 4; cpu++) {
                // rounding each of at most six shares to 0.01, none below 0.01
                assertEquals(0.53, load[cpu], 0.0601);
            }
        }
    }

    @Test
    void shouldGiveShorterPeriodsHigherPriorities() {
        for (final Task[] pair : neighbours(new TaskSetGenerator(Experiment.published(Variant.AS_CODED)))) {
            assertTrue(pair[0].periodNs() <= pair[1].periodNs());
            assertTrue(pair[0].priority() > pair[1].priority());
        }
    }

    private static Task[][] neighbours(final TaskSetGenerator generator) {
        final TaskSet set = generator.generate(2, 0, 0);
        final Task[][] pairs = new Task[set.tasks().size() - 1][];
        for (int i = 0; i < pairs.length; i++) {
            pairs[i] = new Task[] {set.tasks().get(i), set.tasks().get(i + 1)};
        }
        return pairs;
    }

    @Test
    void shouldDrawASetAloneAsInItsSequence() {
        final TaskSetGenerator generator = new TaskSetGenerator(Experiment.published(Variant.AS_CODED));
        TaskSet seventh = null;
        for (int k = 0; k <= 7; k++) {
            seventh = generator.generate(11, 3, k);
        }
        assertEquals(seventh, new TaskSetGenerator(Experiment.published(Variant.AS_CODED)).generate(11, 3, 7));
        assertNotEquals(seventh.tasks(), generator.generate(12, 3, 7).tasks());
        assertNotEquals(seventh.tasks(), generator.generate(11, 4, 7).tasks());
    }

    /** What the sets of the published program show: with six tasks the largest has most of the core. */
    @Test
    void shouldDivideAsUnevenlyAsThePublishedProgram() {
        final SplittableRandom random = new SplittableRandom(1);
        assertEquals(0.83, meanLargest(random, true), 0.01);
        assertEquals(0.408, meanLargest(random, false), 0.01);
    }

    private static double meanLargest(final SplittableRandom random, final boolean skewed) {
        double sum = 0;
        for (int k = 0; k < 20_000; k++) {
            double largest = 0;
            for (final double share : skewed ? Utilisations.skewed(random, 6, 1) : Utilisations.uunifast(random, 6,
                1)) {
                largest = Math.max(largest, share);
            }
            sum += largest;
        }
        return sum / 20_000;
    }

    @Test
    void shouldKeepSumAndBoundsWithDrs() {
        final SplittableRandom random = new SplittableRandom(3);
        for (int k = 0; k < 2_000; k++) {
            final int count = 2 + random.nextInt(8);
            final double upper = 0.2 + 0.8 * random.nextDouble();
            final double sum = count * upper * (0.05 + 0.94 * random.nextDouble());
            final double[] values = Utilisations.drs(random, sum, Utilisations.bounds(count, 0),
                Utilisations.bounds(count, upper));
            double total = 0;
            for (final double value : values) {
                assertTrue(value >= 0 && value <= upper + 1e-9, value + " of 0.." + upper);
                total += value;
            }
            assertEquals(sum, total, 1e-9);
        }
    }

    /** Two numbers of sum 1, each at most 0.7: uniform on 0.3..0.7. */
    @Test
    void shouldBeUniformWithDrs() {
        final SplittableRandom random = new SplittableRandom(4);
        int below = 0;
        for (int k = 0; k < 20_000; k++) {
            below += Utilisations.drs(random, 1, Utilisations.bounds(2, 0), Utilisations.bounds(2, 0.7))[0] < 0.4
                ? 1 : 0;
        }
        assertEquals(0.25, below / 20_000.0, 0.012);
    }

    @Test
    void shouldRefuseBoundsThatNoVectorKeeps() {
        final String message = assertThrows(IllegalArgumentException.class,
            () -> Utilisations.drs(new SplittableRandom(1), 2,
            Utilisations.bounds(3, 0), Utilisations.bounds(3, 0.5))).getMessage();
        assertTrue(message.contains("the bounds allow 0.0..1.5"), message);
    }

    @ParameterizedTest
    @EnumSource(TaskSetFiles.Format.class)
    void shouldReadBackWhatItWrites(final TaskSetFiles.Format format) throws Exception {
        final TaskSet set = new TaskSetGenerator(Experiment.published(Variant.AS_PUBLISHED).withBestEffortRatio(0.3))
            .generate(9, 0, 4);
        final StringWriter text = new StringWriter();
        TaskSetFiles.write(set, format, text);
        final TaskSet read = format == TaskSetFiles.Format.JSONL
            ? new TaskSetReader().readLine(text.toString().trim(), "test", 1)
            : new TaskSetReader().readText(text.toString(), format == TaskSetFiles.Format.YAML ? "t.yaml" : "t.json");
        assertEquals(set, read);
    }
}
