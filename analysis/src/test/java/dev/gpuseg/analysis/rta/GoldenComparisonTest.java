/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.GcapsArtifactImporter;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Compares with recorded verdicts of the published program:
 * {@code mvn -pl analysis -am test -Dtest=GoldenComparisonTest -Dsurefire.failIfNoSpecifiedTests=false
 * -Dgpuseg.golden=FILE}. Prints the tables of {@code docs/golden.md}.
 */
class GoldenComparisonTest {
    private static final double TOLERANCE_MS = 0.1;
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private static List<String> lines() throws IOException {
        final String path = System.getProperty("gpuseg.golden");
        assumeTrue(path != null, "no recorded verdicts: -Dgpuseg.golden=FILE is not given");
        return Files.readAllLines(Path.of(path));
    }

    private static JsonNode recorded(final JsonNode root, final String analysis) {
        return root.get("res").get(analysis.replace('-', '_'));
    }

    @Test
    void shouldAgreeWithTheGcapsVerdictsAndResponseTimesInEverySet() throws IOException {
        double largest = 0;
        int accepted = 0;
        int number = 0;
        for (final String line : lines()) {
            number++;
            final JsonNode root = MAPPER.readTree(line);
            final TaskSet set = new GcapsArtifactImporter().readLine(line, "golden", number);
            for (final String analysis : List.of("gcaps-suspend", "gcaps-busy")) {
                final AnalysisResult result = Analyses.get(analysis).analyse(set);
                final JsonNode expected = recorded(root, analysis);
                assertEquals(expected.get("ok").asBoolean(), result.schedulable(), analysis + " line " + number);
                accepted += result.schedulable() ? 1 : 0;
                for (int i = 0; i < set.tasks().size() && expected.get("R").get(i).asDouble() >= 0; i++) {
                    final Long bound = result.tasks().get(i).wcrtNs();
                    final double ms = expected.get("R").get(i).asDouble();
                    if (bound != null && ms > 0) {
                        largest = Math.max(largest, Math.abs(bound / 1e6 - ms));
                    }
                }
            }
        }
        System.out.printf("gcaps: %d sets, %d of %d verdicts positive, all equal; largest difference %.6f ms%n",
            number,
            accepted, 2 * number, largest);
        assertTrue(largest <= TOLERANCE_MS, "difference " + largest + " ms");
    }

    @Test
    void shouldExplainEveryOtherDisagreementByAnErrorOfThatProgram() throws IOException {
        final Map<String, List<ArtifactForms.Fix>> fixes = new TreeMap<>();
        final ArtifactForms.Fix[] all = ArtifactForms.Fix.values();
        fixes.put("tsg-rr-suspend", List.of(all[0]));
        fixes.put("tsg-rr-busy", List.of(all[1], all[2], all[3]));
        fixes.put("fmlp-suspend", List.of(all[4], all[5]));
        fixes.put("fmlp-busy", List.of());
        fixes.put("mpcp-suspend", List.of(all[6], all[7], all[8], all[9], all[11]));
        fixes.put("mpcp-busy", List.of(all[6], all[7], all[8], all[9], all[10], all[11]));
        final List<String> lines = lines();
        final List<String> unexplained = new ArrayList<>();
        for (final Map.Entry<String, List<ArtifactForms.Fix>> entry : fixes.entrySet()) {
            final String analysis = entry.getKey();
            final Map<String, Integer> classes = new TreeMap<>();
            int theirs = 0;
            int ours = 0;
            for (int k = 0; k < lines.size(); k++) {
                final JsonNode root = MAPPER.readTree(lines.get(k));
                final JsonNode tasks = root.get("tasks");
                final boolean published = recorded(root, analysis).get("ok").asBoolean();
                final boolean mine = Analyses.get(analysis).analyse(new GcapsArtifactImporter().readLine(lines.get(k),
                    "golden", k + 1)).schedulable();
                if (new ArtifactForms(tasks, Set.of()).accepts(analysis) != published) {
                    unexplained.add(analysis + " line " + (k + 1) + ": the replica with all errors disagrees");
                }
                final Set<ArtifactForms.Fix> applied = EnumSet.noneOf(ArtifactForms.Fix.class);
                applied.addAll(entry.getValue());
                if (new ArtifactForms(tasks, applied).accepts(analysis) != mine) {
                    unexplained.add(analysis + " line " + (k + 1) + ": the replica without errors disagrees");
                }
                if (published != mine) {
                    theirs += published ? 1 : 0;
                    ours += mine ? 1 : 0;
                    classes.merge((mine ? "ours only: " : "theirs only: ") + decisive(tasks, analysis,
                        entry.getValue(), mine),
                        1, Integer::sum);
                }
            }
            System.out.printf("%s: %d accepted by the program alone, %d by ours alone%n", analysis, theirs, ours);
            classes.forEach((name, count) -> System.out.printf("    %4d  %s%n", count, name));
        }
        assertTrue(unexplained.isEmpty(), unexplained.toString());
    }

    /** The single corrections that turn their verdict into ours, or how many are needed together. */
    private static String decisive(final JsonNode tasks, final String analysis, final List<ArtifactForms.Fix> fixes,
        final boolean wanted) {
        for (int size = 1; size <= fixes.size(); size++) {
            final List<String> found = new ArrayList<>();
            for (int mask = 1; mask < 1 << fixes.size(); mask++) {
                if (Integer.bitCount(mask) != size) {
                    continue;
                }
                final Set<ArtifactForms.Fix> chosen = EnumSet.noneOf(ArtifactForms.Fix.class);
                for (int k = 0; k < fixes.size(); k++) {
                    if ((mask & 1 << k) != 0) {
                        chosen.add(fixes.get(k));
                    }
                }
                if (new ArtifactForms(tasks, chosen).accepts(analysis) == wanted) {
                    found.add(chosen.toString());
                }
            }
            if (!found.isEmpty()) {
                return String.join(" or ", found);
            }
        }
        return "none";
    }

    @Test
    void shouldAcceptWithTheFrontierWhatThePublishedAssignmentAccepts() throws IOException {
        for (final String name : List.of("gcaps-suspend", "gcaps-busy")) {
            final Analysis analysis = Analyses.get(name);
            int monotonic = 0;
            int published = 0;
            int frontier = 0;
            int program = 0;
            int programAlone = 0;
            int stale = 0;
            int number = 0;
            for (final String line : lines()) {
                number++;
                final JsonNode root = MAPPER.readTree(line);
                final TaskSet set = new GcapsArtifactImporter().readLine(line, "golden", number);
                final PreparedSet prepared = PreparedSet.of(set);
                final boolean p = GpuPrioritySearch.isSchedulable(prepared, analysis,
                    GpuPrioritySearch.Strategy.PUBLISHED);
                final boolean f = GpuPrioritySearch.isSchedulable(prepared, analysis,
                    GpuPrioritySearch.Strategy.FRONTIER);
                monotonic += analysis.isSchedulable(prepared) ? 1 : 0;
                published += p ? 1 : 0;
                frontier += f ? 1 : 0;
                assertTrue(f || !p, name + " line " + number
                    + ": the published search accepts, the frontier does not");
                final JsonNode recorded = recorded(root, name + "-gprio");
                if (recorded.get("ok").asBoolean()) {
                    program++;
                    if (!p) {
                        programAlone++;
                        // either the recorded order stands on stale response times, or the published search of this
                        // project ends, unlike that run, with an inverted local pair; the frontier finds an order then
                        final boolean valid = acceptsWithDeadlineJitter(set, recorded.get("gprio"), analysis);
                        stale += valid ? 0 : 1;
                        assertTrue(!valid || f, name + " line " + number
                            + ": a valid order, but the frontier has none");
                    }
                }
            }
            System.out.printf(
                "%s: monotonic %d, program %d, published search %d, frontier %d; by the program alone %d,"
                + " of which %d on stale response times%n",
                name, monotonic, program, published, frontier, programAlone, stale);
        }
    }

    /** Tests a recorded GPU order (rank by task, larger is higher) with deadlines in every jitter, as printed. */
    private static boolean acceptsWithDeadlineJitter(final TaskSet set, final JsonNode order,
        final Analysis analysis) {
        if (order == null || !order.isArray()) {
            return false;
        }
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            tasks.add(task.bestEffort() ? task : task.withPriorities(task.priority(), Math.max(1,
                order.get(i).asInt() + 40)));
        }
        final Analysis printed = ((FixedPointAnalysis<?>) analysis).forPublishedSearch();
        return printed.analyse(set.withTasks(tasks)).schedulable();
    }
}
