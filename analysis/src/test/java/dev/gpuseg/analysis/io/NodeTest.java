/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@link Node} and {@link NodeReader}: what any file of settings needs. */
class NodeTest {
    private static final NodeReader READER = new NodeReader("policy", 1_000, "give one file each");
    private static final String FILE = """
        policy: partitions
        frame: 100ms
        windows:
          - {partition: 1, length: 40ms}
          - {partition: 300, length: 30}
        lend_idle: "yes"
        """;

    private static Node read(final String content) throws InvalidFileException {
        return READER.read(content, "p.yaml");
    }

    private static String refusal(final Executable what) {
        return assertThrows(InvalidFileException.class, what).getMessage();
    }

    // ---- refusals ----

    @Test
    void shouldNameFileLineColumnThingValueAndRemedy() throws Exception {
        final Node root = read(FILE);
        final List<Node> windows = root.required("windows").requireList("window", "a list");
        assertEquals("p.yaml:5:17: window 2: partition is '300'; it must be a whole number 1..255",
            refusal(() -> windows.get(1).required("partition").integer(1, 255)));
        assertEquals("p.yaml:5:30: window 2: length is the bare number 30; a duration needs a unit: write 30ms, 30us "
            + "or 30ns", refusal(() -> windows.get(1).required("length").durationNs()));
        assertEquals("p.yaml:6:12: lend_idle is 'yes'; write true or false",
            refusal(() -> root.required("lend_idle").flag()));
        assertEquals("p.yaml:2:8: frame is '100ms'; it must be 1ms..50ms",
            refusal(() -> root.required("frame").durationNs(1_000_000, 50_000_000)));
        assertEquals("p.yaml:1:9: policy is 'partitions'; write fp, edf or rr",
            refusal(() -> root.required("policy").oneOf(List.of("fp", "edf", "rr"))));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "{a: 1,<TAB>b: 2}|p.yaml:1:7: not readable as YAML: a tab stands there; write spaces",
        "a:<TAB>1|p.yaml:1:3: not readable as YAML: a tab stands there; write spaces",
        "a: @b|p.yaml:1:4: not readable as YAML: found character '@' that cannot start any token; put the text in "
            + "quotes",
        "? [a]|p.yaml:1:4: not readable as YAML: Expected a field name (Scalar value in YAML)",
        "{\"a\": NaN}|p.yaml:1:10: not readable as JSON: Non-standard token 'NaN'",
        "{\"a\": /*b*/ 1}|p.yaml:1:7: not readable as JSON: Unexpected character ('/' (code 47)); JSON has no "
            + "comments: remove it, or write YAML"}, quoteCharacter = '^')
    void shouldSayNothingOfAParsersClassesAndSwitches(final String content, final String message) {
        assertEquals(message, refusal(() -> read(content.replace("<TAB>", "\t"))));
    }

    @Test
    void shouldRefuseTagsNotDropThem() {
        assertEquals("p.yaml:1:4: '!env' is a tag; write the value without it", refusal(() -> read("a: !env HOME")));
        assertEquals("p.yaml:1:4: '!!int' is a tag; write the value without it", refusal(() -> read("a: !!int '5'")));
    }

    @Test
    void shouldRefuseAFileWithoutAName() {
        assertEquals("'': is the name of no file; name a file", refusal(() -> READER.load(Path.of(""))));
    }

    @ParameterizedTest
    @CsvSource({"true, true", "True, true", "yes, true", "YES, true", "on, true", "On, true", "false, false",
        "FALSE, false", "no, false", "No, false", "off, false", "OFF, false"})
    void shouldTakeEveryTruthValueOfYamlForWhatItSays(final String written, final boolean meant) throws Exception {
        final Node value = read("a: " + written).get("a");
        assertEquals(meant, value.flag());
        assertEquals(meant, value.toJson().booleanValue());
    }

    @Test
    void shouldAskForQuotesWhereAWordIsATruthValue() {
        assertEquals("p.yaml:1:4: a is the truth value 'yes'; write a word, or put this one in quotes",
            refusal(() -> read("a: yes").get("a").taskName()));
    }

    @Test
    void shouldSayTheLimitOfNamesAlsoOfAnEmptyOne() {
        assertEquals("p.yaml:1:4: a is blank or has characters that cannot be printed; write 1..63 bytes of printable "
            + "UTF-8", refusal(() -> read("a: ''").get("a").taskName()));
    }

    @Test
    void shouldPointToAnUnknownKeyAndSayWhatWasProbablyMeant() throws Exception {
        final Set<String> known = Set.of("policy", "frame", "windows");
        final Node wrong = read("policy: fp\nfrmae:\n  1ms\n");
        assertEquals("p.yaml:2:1: the policy: unknown key 'frmae'; did you mean 'frame'?",
            refusal(() -> wrong.requireMapping(known)));
        final Node strange = read("windows: {temperature: 3}").required("windows");
        assertEquals("p.yaml:1:11: windows: unknown key 'temperature'; known are frame, policy, windows",
            refusal(() -> strange.requireMapping(known)));
        assertTrue(refusal(() -> read("{? \"" + "k".repeat(500) + "\" : 1}").requireMapping(known)).contains("known"));
    }

    @Test
    void shouldSayWhatIsMissingOrOfTheWrongKind() throws Exception {
        final Node root = read(FILE);
        assertEquals("p.yaml:1:1: the policy: guard is missing; add it", refusal(() -> root.required("guard")));
        assertEquals("p.yaml:1:9: policy is 'partitions'; write a list of names",
            refusal(() -> root.required("policy").requireList("name", "a list of names")));
        assertEquals("p.yaml:4:3: windows is a list; write a mapping like {a: 1}",
            refusal(() -> root.required("windows").requireMapping(Set.of("a"), "{a: 1}")));
        assertTrue(refusal(() -> root.required("windows").durationNs()).contains("is a list, not a duration"));
        assertTrue(refusal(() -> root.required("windows").word()).contains("is a list; write a word"));
        assertTrue(refusal(() -> root.required("windows").integer(1, 2)).contains("is a list; it must be"));
        assertNull(root.get("guard"));
        assertNull(root.required("policy").get("policy"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "0x10 | decimal number", "010 | decimal number", "00 | decimal number",
        "1.5 | whole number", "99999999999999999999 | whole number", "11 | whole number",
        "-1 | whole number", "one | whole number", "true | whole number", "~ | whole number"})
    void shouldTakeWholeDecimalNumbersWithinTheirRangeOnly(final String text, final String expected) throws Exception {
        final Node node = read("{n: " + text + "}").required("n");
        assertTrue(refusal(() -> node.integer(0, 10)).contains(expected));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "'' | p.yaml:1: the file is empty; write a policy",
        "'a: *x' | p.yaml:1:4: '*x' is an alias; write the value itself",
        "'a: 1\na: 2' | p.yaml:2:1: key 'a' occurs twice; remove one",
        "'--- {}\n--- {}' | p.yaml:2: a second document follows; write one policy in a file; give one file each",
        "'a: [1' | p.yaml:1:4: not readable as YAML",
        "'{\"a\": nope}' | p.yaml:1:11: not readable as JSON"})
    void shouldRefuseWhatIsNoDocument(final String content, final String expected) {
        assertTrue(refusal(() -> read(content)).startsWith(expected), refusal(() -> read(content)));
    }

    @Test
    void shouldCallATabThatIndentsATabAndNameItsLine() {
        final String remedy = ": a tab; YAML is indented with spaces only";
        assertEquals("p.yaml:3:1" + remedy, refusal(() -> read("version: 1\nframe:\n\tx: 1\n")));
        assertEquals("p.yaml:4:3" + remedy, refusal(() -> read("version: 1\nx: 2\nframe:\n  \t- x\n")));
        assertEquals("p.yaml:2:1" + remedy, refusal(() -> read("x: 2\n\tframe: 3\n")));
        assertTrue(refusal(() -> read("a: [1\n")).contains("not readable as YAML"));
    }

    @Test
    void shouldRefuseDeepNestingAndLargeFiles(@TempDir final Path directory) throws IOException {
        assertTrue(refusal(() -> read("a: " + "[".repeat(40) + "]".repeat(40))).contains("this is no policy"));
        final Path big = Files.writeString(directory.resolve("big.yaml"), "a: " + "1".repeat(2_000));
        assertTrue(refusal(() -> READER.read(big)).endsWith(
            "the file has 2003 bytes; at most 1000 are read as one policy; give one file each"));
        assertTrue(refusal(() -> READER.readLine("1".repeat(2_000), "b.jsonl", 7)).startsWith("b.jsonl:7: the line"));
    }

    /** No message of more than a line, whatever the file holds. */
    @Test
    void shouldShowAnyValueShortAndOnOneLine() throws Exception {
        final Node node = read("{n: \"a\\nb\\u0007" + "x".repeat(300) + "\"}").required("n");
        final String message = refusal(() -> node.integer(1, 2));
        assertTrue(message.length() < 120 && message.chars().noneMatch(Character::isISOControl), message);
        assertTrue(refusal(node::word).contains("printable"));
    }

    @Test
    void shouldTakeYamlsOtherWordsForOffAndOn() throws Exception {
        final List<String> known = List.of("auto", "on", "off");
        for (final String file : List.of("{k: off}", "{k: No}", "{k: FALSE}", "{k: false}", "{\"k\": false}")) {
            assertEquals("off", read(file).required("k").oneOf(known), file);
        }
        for (final String file : List.of("{k: On}", "{k: yes}", "{k: true}", "{\"k\": true}")) {
            assertEquals("on", read(file).required("k").oneOf(known), file);
        }
        assertEquals("no", read("{k: no}").required("k").oneOf(List.of("no", "off")));
        for (final String file : List.of("{k: oFF}", "{k: n}", "{k: 0}", "{k: ''}")) {
            assertTrue(refusal(() -> read(file).required("k").oneOf(known)).endsWith("; write auto, on or off"), file);
        }
        assertTrue(refusal(() -> read("{k: true}").required("k").oneOf(List.of("off", "learned")))
            .endsWith("k is 'true'; write off or learned"));
    }

    // ---- what is accepted ----

    @Test
    void shouldReadEveryKindOfValue() throws Exception {
        final Node root = read("{t: 1.5ms, i: +7, w: name, n: 3, b: true, o: edf, l: [a], m: {x: 1}}");
        assertEquals(1_500_000, root.required("t").durationNs());
        assertEquals(1_500_000, root.required("t").durationNs(1_500_000, 1_500_000));
        assertEquals(7, root.required("i").integer(7, 7));
        assertEquals("name", root.required("w").word());
        assertEquals("3", root.required("n").word());
        assertTrue(root.required("b").flag());
        assertEquals("edf", root.required("o").oneOf(List.of("fp", "edf")));
        assertEquals("a", root.required("l").requireList("letter", "a list").get(0).word());
        assertSame(root.get("m"), root.required("m").requireMapping(Set.of("x", "y")));
        assertEquals(List.of("t", "i", "w", "n", "b", "o", "l", "m"), List.copyOf(root.keys()));
        assertEquals(READER.read(root.toJson().toString(), "p.json").toJson(), root.toJson());
    }

    @Test
    void shouldCallThingsByTheNamesTheyAreGiven() throws Exception {
        final Node task = read("tasks: [{task: logger, cap: {quota: 1}}]").required("tasks")
            .requireList("task", "a list").get(0);
        assertEquals("task 1: cap: quota", task.required("cap").required("quota").what());
        assertEquals("task \"logger\": cap: quota", task.callIt("task \"logger\"").required("cap").required("quota")
            .what());
    }

    @Test
    void shouldLayOneMappingOverAnother() throws Exception {
        final Node own = read("amd: {mode: hws}").required("amd");
        final Node base = read("amd: {mode: mes, change: 2ms}").required("amd");
        assertEquals("hws", own.over(base).required("mode").word());
        assertEquals(2_000_000, own.over(base).required("change").durationNs());
        assertEquals("amd", own.over(base).what());
        assertSame(own, own.over(null));
        assertEquals("none", read("amd: none").required("amd").over(base).word());
    }

    @Test
    void shouldCountLinesOfABatchFromItsBeginning() throws Exception {
        final Node node = READER.readLine("{\"period\": 80}", "b.jsonl", 41).required("period");
        assertEquals(41, node.line());
        assertEquals(12, node.column());
        final InvalidFileException refused = assertThrows(InvalidFileException.class, node::durationNs);
        assertEquals(41, refused.line());
        assertTrue(refused.text().startsWith("period is the bare number 80"), refused.text());
    }

    @Test
    void shouldCountWhatItReadsOfAFileThatStatesNoSize() {
        final NodeReader reader = new NodeReader("task set", 1 << 16, "give one file each");
        final String said = assertThrows(InvalidFileException.class, () -> reader.load(Path.of("/dev/zero")))
            .getMessage();
        assertTrue(said.contains("/dev/zero") && said.contains("is longer than 65536 bytes"), said);
        assertThrows(InvalidFileException.class, () -> LimitedFile.text(Path.of("/dev/zero")));
    }
}
