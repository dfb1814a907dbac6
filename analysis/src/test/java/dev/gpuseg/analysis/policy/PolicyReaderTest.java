/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.PolicyParameter;
import dev.gpuseg.core.Sharing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PolicyReaderTest {
    private static final PolicyReader READER = new PolicyReader(PolicyCatalog.builtIn());
    private static final String FRAME =
        "policy: partitions\nframe: 100ms\nguard: 2ms\nwindows: [{partition: 1, offset: 0ms, length: 40ms}]\n";

    @TempDir
    private Path directory;

    private Path file(final String text) throws IOException {
        return Files.writeString(directory.resolve("p.yaml"), text);
    }

    private static String refusal(final PolicyReader reader, final Path file) {
        final String text = assertThrows(IllegalArgumentException.class, () -> reader.read(file)).getMessage();
        assertEquals(1, text.lines().count(), text);
        return text;
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "version: 2                       | p.yaml:1:10: version is '2'; this program reads version: 1",
        "polcy: fp                        | p.yaml:1:1: the policy file: unknown key 'polcy'; did you mean 'policy'?",
        "policy: best                     | p.yaml:1:9: policy \"best\" is unknown; use fp, edf",
        "sharing: often                   | p.yaml:1:10: sharing is 'often'; write turns or timeslices",
        "quantum: 10                      | p.yaml:1:10: quantum is the bare number 10; a duration needs a unit",
        "quantum: 20s                     | p.yaml:1:10: quantum is '20s'; it must be 100us..10s",
        "keep_ready: true                 | p.yaml:1:1: the policy file: unknown key 'keep_ready'",
        "frame: 10ms                      | frame is given without policy; add policy: partitions",
        "class_width: 3                   | class_width is given without policy; add policy: classes",
        "policy: fp\\nclass_width: 3      | p.yaml:2:14: class_width is no parameter of policy fp; remove it",
        "policy: classes\\nclass_width: 0 | p.yaml:2:14: class_width is '0'; it must be a whole number 1..99",
        "policy: partitions               | p.yaml:1:9: policy partitions: frame is missing (length",
        "'tasks: [{task: a123456789b123456789c123456789d123456789e123456789f123456789g123, weight: 5}]' | has 64 bytes",
        "tasks: {task: a}                 | tasks is a mapping; write a list like [{task: logger, weight: 400}]",
        "tasks: [{weight: 3}]             | rule for task 1: task is missing; add it",
        "tasks: [{task: a, weight: 0}]    | rule for task 1: weight is '0'; it must be a whole number 1..10000",
        "tasks: [{task: a, cap: 3ms}]     | rule for task 1: cap is \"3ms\"; write GPU time and period",
        "tasks: [{task: a, cap: 9/10ms}]  | rule for task 1: cap is the bare number 9; a duration needs a unit",
        "tasks: [{task: a, overrun: die}] | overrun is 'die'; write notify, demote, suspend or skip-next",
        "groups: [{group: 2000}]          | rule for group 1: group is '2000'; it must be a whole number 0..1024",
    })
    void shouldRefuseWithPlaceThingValueAndRemedy(final String text, final String message) throws IOException {
        final String refused = refusal(READER, file(text.replace("\\n", "\n")));
        assertTrue(refused.startsWith(directory.resolve("p.yaml") + ":") && refused.contains(message), refused);
    }

    @Test
    void shouldTakeAnyWordOfYamlForOff() throws IOException {
        for (final String off : new String[] {"off", "no", "false"}) {
            final PolicySettings read = READER.read(file("anticipate: " + off + "\ntasks: [{task: a, anticipate: " + off
                + "}]\n"));
            assertEquals(Anticipate.OFF, read.ahead().mode(), off);
            assertEquals(Anticipate.OFF, read.taskRules().get(0).anticipate(), off);
        }
    }

    @Test
    void shouldNameAWindowByItsNumber() throws IOException {
        assertTrue(refusal(READER, file(FRAME.replace("partition: 1", "partition: 0")))
            .contains("windows: item 1: partition is '0'; it must be a whole number 1..255"));
        assertTrue(refusal(READER, file(FRAME.replace(", length: 40ms", "")))
            .contains("windows: item 1: length is missing; add it"));
        assertTrue(refusal(READER, file(FRAME + "inside: best\n")).contains("inside is 'best'; use fp, edf"));
        assertTrue(refusal(READER, file(FRAME + "inside: rr\n")).contains("policy rr cannot decide inside a window"));
    }

    @Test
    void shouldReadAPolicyWithItsParametersAndThatOfThePolicyInside() throws IOException {
        final PolicySettings read = READER.read(file(FRAME + "inside: classes\nclass_width: 10\nsharing: timeslices\n"
            + "tasks: [{task: a, weight: 300, cap: 25ms/100ms, overrun: suspend, partition: 3, budget: 2ms}]\n"
            + "groups: [{group: 7, cap: none}]\n"));
        assertEquals("partitions (frame 100ms, inside classes)", read.policy().describe());
        assertEquals(Sharing.TIMESLICES, read.sharing());
        final PolicySettings.TaskRule task = read.taskRules().get(0);
        assertEquals(new PolicySettings.TaskRule("a", new PolicySettings.Share(300, 25_000_000, 100_000_000),
            OverrunAction.SUSPEND, 3, 2_000_000), task);
        assertTrue(read.groupRules().get(0).share().hasCap());
        assertEquals(0, read.groupRules().get(0).share().quotaNs());
    }

    @Test
    void shouldReadBackWhatTheJournalSays() throws IOException {
        final PolicySettings read = READER.read(file(FRAME + "quantum: 5ms\n"));
        final String text = read.policyText();
        assertTrue(text.startsWith("partitions {") && !text.contains("quantum"), text);
        final Policy again = READER.policyOf(text);
        for (long ns = 0; ns < 100_000_000; ns += 500_000) {
            assertEquals(read.policy().isOpen(1, ns), again.isOpen(1, ns), Long.toString(ns));
        }
        assertEquals(EarliestDeadlineFirst.INSTANCE, READER.policyOf("edf"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> READER.policyOf("partitions {\"frame\":"))
            .getMessage().contains("are they cut off?"));
    }

    /** A policy that nobody has thought of needs nothing but its row. */
    @Test
    void shouldReadThePolicyOfARowThatIsAdded() throws IOException {
        final PolicyReader reader = new PolicyReader(PolicyCatalog.builtIn().with(new PolicyDescription("wide",
            "Classes of a width.", List.of(PolicyParameter.integer("width", 2, 9, null, "of a class")), Set.of(), true,
            List.of(), a -> new RenamedPolicy("wide", new HighestClassFirst((int) a.number("width"))))));
        assertEquals("wide", reader.read(file("policy: wide\nwidth: 3\n")).policy().name());
        assertTrue(refusal(reader, file("policy: wide\nwidth: 1\n")).contains("width is '1'; it must be a whole number "
            + "2..9"));
        assertTrue(refusal(reader, file("policy: wide\n")).contains("policy wide: width is missing (of a class)"));
        assertTrue(refusal(READER, file("policy: wide\nwidth: 3\n")).contains("unknown key 'width'"));
    }

    @Test
    void shouldRefuseAParameterThatIsNamedLikeASetting() {
        final PolicyCatalog clash = PolicyCatalog.builtIn().with(new PolicyDescription("odd", "Odd.",
            List.of(PolicyParameter.flag("sharing", true, "x")), Set.of(), true, List.of(),
            a -> EarliestDeadlineFirst.INSTANCE));
        assertEquals("policy odd: parameter sharing is named like a key of every policy file; give it another name",
            assertThrows(IllegalArgumentException.class, () -> new PolicyReader(clash)).getMessage());
    }
}
