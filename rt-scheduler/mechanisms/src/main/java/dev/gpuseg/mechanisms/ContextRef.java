/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/**
 * What enforcement acts on: all the work of one process on one GPU. The identity is fixed; the result of the last
 * operation belongs to the enforcer thread of that GPU, which is the only one that calls the mechanism.
 */
public final class ContextRef {
    /** How disabling or enabling one context ended. */
    public enum SwitchResult {
        /** Not requested yet. */
        NONE,
        /** The device confirmed it. */
        DONE,
        /** The process has no work on this device (yet); there was nothing to do. */
        ABSENT,
        /** The device refused or did not answer. */
        FAILED
    }

    private final int contextId;
    private final int gpu;
    private final int pid;
    private final long pidStartTicks;
    private final String name;
    private SwitchResult result = SwitchResult.NONE;
    private long beganNs;
    private long doneNs;
    private boolean outside;
    /** Volatile: the status may be read while the enforcer attaches. */
    private volatile Object attachment;

    /**
     * Names a context.
     *
     * @param contextId     the daemon's number for it
     * @param gpu           index of the GPU
     * @param pid           its process
     * @param pidStartTicks field 22 of /proc/pid/stat: distinguishes a reused pid
     * @param name          of the process, for messages
     */
    public ContextRef(final int contextId, final int gpu, final int pid, final long pidStartTicks,
        final String name) {
        this.contextId = contextId;
        this.gpu = gpu;
        this.pid = pid;
        this.pidStartTicks = pidStartTicks;
        this.name = name;
    }

    /** The daemon's number for it; dense, from 0, reused after the process has ended. */
    public int contextId() {
        return contextId;
    }

    /** Index of the GPU; from 0. */
    public int gpu() {
        return gpu;
    }

    /** The pid of the process. */
    public int pid() {
        return pid;
    }

    /** When the process started, clock ticks since boot; field 22 of /proc/pid/stat. */
    public long pidStartTicks() {
        return pidStartTicks;
    }

    /** Name of the process; for messages. */
    public String name() {
        return name;
    }

    /** The program is {@linkplain Mechanism#isOutside outside} of a space; said before the context is attached. */
    public ContextRef ofOutside() {
        outside = true;
        return this;
    }

    /** Whether {@link #ofOutside} said so. */
    public boolean isOutside() {
        return outside;
    }

    /**
     * Set by the mechanism for every context of a call.
     *
     * @param newResult how the operation ended
     * @param began     when the operation began, CLOCK_MONOTONIC ns
     * @param done      when it was in effect
     */
    public void result(final SwitchResult newResult, final long began, final long done) {
        result = newResult;
        beganNs = began;
        doneNs = done;
    }

    /** How the last operation ended; never null. */
    public SwitchResult result() {
        return result;
    }

    /** When the last operation began; CLOCK_MONOTONIC ns. */
    public long beganNs() {
        return beganNs;
    }

    /** When the last operation was in effect; CLOCK_MONOTONIC ns. */
    public long doneNs() {
        return doneNs;
    }

    /**
     * What the mechanism stores for this context between attach and detach (handles, descriptors).
     *
     * @return the mechanism's own object or null
     */
    public Object attachment() {
        return attachment;
    }

    /**
     * Stores something for this context.
     *
     * @param kept the mechanism's own object or null
     */
    public void attachment(final Object kept) {
        attachment = kept;
    }

    @Override
    public String toString() {
        return "context " + contextId + " (pid " + pid + " \"" + name + "\", gpu " + gpu + ")";
    }
}
