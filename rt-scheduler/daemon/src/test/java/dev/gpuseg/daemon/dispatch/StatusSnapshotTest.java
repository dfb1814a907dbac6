/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.ipc.Abi;
import org.junit.jupiter.api.Test;

class StatusSnapshotTest {
    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final Doorbells doorbells = new Doorbells();
    private final StatusSnapshot snapshot = new StatusSnapshot(rig.scheduler, rig.desired, new ClientRegistry(
        new ClientRegistry.Parts(rig.scheduler, rig.desired, rig.processes, rig.tasks, rig.policy, rig.anticipation,
            rig.grants, rig.decisions, doorbells, rig.journal, rig.counters, rig.clock,
            new ShareAccounts(rig.scheduler, DispatchRig.CONTEXTS, rig.journal, rig.clock)), Runnable::run, true),
        rig.processes, rig.tasks, rig.turns);

    private ObjectNode take() {
        final ObjectNode root = snapshot.take(StatusView.ALL);
        doorbells.close();
        return root;
    }

    @Test
    void shouldShowAnEmptyMachine() {
        final ObjectNode root = take();
        assertEquals("fp", root.path("policy").asText());
        assertEquals(1, root.path("gpus").size());
        assertEquals(SegmentScheduler.NONE, root.path("gpus").get(0).path("running_task").asInt());
        assertFalse(root.has("clients"), root.toString());
        assertFalse(root.has("tasks"));
    }

    @Test
    void shouldShowWhatSegmentsDo() {
        final TaskEntry low = rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20, 100, OverrunAction.NOTIFY);
        rig.begin(low, 1, true);
        rig.begin(high, 1, true);
        final ObjectNode root = take();
        final JsonNode gpu = root.path("gpus").get(0);
        assertEquals(high.id, gpu.path("running_task").asInt());
        assertEquals(2, gpu.path("begun_segments").asInt());
        final JsonNode first = root.path("tasks").get(0);
        assertEquals("preempted", first.path("state").asText());
        assertEquals(1, first.path("preemptions").asInt());
        assertFalse(first.path("pregranted").asBoolean());
        assertEquals("running", root.path("tasks").get(1).path("state").asText());
        assertEquals("notify", root.path("tasks").get(1).path("overrun").asText());
    }

    @Test
    void shouldShowWhatAProgramSaysOfItsKernels() {
        rig.task(1, 0);
        final FakeSlot slot = (FakeSlot) rig.task(2, 0).slot;
        slot.kernelClass = Abi.KERNELS_LONG;
        slot.kernelNs = 1_800_000;
        slot.kernelPercent = 100;
        ((FakeSlot) rig.task(3, 0).slot).kernelClass = 77;
        final ObjectNode root = take();
        assertFalse(root.path("tasks").get(0).has("kernels"), "nothing is known of its kernels");
        final JsonNode kernels = root.path("tasks").get(1).path("kernels");
        assertEquals("long", kernels.path("class").asText());
        assertEquals(1_800_000, kernels.path("longest_ns").asLong());
        assertEquals(100, kernels.path("percent").asInt());
        assertEquals("unknown", root.path("tasks").get(2).path("kernels").path("class").asText());
    }

    @Test
    void shouldShowResponseTimesOnlyOfTasksWithJobs() {
        final TaskEntry idle = rig.task(1, 10);
        final TaskEntry busy = rig.task(2, 20);
        busy.account.released(100);
        busy.responded(busy.account.jobEnded(1_000, 20, 0));
        final ObjectNode root = take();
        assertFalse(root.path("tasks").get(0).has("response_ns"), idle.request.name());
        assertEquals(1_000, root.path("tasks").get(1).path("response_ns").path("max").asLong(), 10);
        assertEquals(1, root.path("tasks").get(1).path("jobs").asInt());
    }

    @Test
    void shouldShowOfAProcessWhatItsMechanismSays() {
        rig.processes.addUnmanaged(4711, 9, "stranger");
        JsonNode context = snapshot.take(StatusView.ALL).path("gpus").get(0).path("contexts").get(0);
        assertEquals(4711, context.path("pid").asInt());
        assertFalse(context.path("registered").asBoolean());
        assertTrue(context.path("wanted_on").asBoolean());
        assertFalse(context.has("units"), "it does not know");
        assertFalse(context.has("remark"));
        rig.enforcer.mechanism.units = 3;
        rig.enforcer.mechanism.remark = "stays enabled";
        rig.enforcer.incomplete = true;
        final JsonNode gpu = take().path("gpus").get(0);
        context = gpu.path("contexts").get(0);
        assertEquals(3, context.path("units").asInt());
        assertEquals("stays enabled", context.path("remark").asText());
        assertTrue(gpu.path("enforcement_incomplete").asBoolean());
    }

    @Test
    void shouldDescribeATaskAsItWasOpenedAndChanged() {
        final TaskEntry task = rig.task(1, 10);
        task.priority = 44;
        final ObjectNode described = StatusSnapshot.describe(task);
        doorbells.close();
        assertEquals("task1", described.path("name").asText());
        assertEquals(44, described.path("priority").asInt());
        assertEquals(10, described.path("gpu_priority").asInt());
        assertEquals(101, described.path("pid").asInt());
    }
}
