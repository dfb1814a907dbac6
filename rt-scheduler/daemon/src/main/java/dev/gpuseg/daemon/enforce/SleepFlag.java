/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import java.lang.invoke.VarHandle;

/**
 * Whether a thread sleeps, so that others make the system call that wakes it only when it does. W: the sleeper, R: any
 * thread.
 *
 * <pre>
 *   sleeper                          waker
 *   announce()                       publish work, with any store
 *   look for work once more          if (mustWake()) wake the sleeper
 *   sleep if there is none
 *   clear()
 * </pre>
 *
 * Each side stores one word and then loads the other's. Both calls contain the full fence that keeps the processor from
 * doing the load first, so at least one side sees the other's store: work is never published beside a thread that
 * sleeps. Release and acquire order no store before a later load, not even on x86. Store, then look: ADR 30 lists all
 * such places.
 */
public final class SleepFlag {
    private volatile boolean asleep;

    /** Sleeper: from now on wakers wake it. It has to look for work once more before it sleeps. */
    public void announce() {
        asleep = true;
        VarHandle.fullFence();   // pairs with the fence in mustWake
    }

    /** Sleeper: it is awake. */
    public void clear() {
        asleep = false;
    }

    /**
     * Waker, after it has published work.
     *
     * @return whether the sleeper has announced that it sleeps, and may not have seen the work
     */
    public boolean mustWake() {
        VarHandle.fullFence();   // pairs with the fence in announce
        return asleep;
    }
}
