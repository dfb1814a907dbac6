/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SchemaTest {
    private static final long MS = 1_000_000;
    private static final Schema SCHEMA = new Schema("{name: a}", Schema.version(1), Schema.word("name").needed(),
        Schema.integer("size", 2, Long.MAX_VALUE), Schema.duration("wait", MS, 10 * MS), Schema.flag("on"),
        Schema.choice("colour", "red", "green"), Schema.any("rest"),
        Schema.mapping("cap", new Schema("{quota: 1ms}", Schema.duration("quota", 1, MS).needed())),
        Schema.list("rules", 1, 2, "rule", new Schema("{path: /a}", Schema.word("path").needed())));

    private static Node read(final String text) throws InvalidFileException {
        return new NodeReader("thing", 1 << 16, "remove the rest").read(text, "t.yaml");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "[1] | t.yaml:1:1: the thing is a list; write a mapping like {name: a}",
        "size: 3 | t.yaml:1:1: the thing: name is missing; add it",
        "name: a\\nsice: 3 | t.yaml:2:1: the thing: unknown key 'sice'; did you mean 'size'?",
        "name: a\\nsize: 1 | t.yaml:2:7: size is '1'; it must be a whole number 2..9223372036854775807",
        "name: a\\nsize: 9223372036854775808 | size is '9223372036854775808'; it must be a whole number 2..",
        "name: a\\nwait: 3 | t.yaml:2:7: wait is the bare number 3; a duration needs a unit",
        "name: a\\nwait: 11ms | wait is '11ms'; it must be 1ms..10ms",
        "name: a\\non: 1 | on is '1'; write true or false",
        "name: a\\ncolour: blue | colour is 'blue'; write red or green",
        "name: a\\nversion: 2 | version is '2'; this program reads version: 1",
        "name: a\\ncap: {quota: 2ms} | t.yaml:2:14: cap: quota is '2ms'; it must be 1ns..1ms",
        "name: a\\ncap: 2ms | cap is '2ms'; write a mapping like {quota: 1ms}",
        "name: a\\nrules: [] | rules is a list of 0; it must have 1..2 entries",
        "name: a\\nrules: 3 | rules is '3'; write a list like [{path: /a}]",
        "name: a\\nrules: [{path: /a}, {pat: /b}] | rule 2: unknown key 'pat'; did you mean 'path'?",
    })
    void shouldRefuseWithPlaceThingValueAndRemedy(final String text, final String says) throws Exception {
        final Node node = read(text.replace("\\n", "\n"));
        final String message = assertThrows(InvalidFileException.class, () -> SCHEMA.read(node)).getMessage();
        assertTrue(message.startsWith("t.yaml:") && message.contains(says), message);
    }

    @Test
    void shouldGiveWhatStandsThereAndElseWhatIsUsual() throws Exception {
        final Schema.Values values = SCHEMA.read(read("name: a\nsize: 9223372036854775807\nwait: 2ms\non: true\n"
            + "colour: green\nrest: [1]\ncap: {quota: 7ns}\nrules: [{path: /a}, {path: /b}]\n"));
        assertEquals("a", values.word("name"));
        assertEquals(Long.MAX_VALUE, values.number("size", 0));
        assertEquals(2 * MS, values.durationNs("wait", 0));
        assertTrue(values.flag("on", false));
        assertEquals("green", values.word("colour"));
        assertEquals(7, values.mapping("cap").durationNs("quota", 0));
        assertEquals(List.of("/a", "/b"), values.list("rules").stream().map(rule -> rule.word("path")).toList());
        assertEquals(6, values.node("rest").line());
        final Schema.Values few = SCHEMA.read(read("name: b\n"));
        assertFalse(few.has("size"));
        assertEquals(5, few.number("size", 5));
        assertNull(few.mapping("cap"));
        assertEquals(List.of(), few.list("rules"));
    }

    /** What comes from no file has no line, and is judged alike. */
    @Test
    void shouldReadARequest() throws Exception {
        final JsonNode json = new ObjectMapper().readTree("{\"name\":\"a\",\"wait\":\"2ms\",\"on\":false,"
            + "\"rules\":[{\"path\":\"/a\"}],\"size\":4}");
        final Node node = Node.of(json, "request", "the request");
        assertEquals(json.toString(), node.toJson().toString());
        assertEquals(4, SCHEMA.read(node).number("size", 0));
        final Node wrong = Node.of(new ObjectMapper().readTree("{\"name\":null}"), "request", "the request");
        assertEquals("request: name is 'null'; write a word",
            assertThrows(InvalidFileException.class, () -> SCHEMA.read(wrong)).getMessage());
    }

    @Test
    void shouldKeepTheFirstOfTwoKeysOfOneName() {
        assertThrows(IllegalArgumentException.class, () -> new Schema("", Schema.flag("a"), Schema.word("a")));
        final Schema more = SCHEMA.with(List.of(Schema.flag("size"), Schema.flag("other")));
        assertTrue(more.names().contains("other"));
        assertThrows(InvalidFileException.class, () -> more.read(read("name: a\nsize: true\n")), "still a number");
    }
}
