/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.mechanisms.ContextRef;

/**
 * One process and its context on each GPU. It outlives its registrations: a process that hung up or was dropped, but
 * lives, may still have work on the GPU, which then counts as best effort. Dispatcher thread only.
 */
public final class ProcessEntry {
    public final int pid;
    public final long startTicks;
    public final String name;
    /** Context id by GPU. */
    final int[] contexts;
    /** The same as the enforcers know them. */
    final ContextRef[] refs;
    /** Registrations that are alive. */
    int clients;
    /** Its contexts are never disabled, by a rule for its control group. */
    boolean isProtected;
    /** Known since then, CLOCK_MONOTONIC ns. */
    long sinceNs;
    /** It had no work lately. */
    public boolean isIdle;

    ProcessEntry(final int pid, final long startTicks, final String name, final ContextRef[] refs) {
        this.pid = pid;
        this.startTicks = startTicks;
        this.name = name;
        this.refs = refs;
        contexts = new int[refs.length];
        for (int g = 0; g < refs.length; g++) {
            contexts[g] = refs[g].contextId();
        }
    }
}
