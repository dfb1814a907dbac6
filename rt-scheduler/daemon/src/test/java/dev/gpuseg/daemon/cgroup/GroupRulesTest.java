/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GroupRulesTest {
    @TempDir
    private Path directory;

    private GroupRules read(final String groups) throws IOException {
        return GroupRules.read(Files.writeString(directory.resolve("rules.yaml"), "version: 1\ngroups:\n" + groups));
    }

    private void refused(final String groups, final String... words) {
        final String text = assertThrows(IllegalArgumentException.class, () -> read(groups)).getMessage();
        assertFalse(text.contains("\n"), "one line: " + text);
        for (final String word : words) {
            assertTrue(text.contains(word), text + " should say " + word);
        }
    }

    private static boolean matches(final String pattern, final String path) {
        return new GroupRule(pattern, 7, 0, 0, false).compile().matcher(path).matches();
    }

    @Test
    void shouldMatchWithinAndAcrossNames() {
        assertTrue(matches("/a/*/c", "/a/b/c"));
        assertFalse(matches("/a/*/c", "/a/b/b/c"));
        assertFalse(matches("/a/*", "/a"));
        assertTrue(matches("/a/**", "/a") && matches("/a/**", "/a/b") && matches("/a/**", "/a/b/c"));
        assertFalse(matches("/a/**", "/ab"));
        assertTrue(matches("/**", "/") && matches("/**", "/x/y"));
        assertTrue(matches("/user.slice/user-?.slice", "/user.slice/user-1.slice"));
        assertFalse(matches("/user.slice/user-?.slice", "/user-slice/user-1.slice"), "a dot is a dot");
        assertTrue(matches("/**/x.scope", "/a/b/x.scope"));
        assertTrue(matches("/a[b](c)+$", "/a[b](c)+$"), "no other character is special");
    }

    @Test
    void shouldGiveNoPriorityToAProcessWhoseGroupIsNotKnown() throws IOException {
        final GroupRules rules = read("  - {path: /pods/a/**, priority: 60}\n  - {path: /pods/**, priority: 0}\n");
        assertEquals(60, rules.ofProcess("/pods/a/1").priority());
        assertEquals(0, rules.ofProcess("/pods/b/1").priority());
        assertEquals(GroupRule.NOT_SAID, rules.ofProcess("/system.slice").priority());
        assertEquals(0, rules.ofProcess("").priority());
        assertFalse(read("  - {path: /pods/**, weight: 7}\n").ofProcess("").limitsPriority());
        refused("  - {path: /a, priority: 100}\n", "priority", "100", "0..99");
    }

    @Test
    void shouldTakeTheFirstRuleThatMatches() throws IOException {
        final GroupRules rules = read("  - {path: /robot.slice/logger.service, weight: 1}\n"
            + "  - {path: /robot.slice/**, weight: 400}\n"
            + "  - {path: \"/user.slice/**\", cap: {quota: 25ms, period: 100ms}}\n"
            + "  - {path: /display.service, protect: true}\n");
        assertEquals(1, rules.of("/robot.slice/logger.service").weight());
        assertEquals(400, rules.of("/robot.slice/camera.service").weight());
        assertEquals(25_000_000, rules.of("/user.slice/user-0.slice").quotaNs());
        assertEquals(100_000_000, rules.of("/user.slice").periodNs());
        assertTrue(rules.of("/display.service").protect());
        assertEquals(GroupRule.DEFAULT, rules.of("/"));
    }

    @Test
    void shouldRefuseWithThingValueAndRemedy() {
        refused("  - {path: robot}\n", "robot", "begin with a slash");
        refused("  - {path: /r, weight: 0}\n", ":3:24: rule 1: weight is '0'", "1..10000");
        refused("  - {path: /r, weight: 10001}\n", "weight is '10001'");
        refused("  - {path: /r, weight: much}\n", "weight is");
        refused("  - {path: /r, wieght: 3}\n", "unknown key 'wieght'", "weight");
        refused("  - {path: /r, protect: maybe}\n", "protect is", "true or false");
        refused("  - {weight: 7}\n", "rule 1: path is missing; add it");
        refused("  - {path: /r, cap: {quota: 20, period: 100ms}}\n", "bare number", "20ms");
        refused("  - {path: /r, cap: {quota: 0ms, period: 100ms}}\n", "rule 1: cap: quota is '0ms'", "1ns..10s");
        refused("  - {path: /r, cap: {quota: 200ms, period: 100ms}}\n", "at most the period");
        refused("  - {path: /r, cap: {quota: 1us, period: 10us}}\n", "1ms..10s");
        refused("  - /r\n", "rule 1 is '/r'; write a mapping like {path: ");
        refused("  {", "not readable as YAML");
        assertThrows(IllegalArgumentException.class, () -> GroupRules.read(directory.resolve("missing")));
    }

    @Test
    void shouldComputeFairnessFromSharesPerWeight() {
        assertEquals(1.0, Fairness.of(new long[] {100, 200, 400}, new int[] {1, 2, 4}).jain(), 1e-12);
        assertEquals(0.0, Fairness.of(new long[] {100, 200, 400}, new int[] {1, 2, 4}).coefficientOfVariation(), 1e-9);
        assertEquals(0.5, Fairness.of(new long[] {7, 0}, new int[] {1, 1}).jain(), 1e-12);
        assertEquals(1.0, Fairness.of(new long[] {7, 0}, new int[] {1, 1}).coefficientOfVariation(), 1e-12);
        // x = 1, 3: (4 * 4) / (2 * 10) and 1 / 2
        assertEquals(0.8, Fairness.of(new long[] {10, 30}, new int[] {10, 10}).jain(), 1e-12);
        assertEquals(0.5, Fairness.of(new long[] {10, 30}, new int[] {10, 10}).coefficientOfVariation(), 1e-12);
        assertEquals(new Fairness(1, 0, 0), Fairness.of(new long[0], new int[0]));
    }
}
