/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** One process that a {@link ProcessWatch} follows. Each field names its writer (W) and its readers (R). */
final class WatchedProcess {
    final int pid;
    final long startTicks;
    /** When it was first seen, CLOCK_MONOTONIC ns. */
    final long sinceNs;
    /** W watch thread, under the lock when it becomes null; R enforcer. Null = ended or not opened yet. */
    volatile RmProcess process;
    /** W watch thread, R enforcer: the pidfd has reported death. */
    volatile boolean dead;
    /** W enforcer, R watch thread. */
    volatile boolean detached;
    /** Enforcer only: what was disabled last and not enabled since; its channels must be enabled, not today's. */
    RmContext disabled;
    /** Enforcer only: when the first call that disabled a part of it began, CLOCK_MONOTONIC ns. */
    long disabledNs;
    /** Enforcer only: releases of the watchdog when all of it was disabled; negative = part of it may be enabled. */
    long disabledRelease = -1;
    /** Enforcer only: all of it was enabled by a call that succeeded, and nothing of it was disabled since. */
    boolean enabled;
    /** Enforcer only: when that call was done, CLOCK_MONOTONIC ns. */
    long enabledNs;
    /** Enforcer only, for good: a part of it may be disabled although {@link #disabled} does not name it. */
    boolean lost;
    /** Enforcer only: what a call of its own switched: its channels exist, whoever said so. */
    RmContext proven;
    /** Enforcer only: calls of its own, because RM was not asked about it. */
    int ownCalls;
    /** W watch thread, the enforcer takes: what was disabled of it may run again, see {@link NvidiaMechanism}. */
    final Queue<RmContext.Scheduled> scheduled = new ConcurrentLinkedQueue<>();
    /** W enforcer at attach, R watch thread. */
    volatile boolean attached;
    /** Enforcer, under the lock: time slices before they were changed, by client and channel group. */
    final Map<Long, RmTimeslices.Own> ownTimeslices = new HashMap<>();
    /** W watch thread, the enforcer takes: time slices that it gave itself, us, by client and channel group. */
    final Map<Long, Long> newTimeslices = new ConcurrentHashMap<>();
    /** Enforcer, under the lock: all of it has the time slice {@link #slicedNs}; null = that is not certain. */
    RmContext sliced;
    long slicedNs;
    /** W watch thread, R enforcer, dispatcher: its channels carry the work of other processes. */
    volatile boolean mpsServer;
    /** W watch thread, R enforcer, dispatcher: why it must stay enabled, or null; see {@link MpsRule}. */
    volatile MpsRule.Exemption exemption;
    /** W enforcer, R watch thread: its process may have tasks. */
    volatile boolean registered;
    // the rest: watch thread only
    /** Null until the MPS rule has examined it. */
    MpsPipe pipe;
    /** Apparently uses CUDA without channels of its own. */
    boolean withoutOwnChannels;
    boolean announced;
    /** Its channels are new; if they are the same then, they are taken to have been scheduled. 0 = they are not new. */
    long confirmNs;
    /** Null if the observer does not see it, or not from its beginning. */
    ObservedProcess observed;
    long nextRefreshNs;
    long periodNs;

    WatchedProcess(final int pid, final long startTicks, final long nowNs) {
        this.pid = pid;
        this.startTicks = startTicks;
        sinceNs = nowNs;
        nextRefreshNs = nowNs;
        periodNs = ProcessWatch.REFRESH_MIN_NS;
    }
}
