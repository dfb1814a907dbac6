/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RecordValidatorTest {
    private static final long NOW_NS = 1_000_000_000_000L;
    private static final int TASK = 7;

    private final RecordValidator validator = new RecordValidator();
    private final RecordView view = new RecordView();

    @BeforeEach
    void openOneTask() {
        validator.openTask(TASK);
    }

    private int check(final int kind, final int flags, final int taskId, final long seq, final long ticket,
        final long timeNs, final long releaseNs, final long argNs) {
        view.copy().putBytes(0, QueueRig.record(kind, flags, taskId, seq, ticket, timeNs, releaseNs, argNs));
        return validator.check(view, NOW_NS);
    }

    private int begin(final long seq, final long ticket) {
        return check(Abi.RECORD_BEGIN, 0, TASK, seq, ticket, NOW_NS, 0, 0);
    }

    private int end(final long seq, final long ticket) {
        return check(Abi.RECORD_END, 0, TASK, seq, ticket, NOW_NS, 0, 0);
    }

    @Test
    void shouldRefuseUnknownKindsAndTheDaemonsOwn() {
        for (final int kind : new int[] {0, Abi.RECORD_ROLL, 7, 0xffff}) {
            assertEquals(Abi.POISON_KIND, check(kind, 0, TASK, 1, 0, NOW_NS, 1, 0));
        }
    }

    @Test
    void shouldRefuseFlagsThatMakeNoSense() {
        assertEquals(Abi.POISON_KIND, check(Abi.RECORD_BEGIN, Abi.FLAG_CANCELLED, TASK, 1, 1, NOW_NS, 0, 0));
        assertEquals(Abi.POISON_KIND, check(Abi.RECORD_END, 8, TASK, 1, 1, NOW_NS, 0, 0));
        assertEquals(Abi.POISON_KIND, check(Abi.RECORD_HINT, 1, TASK, 1, 0, NOW_NS, 0, 0));
    }

    @Test
    void shouldRefuseReservedFieldsThatAreNotZero() {
        view.copy().putBytes(0, QueueRig.record(Abi.RECORD_BEGIN, 0, TASK, 1, 1, NOW_NS, 0, 0));
        view.copy().putByte(Abi.Record.RESERVED0_OFFSET + 3, (byte) 1);
        assertEquals(Abi.POISON_KIND, validator.check(view, NOW_NS));
    }

    private static int checkFirst(final RecordView view) {
        final RecordValidator fresh = new RecordValidator();
        fresh.openTask(TASK);
        return fresh.check(view, NOW_NS);
    }

    @Test
    void shouldTakeTheIdentityOfASampleFromReleasesAlone() {
        for (int kind = Abi.RECORD_BEGIN; kind <= Abi.RECORD_JOB_END; kind++) {
            view.copy().putBytes(0, QueueRig.record(kind, 0, TASK, 1, kind == Abi.RECORD_BEGIN ? 1 : 0, NOW_NS, 1, 0));
            view.copy().putLong(Abi.Record.SAMPLE_OFFSET, -1);
            assertEquals(kind == Abi.RECORD_RELEASE ? RecordValidator.VALID : Abi.POISON_KIND,
                checkFirst(view), "kind " + kind);
            assertEquals(-1, view.sample());
        }
    }

    @Test
    void shouldTakeTheCancellationOfAJobAndNoOtherFlagOfItsEnd() {
        for (int kind = Abi.RECORD_RELEASE; kind <= Abi.RECORD_JOB_END; kind++) {
            for (int flags = 1; flags <= Abi.FLAGS_KNOWN + 1; flags++) {
                view.copy().putBytes(0, QueueRig.record(kind, flags, TASK, 1, 0, NOW_NS, 1, 0));
                assertEquals(kind == Abi.RECORD_JOB_END && flags == Abi.FLAG_CANCELLED ? RecordValidator.VALID
                    : Abi.POISON_KIND, checkFirst(view), "kind " + kind + ", flags " + flags);
            }
        }
    }

    @Test
    void shouldRefuseGapsAndRepetitions() {
        assertEquals(Abi.POISON_SEQUENCE, begin(2, 1));
        assertEquals(RecordValidator.VALID, begin(1, 1));
        assertEquals(Abi.POISON_SEQUENCE, begin(1, 2));
        assertEquals(Abi.POISON_SEQUENCE, begin(3, 2));
        assertEquals(Abi.POISON_SEQUENCE, begin(-1, 2));
    }

    @Test
    void shouldRefuseTasksOfOthers() {
        assertEquals(Abi.POISON_TASK, check(Abi.RECORD_BEGIN, 0, TASK + 1, 1, 1, NOW_NS, 0, 0));
        assertEquals(Abi.POISON_TASK, check(Abi.RECORD_BEGIN, 0, 0, 1, 1, NOW_NS, 0, 0));
        assertEquals(Abi.POISON_TASK, check(Abi.RECORD_BEGIN, 0, -1, 1, 1, NOW_NS, 0, 0));
    }

    @Test
    void shouldSkipWhatWasStillInTheQueueWhenItsTaskWasClosed() {
        assertEquals(RecordValidator.VALID, begin(1, 1));
        validator.closeTask(TASK);
        assertEquals(RecordValidator.STALE, end(2, 1));
        assertEquals(1, validator.stale());
        validator.openTask(TASK);
        assertEquals(RecordValidator.VALID, begin(3, 1));
    }

    @Test
    void shouldRefuseOldTicketsAndEndsWithoutBegin() {
        assertEquals(Abi.POISON_TICKET, end(1, 0));
        assertEquals(Abi.POISON_TICKET, end(1, 1));
        assertEquals(Abi.POISON_TICKET, begin(1, 0));
        assertEquals(Abi.POISON_TICKET, begin(1, -1));
        assertEquals(Abi.POISON_TICKET, begin(1, 1L << 55));
        assertEquals(RecordValidator.VALID, begin(1, 5));
        assertEquals(Abi.POISON_TICKET, begin(2, 5));
        assertEquals(Abi.POISON_TICKET, end(2, 4));
        assertEquals(RecordValidator.VALID, end(2, 5));
        assertEquals(Abi.POISON_TICKET, end(3, 5));
        assertEquals(Abi.POISON_TICKET, check(Abi.RECORD_HINT, 0, TASK, 3, 1, NOW_NS, 0, NOW_NS));
    }

    @Test
    void shouldRefuseImpossibleTimes() {
        final long late = NOW_NS + RecordValidator.FUTURE_LIMIT_NS + 1;
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, -1, 0, 0));
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, late, 0, 0));
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, NOW_NS, late, 0));
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, NOW_NS, Long.MIN_VALUE, 0));
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, NOW_NS, 0, Long.MAX_VALUE));
        assertEquals(Abi.POISON_TIME, check(Abi.RECORD_RELEASE, 0, TASK, 1, 0, NOW_NS, 0, 0));
        assertEquals(RecordValidator.VALID, check(Abi.RECORD_BEGIN, 0, TASK, 1, 1, late - 1, late - 1, late));
    }

    @Test
    void shouldKeepNoMoreTasksThanSlots() {
        for (int i = 1; i < Abi.SLOTS_MAX; i++) {
            validator.openTask(100 + i);
        }
        assertThrows(IllegalArgumentException.class, () -> validator.openTask(1000));
        validator.closeTask(101);
        validator.openTask(1000);
    }
}
