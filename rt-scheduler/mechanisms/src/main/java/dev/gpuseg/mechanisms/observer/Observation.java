/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;

/**
 * One record of gpuseg-observer: a process did something with a GPU device. What an ioctl carried was read from the
 * memory of the process, so it is what the process claims.
 *
 * @param kind       what happened
 * @param pid        the process
 * @param startTicks field 22 of /proc/pid/stat
 * @param whole      the process began after the observer, and no record was lost since
 * @param timeNs     CLOCK_MONOTONIC
 * @param fd         descriptor in the process, -1 = several or none
 * @param owner      pid that opened the file, 0 = not seen
 * @param client     RM client
 * @param parent     handle of the parent
 * @param handle     of the object
 * @param classId    class of the object
 * @param engine     engine type of a channel group; for {@link Kind#OPEN} and {@link Kind#WORK} the driver
 * @param passedNs   from timeNs until gpuseg-observer took the record, unsigned, at most 4.3 s
 * @param receivedNs when this process received it, CLOCK_MONOTONIC
 */
public record Observation(Kind kind, int pid, long startTicks, boolean whole, long timeNs, int fd, int owner,
    int client, int parent, int handle, int classId, int engine, int passedNs, long receivedNs) {

    /** Bytes of a record; {@code struct gpuseg_observer_record}. */
    public static final int BYTES = Layouts.ObserverRecord.SIZE;
    /** Driver of NVIDIA's control device. */
    public static final int NVIDIA = Layouts.OBSERVER_NVIDIA;
    /** Driver of /dev/kfd. */
    public static final int KFD = Layouts.OBSERVER_KFD;
    /** Driver of Tegra's GPU. */
    public static final int NVGPU = Layouts.OBSERVER_NVGPU;

    /** The kernel shows times of processes in 1/100 s (USER_HZ), whatever its own tick is. */
    private static final long NS_PER_TICK = 10_000_000;

    /** What happened: {@code enum gpuseg_observer_kind}. */
    public enum Kind {
        /** The observer sees from now on. */
        HELLO(Layouts.OBSERVER_HELLO),
        /** A device was opened. */
        OPEN(Layouts.OBSERVER_OPEN),
        /** A descriptor of a device was closed. */
        CLOSE(Layouts.OBSERVER_CLOSE),
        /** An object exists. */
        ALLOC(Layouts.OBSERVER_ALLOC),
        /** An object and what is below it exist no more. */
        FREE(Layouts.OBSERVER_FREE),
        /** The process has ended. */
        EXIT(Layouts.OBSERVER_EXIT),
        /** The process runs another program. */
        EXEC(Layouts.OBSERVER_EXEC),
        /** The process uses a device in a way that was not seen from its beginning. */
        UNSEEN(Layouts.OBSERVER_UNSEEN),
        /** Records were lost; their number is in {@link Observation#handle}. */
        LOST(Layouts.OBSERVER_LOST),
        /** Queues or channels were made or removed. */
        WORK(Layouts.OBSERVER_WORK),
        /** Account of a control group; see {@link GroupAccount}. */
        GROUP(Layouts.OBSERVER_GROUP),
        /** The process had a channel group or a channel scheduled: it runs, also if it was disabled before. */
        SCHEDULED(Layouts.OBSERVER_SCHEDULED),
        /** The process has begun to have one scheduled: the driver needs some hundred microseconds for that. */
        SCHEDULES(Layouts.OBSERVER_SCHEDULES),
        /** A control group was removed; its last {@link GroupAccount}. */
        GROUP_GONE(Layouts.OBSERVER_GROUP_GONE),
        /** The process gave a channel group its time slice; how long, in us, is in {@link Observation#parent}. */
        TIMESLICE(Layouts.OBSERVER_TIMESLICE);

        private static final Kind[] ALL = values();

        private final int number;

        Kind(final int number) {
            this.number = number;
        }

        int number() {
            return number;
        }

        /** Null for a number of another version. */
        static Kind of(final int number) {
            for (final Kind kind : ALL) {
                if (kind.number == number) {
                    return kind;
                }
            }
            return null;
        }
    }

    /** Kind of the record at a place, null if it is unknown. */
    static Kind kind(final ByteBuffer b, final int at) {
        return Kind.of(b.getInt(at + Layouts.ObserverRecord.KIND_OFFSET));
    }

    /** When the process of a record began, CLOCK_BOOTTIME ns; in HELLO and LOST: from when on nothing is missing. */
    static long startNs(final ByteBuffer b, final int at) {
        return b.getLong(at + Layouts.ObserverRecord.START_NS_OFFSET);
    }

    /** Reads a record of a known kind. */
    static Observation read(final ByteBuffer b, final int at, final long wholeFromNs, final long nowNs) {
        final long startNs = startNs(b, at);
        return new Observation(kind(b, at), b.getInt(at + Layouts.ObserverRecord.PID_OFFSET), startNs / NS_PER_TICK,
            startNs >= wholeFromNs, b.getLong(at + Layouts.ObserverRecord.TIME_NS_OFFSET),
            b.getInt(at + Layouts.ObserverRecord.FD_OFFSET), b.getInt(at + Layouts.ObserverRecord.OWNER_OFFSET),
            b.getInt(at + Layouts.ObserverRecord.CLIENT_OFFSET), b.getInt(at + Layouts.ObserverRecord.PARENT_OFFSET),
            b.getInt(at + Layouts.ObserverRecord.HANDLE_OFFSET), b.getInt(at + Layouts.ObserverRecord.CLASS_ID_OFFSET),
            b.getInt(at + Layouts.ObserverRecord.ENGINE_OFFSET),
            b.getInt(at + Layouts.ObserverRecord.PASSED_NS_OFFSET), nowNs);
    }

    /** The first start time, in ticks, of which it is certain that the process began after this time. */
    static long ticksAfter(final long bootNs) {
        return bootNs / NS_PER_TICK + 1;
    }
}
