/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Recordings;
import dev.gpuseg.tools.trace.Source;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A periodic task against best-effort work, on the virtual GPU: nobody calls gpuseg_hint. */
@Timeout(300)
@Tag("long")
class AnticipationSystemTest {
    private static final int JOBS = 100;
    private static final int PERIOD_MS = 25;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** What a journal says about one run. */
    private static final class Seen {
        private int begins;
        private int acted;
        private int kept;
        /** Begins before which the other context was off already, and needed no call. */
        private int free;
        private int off;
        private int camera;
    }

    private Seen run(final String... options) throws Exception {
        rig.realTime(options);
        rig.task("busy", 0, "1s", "gpu:0ms+900ms", "60s");
        SystemRig.await("busy works", 30_000, () -> "running".equals(rig.state("busy")));
        final Child camera = rig.task("camera", 50, PERIOD_MS + "ms", "gpu:0ms+1ms", JOBS * PERIOD_MS + "ms");
        assertEquals(JOBS, SystemRig.summary(camera, 60).path("jobs").asLong());
        SystemRig.await("every context is enabled", 20_000, () -> rig.held() == 0);
        final long anticipated = rig.counter("anticipated");
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", rig.directory().root().toString()).status());
        final Seen seen = new Seen();
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.ANTICIPATE) {
                seen.acted += event.flags() == Abi.ANTICIPATION_ACTED ? 1 : 0;
                seen.kept += event.flags() == Abi.ANTICIPATION_RESERVED ? 1 : 0;
            } else if (event.kind() == EventKind.DISABLE) {
                seen.off++;
            } else if (event.kind() == EventKind.ENABLE) {
                seen.off--;
            } else if (event.kind() == EventKind.TASK_OPEN && event.text().contains("\"camera\"")) {
                seen.camera = event.taskId();
            } else if (event.kind() == EventKind.BEGIN && event.taskId() == seen.camera) {
                seen.begins++;
                seen.free += seen.off > 0 ? 1 : 0;
            }
        });
        assertEquals(anticipated, seen.acted, "as counted");
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());
        return seen;
    }

    @Test
    void shouldHaveBestEffortWorkDisabledByTheBeginsOfAPeriodicTask() throws Exception {
        final Seen seen = run();
        assertEquals(JOBS, seen.begins);
        assertTrue(seen.acted > 0 && seen.kept > 0, seen.acted + " begins anticipated");
        assertTrue(seen.free > 0, "no begin found the other context disabled");
    }

    @Test
    void shouldActOnNoBeginWhereAnticipationIsOff() throws Exception {
        final Seen seen = run("--anticipate", "off");
        assertEquals(JOBS, seen.begins);
        assertEquals(0, seen.acted);
        assertEquals(0, seen.kept);
    }

    private static List<String> jobs() {
        final List<String> actions = new ArrayList<>(List.of(TaskClient.open("first", 60, 0, 0, 0),
            TaskClient.open("chained", 50, 0, 0, 0), TaskClient.open("cyclic", 40, 0, 0, 0)));
        final Random random = new Random(1);
        for (int i = 0; i < JOBS / 2; i++) {
            // the pause after both has no pattern; the one between them is long enough for a busy machine's delays
            actions.addAll(List.of("segments:first:1:1000", "sleep:8", "segments:chained:1:1000",
                "sleep:" + (5 + random.nextInt(30))));
        }
        for (int i = 0; i < JOBS / 4; i++) {
            actions.addAll(List.of("segments:cyclic:1:1000", "sleep:10", "segments:cyclic:1:1000", "sleep:30"));
        }
        return actions;
    }

    private static int actedFor(final List<JournalEvent> events, final String name) {
        int task = -1;
        int acted = 0;
        for (final JournalEvent event : events) {
            if (event.kind() == EventKind.TASK_OPEN && event.text().contains("\"" + name + "\"")) {
                task = event.taskId();
            }
            acted += event.taskId() == task && isActed(event) ? 1 : 0;
        }
        return acted;
    }

    private static boolean isActed(final JournalEvent event) {
        return event.kind() == EventKind.ANTICIPATE && event.flags() == Abi.ANTICIPATION_ACTED;
    }

    /** A task that follows another one, and one that begins at two distances in turn; neither has a period. */
    @Test
    void shouldReplayBeginsThatFollowFromChainsAndCycles() throws Exception {
        rig.with("anticipation-budget: 50").realTime("--anticipate", "learned");
        rig.task("busy", 0, "1s", "gpu:0ms+900ms", "60s");
        SystemRig.await("busy works", 30_000, () -> "running".equals(rig.state("busy")));
        Attempts.of(3, () -> {
            final Child client = rig.start("client", TaskClient.command(rig, jobs().toArray(new String[0])));
            assertEquals(0, client.awaitExit(60), client::said);
            final List<JournalEvent> events = Recordings.events(rig.directory().journal());
            final int chained = actedFor(events, "chained");
            final int cyclic = actedFor(events, "cyclic");
            return chained > 0 && cyclic > 0 ? null : "anticipated " + chained + " begins of a chain and " + cyclic
                + " of a cycle";
        });
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", rig.directory().root().toString()).status());
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());

        final List<JournalEvent> events = Recordings.events(rig.directory().journal());
        int at = events.size() - 1;
        while (!isActed(events.get(at))) {
            at--;
        }
        final JournalEvent acted = events.get(at);
        events.set(at, Recordings.with(acted, Abi.Event.ARG0_OFFSET, acted.arg0() + 1));
        final DecisionReplay.Result changed =
            DecisionReplay.of(Source.open(Recordings.write(events, rig.file("changed"))));
        assertEquals(1, changed.differences().size(), changed.toString());
        assertTrue(changed.differences().get(0).startsWith("event " + acted.seq() + ": "), changed.toString());
    }

    @Test
    void shouldTakeTheSettingsWhileRunning() throws Exception {
        rig.with("anticipation-budget: 20").realTime("--anticipate", "learned");
        final String where = rig.directory().root().toString();
        assertTrue(StringOutput.of("policy", "--dir", where).text().contains("anticipate learned, budget 20 % of"));
        final Path file = Files.writeString(rig.file("ahead.yaml"), "anticipate: off\nanticipation_budget: 7\n");
        final StringOutput changed = StringOutput.of("policy", "--dir", where, file.toString());
        assertTrue(changed.text().contains("anticipate off, budget 7 % of best-effort time"), changed.text());
        Files.writeString(file, "anticipate: always\n");
        final StringOutput wrong = StringOutput.of("policy", "--dir", where, file.toString());
        assertEquals(ExitCode.USAGE, wrong.status(), wrong.text());
        assertTrue(wrong.text().contains("off, declared or learned"), wrong.text());
    }
}
