/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class TaskTableTest {
    private final TaskTable tasks = new TaskTable(2);

    private static TaskEntry task(final int id, final int contextId) {
        return new TaskEntry(id, null, new FakeSlot(), contextId, DispatchRig.request(1, "task" + id, 10));
    }

    @Test
    void shouldFindNothingUnderAForeignNumber() {
        tasks.add(task(1, 5));
        assertNull(tasks.find(0));
        assertNull(tasks.find(-7));
        assertNull(tasks.find(2));
        assertNull(tasks.find(1 << 30));
        assertNull(tasks.ofContext(6));
    }

    @Test
    void shouldGiveOutTheLowestFreeIdUntilAllAreTaken() {
        assertEquals(1, tasks.freeId());
        final TaskEntry first = task(1, 5);
        tasks.add(first);
        tasks.add(task(2, 5));
        assertEquals(TaskTable.NONE, tasks.freeId());
        assertEquals(2, tasks.capacity());
        tasks.remove(first);
        assertEquals(1, tasks.freeId());
    }

    @Test
    void shouldFindByIdAndByContext() {
        final TaskEntry second = task(2, 5);
        tasks.add(second);
        assertSame(second, tasks.get(2));
        assertSame(second, tasks.find(2));
        assertSame(second, tasks.ofContext(5));
        final List<Integer> seen = new ArrayList<>();
        tasks.forEach(t -> seen.add(t.id));
        assertEquals(List.of(2), seen);
    }
}
