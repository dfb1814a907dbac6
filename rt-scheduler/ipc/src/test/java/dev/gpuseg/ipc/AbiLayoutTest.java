/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Java's view of the shared layout against the C header. Fails where there is no C compiler. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class AbiLayoutTest {
    private static final int KINDS = 6;
    private static final int SLOT = KINDS * Abi.Record.SIZE;
    private static final int EVENT = SLOT + Abi.Slot.SIZE;
    private static final int BYTES = EVENT + Abi.Event.SIZE;

    @TempDir
    private Path directory;

    private static Path header() {
        return NativeTool.root().resolve("segment-api/include/gpuseg_abi.h");
    }

    @Test
    void shouldBeWhatTheGeneratorPrintsFromTheHeader() throws IOException {
        final Path generator = NativeTool.compile(directory,
            NativeTool.root().resolve("segment-api/tools/gen_abi.c"));
        final String generated = NativeTool.run(10, generator.toString(), header().toString());
        final String checkedIn = Files.readString(NativeTool.root()
            .resolve("rt-scheduler/ipc/src/main/java/dev/gpuseg/ipc/Abi.java"), StandardCharsets.UTF_8);
        assertEquals(generated, checkedIn, "Abi.java is out of date; run segment-api/tools/gen_abi.c again");
    }

    @Test
    void shouldNoticeAConstantAndAStructureThatTheGeneratorForgot() throws IOException {
        final Path generator = NativeTool.compile(directory,
            NativeTool.root().resolve("segment-api/tools/gen_abi.c"));
        final Path changed = directory.resolve("changed.h");
        Files.writeString(changed, Files.readString(header()) + "#define GPUSEG_NEW 1\nstruct gpuseg_new {\n};\n");
        final AssertionError refused = assertThrows(AssertionError.class,
            () -> NativeTool.run(10, generator.toString(), changed.toString()));
        assertTrue(refused.getMessage().contains("constant GPUSEG_NEW"), refused::getMessage);
        assertTrue(refused.getMessage().contains("struct gpuseg_new"), refused::getMessage);
    }

    @Test
    void shouldReadExtremeValuesThatCWrote() throws IOException {
        final Path file = directory.resolve("from-c");
        NativeTool.run(10, roundTrip().toString(), "write", file.toString());
        final UnsafeBuffer found = new UnsafeBuffer(Files.readAllBytes(file));
        assertEquals(BYTES, found.capacity());
        for (int kind = 1; kind <= KINDS; kind++) {
            final RecordView view = new RecordView();
            view.copy().putBytes(0, found, (kind - 1) * Abi.Record.SIZE, Abi.Record.SIZE);
            assertEquals(kind, view.kind());
            assertEquals(Abi.FLAGS_KNOWN, view.flags());
            assertEquals(-kind, view.taskId());
            assertEquals(-(long) kind, view.seq());
            assertEquals(Long.MIN_VALUE + kind, view.ticket());
            assertEquals(Long.MIN_VALUE + kind, view.timeNs());
            assertEquals(Long.MAX_VALUE - kind, view.releaseNs());
            assertEquals(-kind, view.argNs());
            assertEquals(-1 - kind, view.tid());
            assertEquals(-1 - (long) kind, view.sample());
        }
        assertEquals(new UnsafeBuffer(javaContent()), found);
    }

    @Test
    void shouldWriteExtremeValuesThatCReads() throws IOException {
        final Path file = directory.resolve("from-java");
        Files.write(file, javaContent());
        NativeTool.run(10, roundTrip().toString(), "check", file.toString());
    }

    private Path roundTrip() {
        return NativeTool.compile(directory,
            NativeTool.root().resolve("rt-scheduler/ipc/src/test/c/abi_round_trip.c"));
    }

    private static byte[] javaContent() {
        final byte[] bytes = new byte[BYTES];
        final UnsafeBuffer out = new UnsafeBuffer(bytes);
        for (int kind = 1; kind <= KINDS; kind++) {
            out.putBytes((kind - 1) * Abi.Record.SIZE, QueueRig.record(kind, Abi.FLAGS_KNOWN, -kind, -kind,
                Long.MIN_VALUE + kind, Long.MIN_VALUE + kind, Long.MAX_VALUE - kind, -kind));
            out.putInt((kind - 1) * Abi.Record.SIZE + Abi.Record.TID_OFFSET, -1 - kind);
            out.putLong((kind - 1) * Abi.Record.SIZE + Abi.Record.SAMPLE_OFFSET, -1 - (long) kind);
        }
        out.putLong(SLOT + Abi.Slot.GRANT_OFFSET, -1);
        out.putInt(SLOT + Abi.Slot.PREGRANT_OFFSET, 1);
        out.putInt(SLOT + Abi.Slot.STATE_OFFSET, Abi.SEGMENT_PREEMPTED);
        out.putInt(SLOT + Abi.Slot.TASK_ID_OFFSET, -1);
        out.putInt(SLOT + Abi.Slot.GPU_OFFSET, Abi.GPUS_MAX);
        out.putLong(SLOT + Abi.Slot.PREEMPTIONS_OFFSET, -2);
        out.putLong(SLOT + Abi.Slot.OVERRUNS_OFFSET, -3);
        out.putLong(SLOT + Abi.Slot.MISSES_OFFSET, -4);
        out.putInt(SLOT + Abi.Slot.WAITING_OFFSET, -2);
        out.putLong(SLOT + Abi.Slot.TICKET_OFFSET, -5);
        out.putLong(EVENT + Abi.Event.SEQ_OFFSET, -1);
        out.putLong(EVENT + Abi.Event.TIME_NS_OFFSET, Long.MAX_VALUE);
        out.putShort(EVENT + Abi.Event.KIND_OFFSET, (short) -1);
        out.putByte(EVENT + Abi.Event.GPU_OFFSET, (byte) -1);
        out.putByte(EVENT + Abi.Event.FLAGS_OFFSET, (byte) -2);
        out.putInt(EVENT + Abi.Event.TASK_ID_OFFSET, -1);
        out.putLong(EVENT + Abi.Event.TICKET_OFFSET, -2);
        out.putInt(EVENT + Abi.Event.CONTEXT_ID_OFFSET, -2);
        out.putInt(EVENT + Abi.Event.CLIENT_ID_OFFSET, -3);
        out.putLong(EVENT + Abi.Event.ARG0_OFFSET, Long.MIN_VALUE);
        out.putLong(EVENT + Abi.Event.ARG1_OFFSET, Long.MAX_VALUE);
        out.putLong(EVENT + Abi.Event.ARG2_OFFSET, -1);
        return bytes;
    }
}
