/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Path;

/** Shows a model events as a daemon would: through the ring and the journal's agent. Times are given in us. */
final class EventRig implements AutoCloseable {
    static final long US = 1_000;
    private final JournalRing ring;
    private final JournalAgent agent;

    EventRig(final Path directory, final LiveModel model) {
        ring = new JournalRing(directory.resolve("ring"), 1 << 20);
        agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20);
        agent.addTap(model);
    }

    void open(final long atUs, final int task, final String name, final int priority, final long deadlineUs) {
        ring.writeText(EventKind.TASK_OPEN, atUs * US, 0, task, 10 + task, 1, priority, deadlineUs * US,
            "{\"id\":" + task + ",\"name\":\"" + name + "\",\"pid\":77,\"priority\":" + priority + ",\"gpu_priority\":"
            + priority + ",\"deadline_ns\":" + deadlineUs * US + "}");
        agent.drain();
    }

    void event(final EventKind kind, final long atUs, final int task, final long arg0, final long arg1,
        final long arg2) {
        final boolean context = kind == EventKind.DISABLE || kind == EventKind.ENABLE;
        ring.write(kind, atUs * US, 0, 0, context ? 0 : task, 1, 10 + task, 1, arg0, arg1, arg2);
        agent.drain();
    }

    void text(final EventKind kind, final String text) {
        ring.writeText(kind, 1, 0, 0, 0, 1, 77, 0, text);
        agent.drain();
    }

    void begin(final long atUs, final int task) {
        event(EventKind.BEGIN, atUs, task, atUs * US, 0, (atUs + 1_000) * US);
    }

    void grant(final long atUs, final int task) {
        event(EventKind.GRANT, atUs, task, 0, 0, 0);
    }

    void end(final long atUs, final int task) {
        event(EventKind.END, atUs, task, atUs * US, 0, 0);
    }

    void preempt(final long atUs, final int task, final int by) {
        event(EventKind.PREEMPT, atUs, task, by, 0, 0);
    }

    void resume(final long atUs, final int task) {
        event(EventKind.RESUME, atUs, task, 0, 0, 0);
    }

    String failure() {
        return agent.tapFailure();
    }

    @Override
    public void close() {
        agent.close();
        ring.close();
    }
}
