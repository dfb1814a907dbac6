/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.make;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.sim.EventSink;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.tools.trace.RecordingWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.agrona.ExpandableArrayBuffer;

/** Writes what happens in a simulated run as the events of a daemon's journal. One thread. */
final class SimulatedJournal implements EventSink {
    /** The clock of a machine is not 0 when its daemon starts. */
    private static final long BOOT_NS = 1_000_000_000_000L;
    private static final int FIRST_PID = 1000;
    private static final ByteOrder LE = ByteOrder.LITTLE_ENDIAN;

    private final TaskSet set;
    private final RecordingWriter writer;
    private final ExpandableArrayBuffer buffer = new ExpandableArrayBuffer(1024);
    private final JournalEvent event = new JournalEvent();
    private long seq;
    private long bytes;
    private long lastNs;

    SimulatedJournal(final TaskSet set, final RecordingWriter writer) {
        this.set = set;
        this.writer = writer;
    }

    /** Bytes of all events so far. */
    long bytes() {
        return bytes;
    }

    /** What a daemon writes before anything happens: itself, and every task with its process. */
    void start() {
        final ObjectNode start = JsonNodeFactory.instance.objectNode().put("policy", "fp").put("policy_text", "fp")
            .put("mechanism", "sim").put("level", 2).put("level_name", "deactivate").put("simulated", true)
            .put("preemptive", true).put("gpus", Math.max(1, set.platform().gpus().size())).put("workload", set.id());
        write(EventKind.START, 0, 0, -1, 0, 0, 0, 0, start.toString());
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            write(EventKind.CLIENT_OPEN, 0, 0, i, 0, FIRST_PID + i, 0, 0, task.name());
            write(EventKind.CONTEXT_OPEN, 0, 0, i, 0, FIRST_PID + i, 0, 0, task.name());
            final ObjectNode attributes = JsonNodeFactory.instance.objectNode()
                .put("name", set.id() + "." + task.name()).put("priority", task.bestEffort() ? 0 : task.priority())
                .put("gpu_priority", task.bestEffort() ? 0 : task.gpuPriority()).put("period_ns", task.periodNs())
                .put("deadline_ns", task.deadlineNs()).put("pid", FIRST_PID + i).put("on_overrun", "demote");
            write(EventKind.TASK_OPEN, 0, 0, i, 0, 0, 0, 0, attributes.toString());
        }
    }

    /** The daemon stops. */
    void stop() {
        write(EventKind.STOP, lastNs, 0, -1, 0, 0, 0, 0, "");
    }

    private void write(final EventKind kind, final long nowNs, final int flags, final int task, final long ticket,
        final long arg0, final long arg1, final long arg2, final String text) {
        seq++;
        lastNs = nowNs;
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        buffer.setMemory(0, JournalEvent.BYTES, (byte) 0);
        buffer.putLong(Abi.Event.SEQ_OFFSET, seq, LE);
        buffer.putLong(Abi.Event.TIME_NS_OFFSET, BOOT_NS + nowNs, LE);
        buffer.putShort(Abi.Event.KIND_OFFSET, kind.code(), LE);
        buffer.putByte(Abi.Event.GPU_OFFSET, (byte) (task < 0 ? 0 : Math.max(0, set.tasks().get(task).gpu())));
        buffer.putByte(Abi.Event.FLAGS_OFFSET, (byte) flags);
        buffer.putInt(Abi.Event.TASK_ID_OFFSET, kind == EventKind.CLIENT_OPEN || kind == EventKind.CONTEXT_OPEN ? 0
            : task + 1, LE);
        buffer.putLong(Abi.Event.TICKET_OFFSET, ticket, LE);
        buffer.putInt(Abi.Event.CONTEXT_ID_OFFSET, task + 1, LE);
        buffer.putInt(Abi.Event.CLIENT_ID_OFFSET, task + 1, LE);
        buffer.putLong(Abi.Event.ARG0_OFFSET, arg0, LE);
        buffer.putLong(Abi.Event.ARG1_OFFSET, arg1, LE);
        buffer.putLong(Abi.Event.ARG2_OFFSET, arg2, LE);
        buffer.putBytes(JournalEvent.BYTES, utf8);
        event.decode(buffer, 0, JournalEvent.BYTES + utf8.length);
        bytes += Integer.BYTES + event.length();
        try {
            writer.add(event);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void write(final EventKind kind, final int task, final long ticket, final long nowNs, final long arg0,
        final long arg1) {
        write(kind, nowNs, 0, task, ticket, arg0, arg1, 0, "");
    }

    @Override
    public void onRelease(final int task, final long arrivalNs, final long sampleNs, final long nowNs) {
        write(EventKind.RELEASE, task, 0, nowNs, BOOT_NS + arrivalNs, sampleNs < 0 ? 0 : BOOT_NS + sampleNs);
    }

    @Override
    public void onBegin(final int task, final long ticket, final boolean optimistic, final long arrivalNs,
        final long deadlineNs, final long nowNs) {
        write(EventKind.BEGIN, nowNs, optimistic ? Abi.FLAG_OPTIMISTIC : 0, task, ticket, BOOT_NS + nowNs,
            BOOT_NS + arrivalNs, BOOT_NS + deadlineNs, "");
    }

    @Override
    public void onDecided(final int task, final long ticket, final long nowNs) {
        write(EventKind.DECIDED, task, ticket, nowNs, 0, 0);
    }

    @Override
    public void onGranted(final int task, final long ticket, final long nowNs) {
        write(EventKind.GRANT, task, ticket, nowNs, 0, 0);
    }

    @Override
    public void onPreempted(final int task, final long ticket, final int by, final long nowNs) {
        write(EventKind.PREEMPT, task, ticket, nowNs, by + 1, 0);
    }

    @Override
    public void onResumed(final int task, final long ticket, final long nowNs) {
        write(EventKind.RESUME, task, ticket, nowNs, 0, 0);
    }

    @Override
    public void onMissed(final int task, final long ticket, final long deadlineNs, final long nowNs) {
        write(EventKind.MISS, task, ticket, nowNs, BOOT_NS + deadlineNs, 0);
    }

    @Override
    public void onEnded(final int task, final long ticket, final long nowNs) {
        write(EventKind.END, task, ticket, nowNs, BOOT_NS + nowNs, 0);
    }

    @Override
    public void onJobEnded(final int task, final long responseNs, final long nowNs) {
        write(EventKind.JOB_END, task, 0, nowNs, BOOT_NS + nowNs, responseNs);
    }
}
