/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is read of the driver's files, on files that look like them. */
class AmdSysfsTest {
    private static final int PID = 4711;
    private static final int GPU = 51_966;

    @TempDir
    private Path root;

    private void queue(final String context, final int id, final int gpuId, final int type) throws IOException {
        final Path at = root.resolve("sys/class/kfd/kfd/proc/" + PID + context + "/queues/" + id);
        Files.createDirectories(at);
        Files.writeString(at.resolve("gpuid"), gpuId + "\n");
        Files.writeString(at.resolve("type"), type + "\n");
    }

    @Test
    void shouldListQueuesOfAllContextsOfAProcess() throws IOException {
        queue("", 1, GPU, 1);
        queue("", 0, GPU, 0);
        queue("/context_10", 2, GPU + 1, 0);
        queue("/context_9", 0, GPU, 0);
        Files.createDirectories(root.resolve("sys/class/kfd/kfd/proc/" + PID + "/stats_51966"));
        assertEquals(List.of(new AmdSysfs.Queue(0, GPU, true), new AmdSysfs.Queue(1, GPU, false),
            new AmdSysfs.Queue(0, GPU, true), new AmdSysfs.Queue(2, GPU + 1, true)), new AmdSysfs(root).queues(PID));
    }

    @Test
    void shouldListNoQueueOfAProcessThatHasEnded() {
        assertEquals(List.of(), new AmdSysfs(root).queues(PID));
    }

    @Test
    void shouldLeaveOutAQueueThatWasDestroyedMeanwhile() throws IOException {
        queue("", 0, 0, 0);
        queue("/context_1", 1, GPU, 0);
        assertEquals(List.of(new AmdSysfs.Queue(1, GPU, true)), new AmdSysfs(root).queues(PID));
    }
}
