/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.ipc.journal.EventKind;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class LiveModelTest {
    private static final long US = EventRig.US;

    @TempDir
    private Path directory;
    private final LiveModel model = new LiveModel();
    private EventRig rig;

    @BeforeEach
    void openRig() {
        rig = new EventRig(directory, model);
    }

    @AfterEach
    void closeRig() {
        assertEquals("", rig.failure(), "the tap was taken away");
        rig.close();
    }

    private JsonNode view(final long nowUs) {
        return model.view(-1, true, nowUs * US);
    }

    private JsonNode task(final String name, final long nowUs) {
        for (final JsonNode task : view(nowUs).path("tasks")) {
            if (name.equals(task.path("name").asText())) {
                return task;
            }
        }
        throw new AssertionError("no task " + name);
    }

    private List<String> spans(final long nowUs) {
        final List<String> all = new ArrayList<>();
        for (final JsonNode span : view(nowUs).path("spans").path("list")) {
            all.add(span.get(0).asInt() + ":" + span.get(1).asInt() + " " + span.get(2).asLong() / US + ".."
                + span.get(3).asLong() / US + " by " + span.get(4).asInt());
        }
        return all;
    }

    @Test
    void shouldFollowAPreemptionFromBeginToEnd() {
        rig.open(1, 1, "low", 10, 0);
        rig.open(2, 2, "high", 90, 0);
        rig.begin(100, 1);
        rig.grant(110, 1);
        rig.begin(300, 2);
        rig.preempt(310, 1, 2);
        assertEquals("preempted", task("low", 310).path("state").asText());
        assertEquals("high", task("low", 310).path("last_preempt_by").asText());
        rig.event(EventKind.DISABLE, 350, 1, 312 * US, 38 * US, 0);
        rig.grant(360, 2);
        rig.event(EventKind.ENFORCED, 360, 2, 0, 0, 0);
        assertEquals("running", task("high", 360).path("state").asText());
        rig.end(560, 2);
        rig.resume(565, 1);
        rig.event(EventKind.ENABLE, 570, 1, 566 * US, 4 * US, 0);
        rig.end(700, 1);

        final JsonNode low = task("low", 1_000);
        assertEquals(1, low.path("preemptions").asLong());
        assertEquals(200 * US + 135 * US, low.path("busy_ns").asLong(), "110..310 and 565..700");
        assertEquals(600 * US, low.path("segment_response_ns").path("max").asLong());
        assertEquals(10 * US, low.path("wait_ns").path("max").asLong());
        assertEquals(200 * US, task("high", 1_000).path("busy_ns").asLong());
        assertEquals(60 * US, view(1_000).path("gpus").get(0).path("enforcement_ns").path("max").asLong(),
            "from the begin to ENFORCED");
        assertEquals(List.of("1:1 100..110 by -1", "2:1 110..310 by -1", "1:2 300..360 by -1", "2:2 360..560 by -1",
            "3:1 310..565 by 2", "4:11 350..570 by -1", "2:1 565..700 by -1"), spans(1_000));
    }

    @Test
    void shouldCountAPreemptionThatComesAfterALaterGrantFromItsOwnTime() {
        rig.open(1, 1, "low", 10, 0);
        rig.open(2, 2, "high", 90, 0);
        rig.begin(100, 2);
        rig.grant(100, 2);
        rig.begin(150, 1);
        rig.end(200, 2);
        rig.resume(200, 1);
        rig.grant(290, 1);   // when the grant was written, later than the begin that was taken before
        rig.begin(260, 2);
        rig.preempt(260, 1, 2);
        assertEquals(60 * US, task("low", 260).path("busy_ns").asLong(), "as trace stats counts it");
    }

    @Test
    void shouldDivideTheGpuAmongBestEffortSegmentsThatShareIt() {
        rig.open(1, 1, "a", 0, 0);
        rig.open(1, 2, "b", 0, 0);
        rig.begin(100, 1);
        rig.grant(100, 1);
        rig.begin(200, 2);
        rig.grant(200, 2);
        assertEquals(100 * US + 50 * US, task("a", 300).path("busy_ns").asLong(), "alone, then half; still running");
        rig.end(400, 1);
        rig.end(500, 2);
        assertEquals(200 * US, task("a", 900).path("busy_ns").asLong());
        assertEquals(200 * US, task("b", 900).path("busy_ns").asLong());
        assertEquals(1.0, model.fairness(0, 900 * US));
    }

    @Test
    void shouldLogAMissWithWhatTheTaskWasDoingAndByHowMuchItWasLate() {
        rig.open(1, 1, "camera", 50, 1_000);
        rig.open(1, 2, "radar", 60, 0);
        rig.begin(10, 2);
        rig.grant(10, 2);
        rig.begin(100, 1);
        rig.event(EventKind.MISS, 1_100, 1, 1_100 * US, 0, 0);
        JsonNode miss = view(1_200).path("misses").get(0);
        assertEquals("waiting for radar", miss.path("doing").asText());
        assertEquals(-1, miss.path("late_ns").asLong(), "not over yet");
        rig.end(1_300, 2);
        rig.grant(1_300, 1);
        rig.end(1_450, 1);
        rig.event(EventKind.JOB_END, 1_500, 1, 1_500 * US, 1_400 * US, 0);
        miss = view(1_600).path("misses").get(0);
        assertEquals(350 * US, miss.path("late_ns").asLong());
        assertEquals(1, view(1_600).path("misses").size(), "the job's miss is the same one");
        assertEquals(1, task("camera", 1_600).path("job_misses").asLong());
        assertEquals(1, task("camera", 1_600).path("deadline_misses").asLong());
    }

    @Test
    void shouldCountASkippedJobBesideThoseThatEnded() {
        rig.open(1, 1, "camera", 50, 1_000);
        rig.event(EventKind.RELEASE, 10, 1, 10 * US, 0, 0);
        rig.event(EventKind.JOB_CANCEL, 20, 1, 20 * US, 0, 0);
        assertEquals(1, task("camera", 30).path("skipped").asLong());
        assertEquals(0, task("camera", 30).path("jobs").asLong());
        assertEquals(0, task("camera", 30).path("job_misses").asLong());
        assertEquals(0, task("camera", 30).path("job_response_ns").path("count").asLong());
    }

    @Test
    void shouldShowAChangedPriority() {
        rig.open(1, 1, "a", 10, 0);
        rig.event(EventKind.POLICY, 5, 1, 33, 44, 0);
        assertEquals(33, task("a", 10).path("priority").asInt());
        assertEquals(44, task("a", 10).path("gpu_priority").asInt());
        rig.text(EventKind.POLICY, "policy edf");
        assertEquals("edf", view(10).path("policy").asText());
    }

    @Test
    void shouldCountOnWhenAProcessOpensATaskAgainAndForgetItFiveMinutesAfterItsClose() {
        rig.open(1, 1, "a", 10, 0);
        rig.begin(10, 1);
        rig.grant(10, 1);
        rig.end(20, 1);
        rig.event(EventKind.TASK_CLOSE, 30, 1, 0, 0, 0);
        assertFalse(task("a", 40).path("open").asBoolean());
        rig.open(50, 3, "a", 11, 0);
        rig.begin(60, 3);
        rig.grant(60, 3);
        rig.end(70, 3);
        assertEquals(2, task("a", 80).path("segments").asLong());
        rig.event(EventKind.TASK_CLOSE, 90, 3, 0, 0, 0);
        model.tick(90 * US + LiveModel.CLOSED_KEPT_NS);
        assertEquals(1, view(100).path("tasks").size());
        model.tick(91 * US + LiveModel.CLOSED_KEPT_NS);
        assertEquals(0, view(100).path("tasks").size());
    }

    @Test
    void shouldTellApartNoMoreTasksThanItsBoundAndMakeRoomByForgettingTheOldestClosedOne() {
        for (int i = 1; i <= LiveModel.TASKS_MAX; i++) {
            rig.open(i, i, "task" + i, 1, 0);
        }
        rig.open(1_000, LiveModel.TASKS_MAX + 1, "one more", 1, 0);
        assertEquals(1, model.untracked());
        rig.begin(1_001, LiveModel.TASKS_MAX + 1);   // of an unknown task
        rig.event(EventKind.TASK_CLOSE, 1_002, 7, 0, 0, 0);
        rig.open(1_003, 7, "newcomer", 1, 0);
        assertEquals(1, model.untracked());
        assertEquals(LiveModel.TASKS_MAX, view(2_000).path("tasks").size());
        assertEquals("idle", task("newcomer", 2_000).path("state").asText());
        assertTrue(model.bytes() < 16 << 20, model.bytes() + " bytes");
    }

    private void comeAndGo(final int from, final int to) {
        for (int i = from; i < to; i++) {
            rig.open(i * 100L, 1, "passing" + i, 10, 0);
            rig.begin(i * 100L + 10, 1);
            rig.grant(i * 100L + 20, 1);
            rig.end(i * 100L + 2_000, 1);
            rig.event(EventKind.TASK_CLOSE, i * 100L + 2_100, 1, 0, 0, 0);
        }
    }

    /** What is made here lives for minutes, so a collection would copy it, and stop the dispatcher meanwhile. */
    @Test
    void shouldUseTheHistogramsOfForgottenTasksForOthers() {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long self = Thread.currentThread().getId();
        final int tasks = 2 * LiveModel.TASKS_MAX;
        comeAndGo(1, tasks);
        final long before = threads.getThreadAllocatedBytes(self);
        comeAndGo(tasks, 2 * tasks);
        final double kib = (threads.getThreadAllocatedBytes(self) - before) / 1024.0 / tasks;
        assertEquals(1, task("passing" + (2 * tasks - 1), 0).path("segment_response_ns").path("count").asInt());
        assertTrue(kib < 6, "KiB for each task: " + kib);
    }

    @Test
    void shouldGoOnAfterLostEvents() {
        rig.open(1, 1, "a", 10, 0);
        rig.begin(100, 1);
        rig.grant(100, 1);
        rig.begin(300, 1);   // its END was lost
        rig.grant(300, 1);
        rig.end(350, 1);
        assertEquals("idle", task("a", 400).path("state").asText());
        assertEquals(0, view(400).path("gpus").get(0).path("running").asInt());
        assertEquals(250 * US, task("a", 400).path("busy_ns").asLong());
    }

    @Test
    void shouldAnswerOnlyNewSpansToWhoHasTheOthers() {
        rig.open(1, 1, "a", 10, 0);
        rig.begin(100, 1);
        rig.grant(110, 1);
        rig.end(120, 1);
        final long next = view(200).path("spans").path("next").asLong();
        assertEquals(2, next);
        rig.begin(300, 1);
        rig.grant(310, 1);
        final JsonNode answer = model.view(next, false, 400 * US);
        assertEquals(1, answer.path("spans").path("list").size());
        assertEquals(0, answer.path("spans").path("skipped").asLong());
        assertTrue(model.view(-2, false, 400 * US).path("spans").isMissingNode(), "none were asked for");
    }
}
