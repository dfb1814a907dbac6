/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chain.Edge;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ChainReaderTest {
    private static final String GOOD = """
        version: 1
        id: car
        platform: {cpus: 2, epsilon: 1ms}
        tasks:
          - {name: camera, cpu: 1, period: 40ms, max_period: 42ms, priority: 70, segments: [{cpu: 2ms}]}
          - {name: detect, cpu: 2, period: 40ms, priority: 60, segments: [{gpu: {host: 1ms, device: 4ms}}]}
          - {name: plan, cpu: 1, period: 100ms, max_period: 100ms, priority: 50, segments: [{cpu: 3ms}]}
          - {name: brake, cpu: 2, period: 10ms, max_period: 10ms, priority: 80, segments: [{cpu: 1ms}]}
          - {name: free, cpu: 2, period: 10ms, priority: 10, segments: [{cpu: 100us}]}
          - {name: log, cpu: 2, period: 100ms, max_period: 100ms, best_effort: true, segments: [{cpu: 1ms}]}
        chains:
          - {name: stop, tasks: [camera, detect, plan, brake], edges: [event, sampling, sampling], reaction: 300ms}
          - {name: route, tasks: [detect, plan], edges: sampling, age: 250ms}
        """;

    private static TaskSet read(final String text) throws InvalidFileException {
        return new TaskSetReader().readText(text, "set.yaml");
    }

    @Test
    void shouldReadTasksEdgesAndLimits() throws Exception {
        final Chains chains = read(GOOD).chains();
        assertEquals(List.of(new Chain("stop", List.of("camera", "detect", "plan", "brake"),
            List.of(Edge.EVENT, Edge.SAMPLING, Edge.SAMPLING), 300_000_000L, 0),
            new Chain("route", List.of("detect", "plan"), List.of(Edge.SAMPLING), 0, 250_000_000L)), chains.all());
        assertEquals(42_000_000L, chains.maxPeriodNs().get("camera"));
        assertEquals(Map.of("detect", "camera"), chains.eventPredecessors());
        assertEquals("camera", chains.rootOf("detect"));
        assertEquals("plan", chains.rootOf("plan"));
    }

    @Test
    void shouldSampleWhereTheFileDoesNotSayHowDataGo() throws Exception {
        assertEquals(List.of(Edge.SAMPLING), read(GOOD.replace(" edges: sampling,", "")).chains().all().get(1).edges());
    }

    @Test
    void shouldReadBackWhatItWrites() throws Exception {
        final TaskSet set = read(GOOD);
        final TaskSetReader reader = new TaskSetReader();
        assertEquals(set.tasks(), reader.readText(TaskSetWriter.json(set), "set.json").tasks());
        assertEquals(set.chains(), reader.readText(TaskSetWriter.json(set), "set.json").chains());
        assertEquals(set.chains(), reader.readLine(TaskSetWriter.line(set), "sets.jsonl", 1).chains());
    }

    @Test
    void shouldFindTheArrivalsOfATaskThatALaterChainReleases() throws Exception {
        final String[] lines = GOOD.split("\n");
        final String last = lines[lines.length - 1];
        lines[lines.length - 1] = lines[lines.length - 2];
        lines[lines.length - 2] = last;
        assertEquals("camera", read(String.join("\n", lines)).chains().rootOf("detect"));
    }

    @Test
    void shouldOrderTasksThatEventsReleaseAfterThoseThatReleaseThem() {
        final Chains chains = new Chains(List.of(
            new Chain("b", List.of("y", "z"), List.of(Edge.EVENT), 0, 0),
            new Chain("a", List.of("w", "x", "y"), List.of(Edge.EVENT, Edge.EVENT), 0, 0)), Map.of());
        assertEquals(List.of("x", "y", "z"), List.copyOf(chains.eventPredecessors().keySet()));
        assertEquals("w", chains.rootOf("z"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "[detect, plan] | [detect, plam] | set.yaml:13:35: chain \"route\": task \"plam\" is not in the task set; did",
        "[detect, plan] | [detect, detect] | set.yaml:13:5: chain \"route\": task \"detect\" occurs twice",
        "[detect, plan] | [detect] | set.yaml:13:5: chain \"route\": tasks has 1 item; a chain has 2..64 tasks",
        "[detect, plan] | [] | tasks has 0 items",
        "[detect, plan] | detect | chain \"route\": tasks is 'detect'; write a list like [camera, detect]",
        "[detect, plan] | [detect, log] | task \"log\" is best effort",
        "[detect, plan] | [detect, free] | task \"free\" has no max_period",
        "edges: sampling | edges: event | the event edge from \"detect\" to \"plan\" joins the periods 40ms and 100ms",
        "edges: sampling | edges: [sampling, event] | edges has 2 items for 2 tasks; write one word",
        "edges: sampling | edges: polling | edges is 'polling'; write sampling or event",
        "edges: sampling | edgs: sampling | unknown key 'edgs'; did you mean 'edges'?",
        "age: 250ms | age: 250 | chain \"route\": age is the bare number 250",
        "age: 250ms | age: -250ms | negative time",
        "age: 250ms | age: 0ms | age is 0; it must be positive",
        "reaction: 300ms | reaction: 9223372036854775807ns | longer than 2^53 ns",
        "name: route | name: stop | chain \"stop\": the name occurs twice",
        "name: route, | '' | chain 2: name is missing",
        "max_period: 42ms | max_period: 39ms | set.yaml:5:54: task \"camera\": max_period is 39ms",
        "max_period: 42ms, | '' | chain \"stop\": task \"camera\" has no max_period",
        "cpu: 2, period: 40ms | cpu: 2, period: 40ms, max_period: 40ms | leave out max_period of \"detect\"",
        "chains: | chans: | unknown key 'chans'; did you mean 'chains'?",
    })
    void shouldRefuseWithChainTaskAndRemedy(final String from, final String to, final String expected) {
        assertTrue(GOOD.contains(from), from);
        final String text = GOOD.replaceFirst(Pattern.quote(from), to == null ? "" : to);
        final String message = assertThrows(InvalidFileException.class, () -> read(text)).getMessage();
        assertTrue(message.contains(expected), message);
        assertFalse(message.contains("\n"), message);
    }

    @Test
    void shouldRefuseATaskThatTwoOthersRelease() {
        final String second = assertThrows(InvalidFileException.class, () -> read(GOOD
            .replace("max_period: 10ms, priority: 80", "priority: 80")
            .replace("name: free, cpu: 2, period: 10ms", "name: free, cpu: 2, period: 10ms, max_period: 10ms")
            .replace("name: plan, cpu: 1, period: 100ms, max_period: 100ms",
            "name: plan, cpu: 1, period: 10ms, max_period: 10ms")
            .replace("[detect, plan], edges: sampling", "[free, brake], edges: event")
            .replace("[event, sampling, sampling]", "[event, sampling, event]"))).getMessage();
        assertTrue(second.contains("\"plan\" releases it already") && second.contains("\"free\" to \"brake\""), second);
    }

    @Test
    void shouldRefuseEventsThatLeadBackToTheirBeginning() {
        final String message = assertThrows(InvalidFileException.class, () -> read(GOOD
            .replace("max_period: 42ms, ", "")
            .replace("[detect, plan], edges: sampling", "[detect, camera], edges: event"))).getMessage();
        assertTrue(message.contains("back to itself, so nothing releases it"), message);
    }
}
