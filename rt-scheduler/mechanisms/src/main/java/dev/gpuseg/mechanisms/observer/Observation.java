/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

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
    public static final int BYTES = 64;
    /** Driver of NVIDIA's control device. */
    public static final int NVIDIA = 1;
    /** Driver of /dev/kfd. */
    public static final int KFD = 2;
    /** Driver of Tegra's GPU. */
    public static final int NVGPU = 3;

    private static final int KIND = 0;
    private static final int PID = 4;
    private static final int TIME = 8;
    private static final int START = 16;
    private static final int FD = 32;
    private static final int OWNER = 36;
    private static final int CLIENT = 40;
    private static final int PARENT = 44;
    private static final int HANDLE = 48;
    private static final int CLASS = 52;
    private static final int ENGINE = 56;
    private static final int PASSED = 60;
    /** The kernel shows times of processes in 1/100 s (USER_HZ), whatever its own tick is. */
    private static final long NS_PER_TICK = 10_000_000;

    /** What happened. The number is {@code enum gpuseg_observer_kind}. */
    public enum Kind {
        /** The observer sees from now on. */
        HELLO,
        /** A device was opened. */
        OPEN,
        /** A descriptor of a device was closed. */
        CLOSE,
        /** An object exists. */
        ALLOC,
        /** An object and what is below it exist no more. */
        FREE,
        /** The process has ended. */
        EXIT,
        /** The process runs another program. */
        EXEC,
        /** The process uses a device in a way that was not seen from its beginning. */
        UNSEEN,
        /** Records were lost; their number is in {@link Observation#handle}. */
        LOST,
        /** Queues or channels were made or removed. */
        WORK,
        /** Account of a control group; see {@link GroupAccount}. */
        GROUP,
        /** The process had a channel group or a channel scheduled: it runs, also if it was disabled before. */
        SCHEDULED,
        /** The process has begun to have one scheduled: the driver needs some hundred microseconds for that. */
        SCHEDULES,
        /** A control group was removed; its last {@link GroupAccount}. */
        GROUP_GONE;

        private static final Kind[] ALL = values();

        /** Null for a number of another version. */
        static Kind of(final int number) {
            return number < 1 || number > ALL.length ? null : ALL[number - 1];
        }
    }

    /** Kind of the record at a place, null if it is unknown. */
    static Kind kind(final ByteBuffer b, final int at) {
        return Kind.of(b.getInt(at + KIND));
    }

    /** When the process of a record began, CLOCK_BOOTTIME ns; in HELLO and LOST: from when on nothing is missing. */
    static long startNs(final ByteBuffer b, final int at) {
        return b.getLong(at + START);
    }

    /** Reads a record of a known kind. */
    static Observation read(final ByteBuffer b, final int at, final long wholeFromNs, final long nowNs) {
        final long startNs = startNs(b, at);
        return new Observation(kind(b, at), b.getInt(at + PID), startNs / NS_PER_TICK, startNs >= wholeFromNs,
            b.getLong(at + TIME), b.getInt(at + FD), b.getInt(at + OWNER), b.getInt(at + CLIENT),
            b.getInt(at + PARENT), b.getInt(at + HANDLE), b.getInt(at + CLASS), b.getInt(at + ENGINE),
            b.getInt(at + PASSED), nowNs);
    }

    /** The first start time, in ticks, of which it is certain that the process began after this time. */
    static long ticksAfter(final long bootNs) {
        return bootNs / NS_PER_TICK + 1;
    }
}
