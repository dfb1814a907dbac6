/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(60)
class AnalyzeCommandTest {
    private static final String SET = """
        platform: {cpus: 2, epsilon: 1ms}
        tasks:
          - {name: a, cpu: 1, period: 80ms, priority: 70, segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}]}
          - {name: b, cpu: 2, period: %s, priority: 60, segments: [{cpu: 2ms}, {gpu: {host: 1ms, device: 40ms}}]}
        """;
    private static final String LINE = "{\"id\":\"x\",\"platform\":{\"cpus\":1},\"tasks\":[{\"name\":\"a\",\"cpu\":1,"
        + "\"period\":\"9ms\",\"priority\":1,\"segments\":[{\"cpu\":\"1ms\"}]}]}";

    @TempDir
    private Path directory;
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int run(final String... arguments) {
        return new CommandLine(new AnalyzeCommand()).setOut(new PrintWriter(out)).setErr(new PrintWriter(err))
            .execute(arguments);
    }

    private String file(final String name, final String content) throws IOException {
        return Files.writeString(directory.resolve(name), content).toString();
    }

    @Test
    void shouldRefuseBadInputInOneLineWithStatus2() throws IOException {
        for (final String[] arguments : new String[][] {
            {}, {"none.yaml"}, {directory.toString()}, {file("a.yaml", "tasks: []")},
            {file("b.yaml", SET.formatted("80"))}, {file("c.yaml", SET.formatted("-80ms"))},
            {file("d.yaml", SET.formatted("9223372036854775807ns"))}, {file("e.yaml", SET.formatted(".nan"))},
            {file("f.yaml", SET.formatted("80ms")), "--analysis", "nonsense"},
            {file("g.yaml", SET.formatted("80ms")), "--format", "pdf"},
            {file("i.yaml", SET.formatted("80ms")), "--assign", "edf"},
            {file("j.yaml", SET.formatted("80ms")), "--from", "xml"},
            {"--batch", file("k.jsonl", LINE + "\n{broken")}, {"--batch", "none.jsonl"}}) {
            err.getBuffer().setLength(0);
            assertEquals(2, run(arguments), String.join(" ", arguments));
            assertEquals(1, err.toString().lines().count(), err.toString());
        }
    }

    @Test
    void shouldAnswerYesWith0AndNoWith3() throws IOException {
        assertEquals(0, run(file("yes.yaml", SET.formatted("100ms"))));
        assertTrue(out.toString().contains("gcaps-window-suspend: schedulable"), out.toString());
        assertEquals(3, run(file("no.yaml", SET.formatted("48ms"))));
        assertTrue(out.toString().contains("NOT schedulable"), out.toString());
        assertEquals(3, run(file("no.yaml", SET.formatted("48ms")), "--analysis", "all"));
    }

    /** An update of 55 ms does not fit into any period of the set; turns need none. */
    @Test
    void shouldTakeTheBoundsByTurnsWhereTheyAreBetter() throws IOException {
        final String one = file("turns.yaml", """
            version: 1
            platform: {cpus: 1, epsilon: 55ms, optimistic: true, clock: 1, newcomers: none}
            tasks:
              - {name: a, cpu: 1, period: 40ms, priority: 2, segments: [{gpu: {host: 1ms, device: 5ms}}]}
            """);
        assertEquals(3, run(one), "it states no turns");
        final String turns = file("turns.yaml", Files.readString(Path.of(one)).replace("newcomers: none",
            "newcomers: none, turns: {slice: 500us, contexts: 2}"));
        out.getBuffer().setLength(0);
        assertEquals(0, run(turns), out.toString());
        assertTrue(out.toString().contains("\nturns-suspend: schedulable\n")
            && out.toString().contains("the bounds are those of turns-suspend"), out.toString());
        assertTrue(lastLine().contains("start `gpuseg run --admission enforce --taskset " + turns + "`"));
        assertEquals(3, run(turns, "--analysis", "gcaps-window-suspend"), "asked for calls");
        assertFalse(out.toString().contains("the bounds are those of"), out.toString());
    }

    @Test
    void shouldPrintAnExampleThatItAccepts() throws IOException {
        assertEquals(0, run("--example"));
        final String example = out.toString();
        assertEquals(0, run(file("example.yaml", example)), err.toString());
        assertEquals(2, run("--example", "example.yaml"));
        assertTrue(err.toString().contains("--example analyses nothing; leave out example.yaml"), err.toString());
    }

    private String lastLine() {
        final List<String> lines = out.toString().lines().toList();
        out.getBuffer().setLength(0);
        return lines.get(lines.size() - 1);
    }

    @Test
    void shouldEndWithWhatToDoNext() throws IOException {
        final String set = file("set.yaml", SET.formatted("100ms"));
        assertEquals(0, run(set));
        String next = lastLine();
        assertTrue(next.startsWith("next: measure epsilon with `gpuseg calibrate`") && next.contains("see to the "
            + "conditions") && next.contains("`gpuseg run --admission enforce --taskset " + set + "`"), next);
        file("machine.yaml", "cpus: 2\nepsilon: 1ms\nclock: 1\nnewcomers: none\n");
        assertEquals(0, run(file("measured.yaml", SET.formatted("100ms")
            .replace("{cpus: 2, epsilon: 1ms}", "machine"))));
        next = lastLine();
        assertTrue(next.startsWith("next: start `gpuseg run") && next.contains("`gpuseg trace check RECORDING"), next);
        assertEquals(3, run(file("no.yaml", SET.formatted("48ms"))));
        assertTrue(lastLine().startsWith("next: make one of the changes that would help, or let --assign opa"));
        assertEquals(0, run(set, "--analysis", "gcaps-suspend"));
        assertTrue(lastLine().startsWith("next: leave out --analysis: "));
        assertEquals(3, run(set, "--measured", file("late.json", """
            {"tasks": [{"name": "a", "policy": "fp", "jobs": 10, "misses": 1, "response_ns": {"max": 99000000}}]}
            """)));
        assertTrue(lastLine().startsWith("next: `gpuseg trace check RECORDING --taskset " + set + "` says which"));
    }

    @Test
    void shouldNotAdviseToSearchPrioritiesWhereThatIsInVain() throws IOException {
        final String refused = file("no.yaml", SET.formatted("48ms"));
        assertEquals(3, run(refused, "--assign", "opa"));
        assertTrue(lastLine().startsWith("next: make one of the changes that would help and analyse again;"));
        assertEquals(3, run(refused, "--assign", "rm"));
        assertTrue(lastLine().startsWith("next: make one of the changes that would help, or let --assign opa"));
        assertEquals(3, run(file("edf.yaml", """
            platform: {cpus: 1, gpus: 0}
            tasks:
              - {name: a, cpu: 1, period: 10ms, priority: 2, segments: [{cpu: 6ms}]}
              - {name: b, cpu: 1, period: 20ms, priority: 1, segments: [{cpu: 9ms}]}
            """), "--analysis", "edf-edf-suspend"), err.toString());
        assertTrue(lastLine().startsWith("next: make one of the changes that would help and analyse again;"));
    }

    /** The daemon reads neither another format nor priorities that only this command has assigned. */
    @Test
    void shouldHandTheDaemonTheSetThatWasAnalysed() throws IOException {
        final String foreign = file("one.json", """
            {"tasks": {"one": {"policy": "SCHED_FIFO", "priority": 50, "cpus": [0], "run": 2000,
              "timer": {"ref": "t", "period": 10000}}}}
            """);
        final String write = "write what was analysed to a file SET (the same options, `--format taskset --out SET`), ";
        final String start = "start `gpuseg run --admission enforce --taskset SET`, let";
        assertEquals(0, run(foreign, "--from", "rt-app", "--cpus", "1"), err.toString());
        assertTrue(out.toString().contains("read as rt-app"), out.toString());
        String next = lastLine();
        assertTrue(next.contains(write + start) && next.contains("--taskset SET`"), next);
        final String set = file("set.yaml", SET.formatted("100ms"));
        assertEquals(0, run(set, "--assign", "rm", "--partition", "wfd"), err.toString());
        assertTrue(out.toString().contains("cores by wfd, priorities by rm"), out.toString());
        next = lastLine();
        assertTrue(next.contains(write + start), next);
        final Path taken = directory.resolve("taken.json");
        assertEquals(0, run(foreign, "--from", "rt-app", "--cpus", "1", "--format", "taskset", "--out",
            taken.toString()), err.toString());
        assertEquals(0, run(taken.toString()), err.toString());
        next = lastLine();
        assertTrue(!next.contains(write) && next.contains("--taskset " + taken), next);
    }

    @Test
    void shouldWriteJsonInFileOrder() throws IOException {
        final Path result = directory.resolve("result.json");
        assertEquals(0, run(file("set.yaml", SET.formatted("100ms")), "--analysis", "gcaps-suspend,gcaps-busy",
            "--format",
            "json", "--out", result.toString()));
        final JsonNode root = new ObjectMapper().readTree(result.toFile());
        assertEquals("set", root.get("id").asText());
        final JsonNode task = root.at("/results/gcaps-suspend/tasks/0");
        assertEquals("a", task.get("name").asText());
        assertEquals(12_000_000, task.get("wcrt_ns").asLong());
        assertEquals(80_000_000, task.get("deadline_ns").asLong());
        assertEquals(8_000_000, task.at("/terms/own_ns").asLong());
        assertTrue(root.at("/results/gcaps-busy/schedulable").asBoolean());
    }

    @Test
    void shouldAnalyseABatchLineByLine() throws IOException {
        final Path result = directory.resolve("out.jsonl");
        assertEquals(0, run("--batch", file("sets.jsonl", LINE + "\n\n" + LINE.replace("\"x\"", "\"y\"").replace("1ms",
            "10ms") + "\n"), "--analysis", "gcaps-suspend,edf-edf-suspend", "--out", result.toString()));
        final List<String> lines = Files.readAllLines(result);
        assertEquals(2, lines.size());
        assertEquals("{\"id\":\"x\",\"results\":{\"gcaps-suspend\":{\"schedulable\":true,\"wcrt_ns\":[1000000]},"
            + "\"edf-edf-suspend\":{\"schedulable\":true,\"wcrt_ns\":[1000000]}}}", lines.get(0));
        assertTrue(lines.get(1).contains("\"wcrt_ns\":[null]"), lines.get(1));
        assertTrue(out.toString().contains("gcaps-suspend: 1 of 2 schedulable"), out.toString());
    }

    @Test
    void shouldPlaceAssignAndConvert() throws IOException {
        final String bare = """
            platform: {cpus: 2, epsilon: 1ms}
            tasks: [{name: a, period: 80ms, segments: [{cpu: 20ms}]}, {name: b, period: 40ms, segments: [{cpu: 20ms}]}]
            """;
        assertEquals(2, run(file("bare.yaml", bare)));
        assertEquals(0, run(file("bare.yaml", bare), "--partition", "wfd", "--assign", "rm", "--format", "taskset"));
        final JsonNode root = new ObjectMapper().readTree(out.toString());
        assertEquals(2, root.at("/tasks/0/cpu").asInt());
        assertEquals(98, root.at("/tasks/0/priority").asInt());
        assertEquals(1, root.at("/tasks/1/cpu").asInt());
        assertEquals(99, root.at("/tasks/1/priority").asInt());
    }

    /** The numbers are made up: no AMD hardware was measured. */
    @Test
    void shouldRefuseAnAmdProfileWithoutItsNumbersInOneLine() throws IOException {
        final String tasks = "\ntasks: [{name: t, cpu: 1, period: 80ms, priority: 7, segments: [{gpu: {host: 1ms, "
            + "device: 2ms}}]}]\n";
        final String set = file("set.yaml", "platform: mi" + tasks);
        final String known = "cpus: 2\ntheta: 1ms\ntimeslice: 5ms\namd: {interface: kfd, mode: hws, command: 300us, "
            + "contexts: 4, foreign: 1s, change: ";
        file("mi.yaml", known + "unknown}\n");
        final StringOutput refused = StringOutput.of("analyze", set);
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertEquals(1, refused.text().strip().lines().count(), refused.text());
        assertTrue(refused.text().contains("amd: change is unknown") && refused.text().contains("measure the longest"),
            refused.text());
        file("mi.yaml", known + "2ms}\n");
        assertEquals(ExitCode.OK, StringOutput.of("analyze", set).status());
        final StringOutput other = StringOutput.of("analyze", set, "--analysis", "mpcp-suspend");
        assertEquals(ExitCode.USAGE, other.status(), other.text());
        assertTrue(other.text().contains("use gcaps-window-suspend"), other.text());
    }

    @Test
    void shouldShowMeasuredResponsesBesideTheBoundsAndSayNoWhereOneExceedsASoundBound() throws Exception {
        final Path set = directory.resolve("set.yaml");
        Files.writeString(set, """
            version: 1
            id: x
            platform: {cpus: 1, epsilon: 1ms}
            tasks:
              - {name: camera, cpu: 1, period: 80ms, priority: 5,
                 segments: [{cpu: 1ms}, {gpu: {host: 1ms, device: 5ms}}]}
            """);
        final Path run = directory.resolve("run.json");
        for (final String format : new String[] {"text", "json", "html", "report-json"}) {
            Files.writeString(run, "{\"mechanism\":\"sim\",\"tasks\":[{\"name\":\"camera\",\"jobs\":9,"
                + "\"response_ms\":{\"max\":8.25}}]}");
            final StringOutput held = StringOutput.of("analyze", set.toString(), "--measured", run.toString(),
                "--format", format);
            assertEquals(ExitCode.OK, held.status(), held.text());
            if (!format.equals("json")) {   // its form is fixed by the interface
                assertTrue(held.out().contains(format.equals("report-json") ? "8250000" : "8.25"), held.out());
            }
            Files.writeString(run, "{\"tasks\":[{\"name\":\"camera\",\"response_ms\":{\"max\":79}}]}");
            final StringOutput exceeded = StringOutput.of("analyze", set.toString(), "--measured", run.toString(),
                "--format", format);
            assertEquals(ExitCode.NO, exceeded.status(), exceeded.text());
            assertTrue(exceeded.text().contains("\"camera\"") && exceeded.text().contains("79 ms"), exceeded.text());
        }
        Files.writeString(run, "{\"tasks\":[{\"name\":\"camera\"}]}");
        final StringOutput bad = StringOutput.of("analyze", set.toString(), "--measured", run.toString());
        assertEquals(ExitCode.USAGE, bad.status());
        assertTrue(bad.text().contains("response_ms.max"), bad.text());
    }

    private static final String CAMERA = """
        version: 1
        id: x
        platform: %s
        tasks:
          - {name: camera, cpu: 1, period: 80ms, priority: 5,
             segments: [{cpu: 1ms}, {gpu: {host: 1ms, device: 5ms}}]}
        """;

    @Test
    void shouldSayTheSameVerdictInEveryFormat() throws Exception {
        final String set = file("camera.yaml", CAMERA.formatted("{cpus: 1, epsilon: 1ms, clock: 1, newcomers: none}"));
        final String run = file("run.json", "{\"mechanism\":\"sim\",\"tasks\":[{\"name\":\"camera\",\"jobs\":9,"
            + "\"misses\":2,\"response_ms\":{\"p50\":8,\"p99\":90,\"max\":90}}]}");
        final String broken = "CONTRADICTED BY THE MEASUREMENT: task \"camera\" took 90.0 ms, its bound is 9.0 ms (at "
            + "least 2 of 9 jobs above their bound, 2 late) (simulated measurement)";
        final String refused = "NOT schedulable: task \"camera\" may miss its deadline: its bound is at least 87.0 ms, "
            + "its deadline is 80.0 ms";
        final String[][] all = {
            {"every deadline holds, if the hypotheses below hold", "true", "false"},
            {broken, "false", "true", "--measured", run},
            {refused, "false", "false"},
        };
        final String slow = file("slow.yaml", CAMERA.formatted("{cpus: 1, epsilon: 40ms, clock: 1, newcomers: none}"));
        for (final String[] one : all) {
            final List<String> arguments = new ArrayList<>(List.of("analyze",
                one[0].equals(refused) ? slow : set));
            arguments.addAll(List.of(one).subList(3, one.length));
            arguments.addAll(List.of("--format", ""));
            for (final String format : List.of("text", "report-text", "json", "report-json", "html")) {
                arguments.set(arguments.size() - 1, format);
                final StringOutput said = StringOutput.of(arguments.toArray(new String[0]));
                assertEquals(one[1].equals("true") ? ExitCode.OK : ExitCode.NO, said.status(), said.text());
                if (format.endsWith("json")) {
                    final JsonNode verdict = new ObjectMapper().readTree(said.out()).path("verdict");
                    assertEquals(one[0], verdict.path("sentence").asText());
                    assertEquals(one[1], verdict.path("holds").asText());
                    assertEquals(one[2], verdict.path("contradicted").asText());
                    assertEquals(one[2], verdict.path("simulated").asText());
                } else if (format.equals("html")) {
                    assertTrue(said.out().contains("id=\"verdict\">" + one[0].replace("\"", "&quot;") + "</p>"),
                        said.out());
                } else {
                    assertEquals("verdict: " + one[0], said.out().lines().toList().get(1));
                }
            }
        }
    }

    @Test
    void shouldShowTheRefusedTasksPartsAndWhatWouldHelpInEveryFormat() throws Exception {
        final String set = file("camera.yaml", CAMERA.formatted("{cpus: 1, epsilon: 40ms}"));
        final String text = StringOutput.of("analyze", set).out();
        assertTrue(text.contains(" >= 87           80        <= -7  own 7 + overhead 80 when it passed the deadline\n"),
            text);
        final JsonNode result = new ObjectMapper().readTree(StringOutput.of("analyze", set, "--format", "json").out())
            .at("/results/gcaps-window-suspend");
        assertEquals(87_000_000, result.at("/tasks/0/passed_ns").asLong());
        final String html = StringOutput.of("analyze", set, "--format", "html").out();
        assertTrue(result.path("why").size() >= 2, result.toString());
        for (final JsonNode line : result.path("why")) {
            assertTrue(text.contains("  " + line.asText() + '\n'), text);
            assertTrue(html.contains("<li>" + line.asText().replace("\"", "&quot;") + "</li>"), html);
        }
    }

    @Test
    void shouldSayWhatAReportIsMadeOf() throws Exception {
        final String profile = file("board.yaml", "{cpus: 1, epsilon: 1ms, measured: {begun: \"2020-01-01T00:00:00Z\", "
            + "blocking_ns: {n: 60}}}");
        final String set = file("camera.yaml", CAMERA.formatted("board"));
        final String run = file("run.json", "{\"tasks\":[{\"name\":\"camera\",\"jobs\":9,"
            + "\"response_ms\":{\"max\":8}}]}");
        final String certificate = directory.resolve("c.json").toString();
        final StringOutput said = StringOutput.of("analyze", set, "--measured", run, "--certificate", certificate,
            "--format", "json");
        assertEquals(ExitCode.OK, said.status(), said.text());
        final JsonNode from = new ObjectMapper().readTree(said.out()).path("provenance");
        assertEquals("gpuseg " + Report.VERSION, from.path("tool").asText());
        final List<String> files = new ArrayList<>();
        from.path("files").forEach(each -> files.add(each.path("role").asText() + ' ' + each.path("name").asText() + ' '
            + each.path("sha256").asText()));
        assertEquals(List.of("task set " + set + ' ' + sha256(set), "profile " + profile + ' ' + sha256(profile),
            "measurement " + run + ' ' + sha256(run), "certificate " + certificate + ' ' + sha256(certificate)), files);
        assertTrue(from.at("/files/1/remark").asText().matches("measured 2020-01-01T00:00:00Z \\([0-9]+ days ago\\), n "
            + ">= 60 for each figure"), from.toString());
        assertEquals("profile board", from.at("/constants/1/origin").asText());
        final String text = StringOutput.of("analyze", set).out();
        assertTrue(text.contains("  epsilon      1ms (profile board)\n") && text.contains(sha256(profile)), text);
        final String html = StringOutput.of("analyze", set, "--format", "html").out();
        assertTrue(html.contains("<code>" + sha256(set) + "</code>"), html);
        assertTrue(html.contains("<code>" + sha256(profile) + "</code>"), html);
    }

    private static String sha256(final String name) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(
            Path.of(name))));
    }

    @Test
    void shouldAnalyseWhatCanBeReadOnlyOnce() throws Exception {
        final Path pipe = directory.resolve("pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        final Thread writer = new Thread(() -> {
            try {
                Files.writeString(pipe, CAMERA.formatted("{cpus: 1, epsilon: 1ms}"));
            } catch (final IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        writer.start();
        final StringOutput said = StringOutput.of("analyze", pipe.toString(), "--format", "html");
        writer.join();
        assertEquals(ExitCode.OK, said.status(), said.text());
        assertTrue(said.out().contains("not hashed (no regular file)"), said.out());
    }

    /** The claim depends on the set, not on the report that prints it. */
    @Test
    void shouldPrintTheSameClaimInEveryFormat() throws Exception {
        final String set = file("claim.yaml", """
            version: 1
            id: x
            platform: {cpus: 1, epsilon: 1ms, clock: 1, newcomers: none}
            tasks:
              - {name: camera, cpu: 1, period: 80ms, priority: 5,
                 segments: [{cpu: 1ms}, {gpu: {host: 1ms, device: 5ms}}]}
            """);
        for (final String analysis : new String[] {"gcaps-window-suspend", "gcaps-boost-suspend", "gcaps-boost-busy",
            "gcaps-suspend"}) {
            final JsonNode json = new ObjectMapper().readTree(StringOutput.of("analyze", set, "--analysis", analysis,
                "--format", "json").out()).path("results").path(analysis);
            final String claim = json.path("claim_text").asText();
            assertEquals(analysis.equals("gcaps-window-suspend") ? "sound"
                : analysis.equals("gcaps-boost-suspend") ? "conditional" : "not-sound", json.path("claim").asText());
            assertTrue(StringOutput.of("analyze", set, "--analysis", analysis).out().contains(claim), claim);
            final String html = StringOutput.of("analyze", set, "--analysis", analysis, "--format", "html").out();
            assertTrue(html.contains(claim.substring(1).replace("'", "&#39;")), claim);
            final JsonNode report = new ObjectMapper().readTree(StringOutput.of("analyze", set, "--analysis", analysis,
                "--format", "report-json").out());
            assertEquals(claim, report.path("results").path(analysis).path("claim_text").asText());
            assertEquals(json.path("hypotheses"), report.path("results").path(analysis).path("hypotheses"));
        }
        final String list = StringOutput.of("analyze", "--help").out().replaceAll("\\s+", " ");
        assertTrue(list.contains("[sound for this scheduler with policy fp at level 3]"), list);
        assertTrue(list.contains("[not sound for this scheduler: M8: "), list);
    }

    /** Its job keeps the declared times, and its overrun action would act: no bound holds under that policy file. */
    @Test
    void shouldRefuseABudgetThatAJobWithinItsTimesCanUseUp() throws Exception {
        final String set = "version: 1\nid: x\nplatform: {cpus: 2, epsilon: %s, optimistic: %s}\nmode: suspend\n"
            + "tasks:\n"
            + "  - {name: top, cpu: 1, period: 100ms, priority: 90, segments: [{cpu: 10ms}]}\n"
            + "  - {name: h, cpu: %d, period: 100ms, deadline: 40ms, priority: 80, "
            + "segments: [{gpu: {host: 4ms, device: 2ms}}]}\n"
            + "  - {name: lo, cpu: 2, period: 100ms, priority: 40, segments: [{gpu: {host: 1ms, device: 30ms}}]}\n";
        final String policy = "policy: fp\ntasks:\n  - {task: h, budget: %s, overrun: %s}\n";
        final String stopped = file("stopped.yaml", set.formatted("100us", "false", 1));
        final String updated = file("updated.yaml", set.formatted("3ms", "true", 2));
        for (final String[] bad : new String[][] {{stopped, "6ms", "16ms"}, {stopped, "15999us", "16ms"},
            {updated, "6ms", "12ms"}}) {
            final StringOutput refused = StringOutput.of("analyze", bad[0], "--policy-file",
                file("small.yaml", policy.formatted(bad[1], "demote")));
            assertEquals(ExitCode.USAGE, refused.status(), refused.text());
            assertTrue(refused.text().contains("the budget of \"h\" is ")
                && refused.text().contains("raise the budget to " + bad[2]), refused.text());
        }
        for (final String[] good : new String[][] {{stopped, "16ms", "demote"}, {updated, "12ms", "suspend"},
            {stopped, "6ms", "notify"}}) {
            final StringOutput accepted = StringOutput.of("analyze", good[0], "--policy-file",
                file("enough.yaml", policy.formatted(good[1], good[2])));
            assertEquals(ExitCode.OK, accepted.status(), accepted.text());
        }
    }

    @Test
    void shouldRefuseInOneLineWhatBreaksAHypothesis() throws Exception {
        final String tasks = "\ntasks:\n  - {name: a, cpu: 1, period: 80ms, priority: 7, gpu_priority: 5, segments: "
            + "[{gpu: {host: 1ms, device: 2ms}}]}\n  - {name: b, cpu: 1, period: 80ms, priority: 6, process: p, "
            + "segments: [{gpu: {host: 1ms, device: 2ms}}]}\n";
        final StringOutput order = StringOutput.of("analyze", file("order.yaml",
            "platform: {cpus: 1, epsilon: 1ms}" + tasks));
        assertEquals(ExitCode.USAGE, order.status(), order.text());
        assertEquals(1, order.text().strip().lines().count(), order.text());
        assertTrue(order.text().contains("\"a\" (priority 7, gpu_priority 5) and \"b\" (priority 6, gpu_priority 6)"),
            order.text());
        final StringOutput shared = StringOutput.of("analyze", file("shared.yaml",
            "mode: busy\nplatform: {cpus: 1, epsilon: 1ms}" + tasks.replace("gpu_priority: 5", "process: p")));
        assertEquals(ExitCode.USAGE, shared.status(), shared.text());
        assertEquals(1, shared.text().strip().lines().count(), shared.text());
        assertTrue(shared.text().contains("share process \"p\""), shared.text());
    }

    private static final String PARTITIONS = """
        version: 1
        policy: partitions
        frame: 40ms
        guard: 1ms
        inside: %s
        windows: [{partition: 1, offset: 0ms, length: %s}, {partition: 2, offset: 20ms, length: 20ms}]
        tasks: [{task: %s, partition: 1}, {task: b, partition: 2}]
        """;

    @Test
    void shouldAnalyseTimePartitionsByThePolicyFile() throws IOException {
        final String set = file("set.yaml", SET.formatted("200ms"));
        final String policy = file("policy.yaml", PARTITIONS.formatted("fp", "20ms", "a"));
        assertEquals(0, run(set, "--policy-file", policy), err::toString);
        assertTrue(out.toString().contains("partition-fp-suspend: schedulable"), out.toString());
        assertTrue(out.toString().contains("  policy       " + policy + " sha256 "), out.toString());
        assertEquals(0, run(set, "--policy-file", file("edf.yaml", PARTITIONS.formatted("edf", "20ms", "a")),
            "--format", "json"), err::toString);
        assertTrue(out.toString().contains("\"partition-edf-fp-suspend\""), out.toString());
        // 4 ms less than guard and two updates leave: nothing is served
        assertEquals(3, run(set, "--policy-file", file("short.yaml", PARTITIONS.formatted("fp", "3ms", "a"))));
    }

    /** As admission refuses them; ProvenAdmissionTest has the daemon's side. */
    @Test
    void shouldRefuseTasksOfOneClass() throws IOException {
        final String set = file("set.yaml", SET.formatted("200ms"));
        final String narrow = file("narrow.yaml", "policy: classes\nclass_width: 10\n");
        assertEquals(0, run(set, "--policy-file", narrow), err::toString);
        assertTrue(out.toString().contains("gcaps-window-suspend: schedulable"), out.toString());
        final String wide = file("wide.yaml", "policy: classes\nclass_width: 40\n");
        out.getBuffer().setLength(0);
        assertEquals(2, run(set, "--policy-file", wide));
        assertEquals("gpuseg analyze: --policy-file " + wide + ": tasks \"a\" (gpu_priority 70) and \"b\" "
            + "(gpu_priority 60) are in one class of GPU 0 and run together, for which nothing is proven; give them "
            + "priorities of different classes, or use policy fp\n", err.toString());
        assertEquals("", out.toString(), "no bound");
        final String slices = SET.formatted("200ms").replace("cpus: 2,", "cpus: 2, turns: {slice: 100us, contexts: 1, "
            + "together: true}, ");
        for (final String file : new String[] {wide, narrow}) {   // together by slices, or apart by calls
            out.getBuffer().setLength(0);
            assertEquals(0, run(file("slices.yaml", slices), "--policy-file", file), err::toString);
            final String by = (file.equals(wide) ? "turns" : "gcaps-window") + "-suspend: schedulable";
            assertTrue(out.toString().contains(by), out.toString());
        }
        final String two = SET.formatted("200ms").replace("cpus: 2,", "cpus: 2, gpus: 2,");
        for (final String apart : new String[] {two.replace("name: b,", "name: b, gpu: 1,"),
            two.replace("priority: 60,", "best_effort: true,")}) {
            assertEquals(0, run(file("apart.yaml", apart), "--policy-file", wide), err::toString);
        }
        // those that are assigned count: 99 and 98
        final String unranked = file("unranked.yaml", SET.formatted("200ms").replaceAll("priority: \\d+, ", ""));
        assertEquals(2, run(unranked, "--policy-file", narrow, "--assign", "rm"));
        assertEquals(0, run(unranked, "--policy-file", file("one.yaml", "policy: classes\n"), "--assign", "rm"));
    }

    @Test
    void shouldRefuseAPolicyThatNothingIsProvenForAndWrongNames() throws IOException {
        final String set = file("set.yaml", SET.formatted("200ms"));
        final String policy = file("policy.yaml", PARTITIONS.formatted("fp", "20ms", "a"));
        final String[][] wrong = {
            {set, "--policy-file", file("who.yaml", PARTITIONS.formatted("fp", "20ms", "nobody")), "nobody"},
            {set, "--policy-file", file("classes.yaml", PARTITIONS.formatted("classes", "20ms", "a")), "inside: fp or"},
            {set, "--policy-file", policy, "--analysis", "gcaps-suspend", "goes with neither"},
            {set, "--analysis", "partition-fp-suspend", "needs the table of windows"},
            {"--batch", file("sets.jsonl", LINE), "--policy-file", policy, "not with --batch; use --analysis"},
        };
        for (final String[] one : wrong) {
            err.getBuffer().setLength(0);
            final String expected = one[one.length - 1];
            assertEquals(2, run(java.util.Arrays.copyOf(one, one.length - 1)), err::toString);
            assertTrue(err.toString().contains(expected) && err.toString().lines().count() == 1, err.toString());
        }
    }
}
