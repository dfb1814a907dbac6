/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.top;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jline.utils.AttributedString;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The terminal view: its table, and the whole of it in a real terminal (tmux) with a real daemon. */
@Timeout(180)
@Tag("beside")
class TopCommandTest {
    private static final Path TMUX = Path.of("/usr/bin/tmux");
    /** How a terminal is told to write red. */
    private static final String RED = "[31;1m";

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private static JsonNode view() throws IOException {
        final String gpu = "{'gpu':0,'holder':2,'running':1,'busy_share':0.5,'enforcement_ns':{'count':0}}";
        final String tasks = task(1, "camera", 70, 4, 0.1) + "," + task(2, "lidar", 0, 40, 0.6) + ","
            + task(3, "radar", 50, 12, 0.2).replace("'open':true", "'open':false") + ","
            + task(4, "a-task-with-a-name-that-is-much-too-long-for-any-table-in-the-world", 10, 2, 0);
        return new ObjectMapper().readTree(("{'now_ns':10000000000,'policy':'fp','daemon':{'mechanism':'sim',"
            + "'level_name':'interrupt','simulated':true},'counters':{},'gpus':[" + gpu + "],'tasks':[" + tasks + "]}")
            .replace('\'', '"'));
    }

    private static String task(final int id, final String name, final int priority, final int ms, final double share) {
        return "{'key':" + id + ",'id':" + id + ",'open':true,'name':'" + name + "','pid':77,'priority':" + priority
            + ",'state':'preempted','gpu_share':" + share + ",'deadline_ns':10000000,'job_misses':" + ms / 10
            + ",'preemptions':3,'last_preempt_by':'camera','last_preempt_ns':8500000000,"
            + "'job_response_ns':{'count':5,'p50':" + ms + "000000,'p99':" + ms + "000000,'max':" + ms + "000000}}";
    }

    private static List<String> names(final List<TopRow> rows) {
        return rows.stream().map(row -> row.name().substring(0, 5)).collect(Collectors.toList());
    }

    @Test
    void shouldOrderAndFilterOpenTasks() throws IOException {
        assertEquals(List.of("camer", "a-tas", "lidar"), names(TopRow.of(view(), "", TopRow.Sort.PRIORITY, false)));
        assertEquals(List.of("lidar", "a-tas", "camer"), names(TopRow.of(view(), "", TopRow.Sort.PRIORITY, true)));
        assertEquals(List.of("lidar", "camer", "a-tas"), names(TopRow.of(view(), "", TopRow.Sort.P99, false)));
        assertEquals(List.of("lidar"), names(TopRow.of(view(), "LiD", TopRow.Sort.PRIORITY, false)));
        assertEquals(List.of(), names(TopRow.of(view(), "radar", TopRow.Sort.PRIORITY, false)), "closed");
    }

    @Test
    void shouldFillEveryWidthExactlyWithoutRunningOver() throws IOException {
        for (int width = 40; width < 260; width += 7) {
            final TopScreen screen = new TopScreen(width);
            final List<AttributedString> lines = new ArrayList<>(screen.header(view()));
            lines.add(screen.heading(TopRow.Sort.RATE, false));
            for (final TopRow row : TopRow.of(view(), "", TopRow.Sort.NAME, false)) {
                lines.add(screen.row(row, false));
                lines.add(screen.row(row, true));
                assertTrue(width < 120 || screen.row(row, false).columnLength() == width, "the table fills " + width);
            }
            for (final AttributedString line : lines) {
                assertTrue(line.columnLength() <= width, line + " in " + width);
            }
            assertTrue(width < 80 || screen.header(view()).get(0).toString().contains("SIMULATED"), "labelled");
        }
        final String row = new TopScreen(160).row(TopRow.of(view(), "lidar", TopRow.Sort.NAME, false).get(0), false)
            .toString();
        assertTrue(row.matches("lidar +77 +0 +BE preempted +0\\.0 +40\\.00 +40\\.00 +40\\.00 +- +4 +60\\.0 +3"
            + " +camera 1\\.5s ago *"), row);
    }

    @Test
    void shouldCutNoNumberAtEightyColumns() throws IOException {
        final JsonNode view = view();
        ((ObjectNode) view.path("daemon")).put("pid", 2_741_234).put("uptime_ns", 777_000_000_000L)
            .put("held_contexts", 3);
        ((ObjectNode) view.path("counters")).put("begins", 123_456_789).put("preemptions", 98_765_432)
            .put("job_misses", 1234).put("bounds_broken", 567).put("constants_broken", 89)
            .put("max_cycle_ns", 12_345_678);
        ((ObjectNode) view.path("gpus").path(0)).putObject("enforcement_ns").put("count", 9).put("p50", 300_000)
            .put("p99", 1_234_567).put("max", 7_654_321);
        final String header = new TopScreen(80).header(view).stream().map(AttributedString::toString)
            .collect(Collectors.joining("\n"));
        for (final String whole : List.of("pid 2741234", "up 12m57s", "running 1 waiting  preempted ",
            "begins 123456789", "misses 1234", "above bound 567", "above constant 89", "held contexts 3",
            "cycle max 12.35 ms",
            "enforce p50/p99/max 0.300/1.23/7.65 ms")) {
            assertTrue(header.contains(whole), whole + " in\n" + header);
        }
        assertTrue(header.lines().allMatch(line -> line.length() <= 80), header);
        final String told = new TopScreen(80).bars("no daemon at " + "/a/long/path".repeat(5) + ": start one with "
            + "`gpuseg run`, or name its directory with --dir", true).stream().map(AttributedString::toString)
            .collect(Collectors.joining("\n"));
        assertTrue(told.contains("/a/long/path".repeat(5)) && told.contains("name its directory with --dir"), told);
        assertTrue(told.lines().allMatch(line -> line.length() == 80), told);
    }

    @Test
    void shouldShowNothingOfBestEffortInRed() throws IOException {
        final TopScreen screen = new TopScreen(160);
        final JsonNode slow = view();
        for (final JsonNode task : slow.path("tasks")) {
            ((ObjectNode) task).put("job_misses", 0);
            ((ObjectNode) task.path("job_response_ns")).put("p99", 16_000_000_000L).put("max", 16_000_000_000L);
        }
        assertFalse(screen.row(TopRow.of(slow, "lidar", TopRow.Sort.NAME, false).get(0), false).toAnsi().contains(RED));
        assertTrue(screen.row(TopRow.of(slow, "camera", TopRow.Sort.NAME, false).get(0), false).toAnsi().contains(RED));
    }

    @Test
    void shouldPrintOnceForScriptsAndSayNoWhenNoDaemonRuns() throws InterruptedException {
        final StringOutput nobody = StringOutput.of("top", "--once", "--dir", rig.directory().root().toString());
        assertEquals(ExitCode.NO, nobody.status());
        rig.gpu();
        rig.daemon();
        rig.task("camera", 70, "40ms", "gpu:1ms+6ms", "60s");
        SystemRig.await("camera", 20_000, () -> !"gone".equals(rig.state("camera")));
        final StringOutput once = StringOutput.of("top", "--once", "--dir", rig.directory().root().toString());
        assertEquals(ExitCode.OK, once.status());
        assertTrue(once.out().contains("SIMULATED GPU") && once.out().lines().anyMatch(l -> l.startsWith("camera ")),
            once.out());
        assertFalse(once.out().contains("\u001b"), "plain text");
    }

    // ---- in a terminal --------------------------------------------------------------------------------------------

    private String tmux(final String... arguments) {
        final List<String> command = new ArrayList<>(List.of(TMUX.toString(), "-S",
            rig.file("tmux.sock").toString()));
        command.addAll(Arrays.asList(arguments));
        try {
            final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
            builder.environment().put("LC_ALL", "C.UTF-8");   // the arrow needs it, and CI may have no locale at all
            final Process process = builder.start();
            final String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertTrue(process.waitFor(20, TimeUnit.SECONDS), "tmux does not end");
            return said;
        } catch (final IOException e) {
            throw new IllegalStateException(e);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private String screen() {
        return tmux("capture-pane", "-p", "-t", "top");
    }

    private void awaitScreen(final String what) throws InterruptedException {
        try {
            SystemRig.await(what, 30_000, () -> screen().contains(what));
        } catch (final AssertionError e) {
            throw new AssertionError(e.getMessage() + "; the screen shows:\n" + screen(), e);
        }
    }

    private int priority(final String task) {
        for (final JsonNode node : rig.status().path("tasks")) {
            if (task.equals(node.path("name").asText())) {
                return node.path("priority").asInt();
            }
        }
        return -1;
    }

    @Test
    void shouldSortFilterChangeAPriorityFollowTheWindowAndLeaveTheTerminalAsItWas() throws IOException,
        InterruptedException {
        assumeTrue(Files.isExecutable(TMUX), "no tmux: /usr/bin/tmux missing (Debian package tmux)");
        rig.gpu();
        rig.daemon();
        rig.task("camera", 70, "40ms", "gpu:1ms+6ms", "120s");
        rig.task("planner", 50, "60ms", "gpu:1ms+10ms", "120s");
        final String command = JavaCommand.of(Gpuseg.class, List.of("top", "--dir",
            rig.directory().root().toString())).stream()
            .map(word -> "'" + word + "'").collect(Collectors.joining(" "));
        final Path script = rig.file("top.sh");
        Files.writeString(script, "echo before; " + command + "; echo left with $?; sleep 60\n");
        try {
            tmux("new-session", "-d", "-s", "top", "-x", "150", "-y", "20", "sh " + script);
            awaitScreen("planner");
            awaitScreen("camera");
            assertTrue(screen().contains("SIMULATED GPU") && screen().contains("PRIO\u25bd"), screen());
            tmux("send-keys", "-t", "top", "s");
            awaitScreen("TASK\u25bd");
            tmux("send-keys", "-t", "top", "/");
            tmux("send-keys", "-t", "top", "-l", "plan");
            tmux("send-keys", "-t", "top", "Enter");
            SystemRig.await("only planner", 20_000, () -> !screen().contains("\ncamera"));
            tmux("send-keys", "-t", "top", "p");
            awaitScreen("priority of \"planner\"");
            tmux("send-keys", "-t", "top", "-l", "88");
            tmux("send-keys", "-t", "top", "Enter");
            SystemRig.await("priority 88", 20_000, () -> priority("planner") == 88);
            tmux("send-keys", "-t", "top", "+");
            SystemRig.await("priority 89", 20_000, () -> priority("planner") == 89);
            assertEquals(70, priority("camera"), "of no other task");
            tmux("send-keys", "-t", "top", "p");
            awaitScreen("priority of \"planner\"");
            tmux("send-keys", "-t", "top", "Enter");
            awaitScreen("use 1..99");
            tmux("send-keys", "-t", "top", "Escape");
            awaitScreen("\ncamera");
            tmux("resize-window", "-t", "top", "-x", "90", "-y", "12");
            SystemRig.await("a narrow table", 20_000, () -> !screen().contains("PID") && screen().contains("\ncamera")
                && screen().lines().count() == 12);
            tmux("send-keys", "-t", "top", "q");
            awaitScreen("left with 0");
            assertTrue(screen().contains("before"), "the old screen is back: " + screen());
        } finally {
            tmux("kill-server");
        }
    }

    /** The column in which the pid of a task ends, -1 = the task has no row. */
    private static int pidColumn(final String screen, final String name) {
        final Matcher row = Pattern.compile("(?m)^" + Pattern.quote(name) + " +[0-9]+ ").matcher(screen);
        return row.find() ? new AttributedString(row.group()).columnLength() : -1;
    }

    @Test
    void shouldShowNamesOfStrangersAsTextWhateverATerminalWouldMakeOfThem() throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(TMUX), "no tmux: /usr/bin/tmux missing (Debian package tmux)");
        rig.gpu();
        rig.daemon();
        final List<String> obeyed = List.of("\u001b]2;owned\u0007", "\u001b[2J", "\u001bP0;1|17/owned\u001b\\",
            "\u202eowned");
        final List<String> text = List.of("\u8a08\u753b", "e\u0301\u0301\u0301\u0327zalgo", "\u05e9\u05dc\u05d5\u05dd",
            "\\e]2;owned\\a", "#{pane_title}#[fg=red]", "$(reboot)`id`");
        final List<String> actions = new ArrayList<>();
        obeyed.forEach(name -> actions.add(TaskClient.open(name, 30, 100, 100, 0)));
        text.forEach(name -> actions.add(TaskClient.open(name, 30, 100, 100, 0)));
        actions.add("pause");
        rig.start("stranger", TaskClient.command(rig, actions.toArray(new String[0])));
        SystemRig.await("some tasks are open", 20_000, () -> rig.status().path("tasks").size() == text.size());
        assertEquals(obeyed.size(), rig.counter("conductor_tasks_refused"));
        final String dir = rig.directory().root().toString();
        final String gpuseg = JavaCommand.of(Gpuseg.class, List.of()).stream().map(word -> "'" + word + "'")
            .collect(Collectors.joining(" "));
        final Path script = rig.file("top.sh");
        Files.writeString(script, "read go; " + gpuseg + " status --dir '" + dir + "'; echo status $?; read go; "
            + gpuseg + " top --dir '" + dir + "'; sleep 60\n");
        try {
            tmux("new-session", "-d", "-s", "top", "-x", "150", "-y", "50", "sh " + script);
            final String title = tmux("display-message", "-p", "-t", "top", "#{pane_title}");
            tmux("send-keys", "-t", "top", "Enter");
            awaitScreen("status 0");
            for (final String name : text) {
                assertTrue(screen().contains(name), name + " in " + screen());
            }
            tmux("send-keys", "-t", "top", "Enter");
            awaitScreen("SIMULATED GPU");
            awaitScreen("\n" + text.get(0));
            final String shown = screen();
            for (final String name : text) {
                assertTrue(pidColumn(shown, name) > 0, name + " in " + shown);
                assertEquals(pidColumn(shown, text.get(3)), pidColumn(shown, name), shown);
            }
            assertTrue(shown.codePoints().allMatch(c -> c == '\n' || PlainText.isPlain(c)), shown);
            assertEquals(title, tmux("display-message", "-p", "-t", "top", "#{pane_title}"));
        } finally {
            tmux("kill-server");
        }
    }
}
