/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;

/**
 * Disables and enables contexts on one GPU. All calls are made on the thread of that GPU's enforcer, except those that
 * name another, the constructor and {@link #close}: these are called while the enforcer does not run.
 *
 * <p>Contract of {@link #apply}: all contexts to disable are disabled before the first context is enabled, and each
 * {@link ContextRef} gets its result. Disabling a disabled context and enabling an enabled one are harmless. An
 * implementation bounds the time of every call; it never blocks for longer than a second.
 */
public interface Mechanism extends AutoCloseable {
    /** Name on the command line; for instance "sim". */
    String name();

    /** Number in the held file; a constant of {@code enum gpuseg_mechanism}. */
    int id();

    /** What it can do on this device; constant for the life of the instance. */
    Capabilities capabilities();

    /**
     * A process appeared.
     *
     * @param context names it in later calls
     * @throws MechanismException if the process cannot be controlled, with the reason
     */
    void attach(ContextRef context);

    /**
     * The process of an attached context registered, or its last registration ended. Until this is called, the process
     * counts as not registered.
     *
     * @param context    the context
     * @param registered whether it may have tasks from now on
     */
    default void registered(final ContextRef context, final boolean registered) {
        // most mechanisms treat all processes alike
    }

    /**
     * A session of the process of an attached context was opened. Only called if the mechanism
     * {@linkplain Capabilities#holdsLaunches holds launches}.
     *
     * @param context the context
     * @param session which one; a process may have several, and it must not be accessed
     * @param word    of that session and this GPU; the mechanism closes it
     */
    default void joined(final ContextRef context, final Session session, final LaunchHold word) {
        word.close();
    }

    /**
     * A session that {@link #joined} is gone: its launches are not held any more.
     *
     * @param context the context
     * @param session which one; it may be closed already
     */
    default void left(final ContextRef context, final Session session) {
        // most mechanisms hold no launches
    }

    /**
     * Whether the program shares the GPU with tasks that have room of their own in time slices of all of it, so that it
     * must rest while there are such tasks.
     *
     * @param pid the program; any thread may ask
     * @return false unless this mechanism {@linkplain dev.gpuseg.mechanisms.launch.SpaceMechanism keeps a space}
     */
    default boolean isOutside(final int pid) {
        return false;
    }

    /**
     * Disables contexts, then enables others.
     *
     * @param disable      contexts to disable
     * @param disableCount how many elements of the array are used
     * @param enable       contexts to enable
     * @param enableCount  how many elements of the array are used
     * @return contexts whose result is {@link ContextRef.SwitchResult#FAILED}
     */
    int apply(ContextRef[] disable, int disableCount, ContextRef[] enable, int enableCount);

    /**
     * Whether a context no longer consists of what the last {@link #apply} acted on, for instance because a process
     * made its first channels. The enforcer then writes its held entries and applies its desired state again.
     *
     * @return true once per change
     */
    default boolean changed() {
        return false;
    }

    /**
     * Sets what is run when {@link #changed} has become true, so that the enforcer need not wait for its next look.
     *
     * @param wake called on a thread of the mechanism; it does not wait
     */
    default void changeListener(final Runnable wake) {
        // a mechanism that is asked for changes often enough
    }

    /**
     * Sets what is run when a change is going to be told within a millisecond: the enforcer is to be awake then.
     *
     * @param soon called on a thread of the mechanism; it does not wait
     */
    default void expectation(final Runnable soon) {
        // a mechanism that cannot tell
    }

    /**
     * Another program, such as the watchdog, enabled contexts that were disabled, or tried to: what this mechanism
     * remembers of the state of channels does not hold any more.
     */
    default void released() {
        // a mechanism that remembers nothing of the kind
    }

    /**
     * Sets the receiver of processes that have work on this GPU and were never attached.
     *
     * @param listener called on a thread of the mechanism
     */
    default void processListener(final ProcessListener listener) {
        // a mechanism that finds no processes by itself has nothing to report
    }

    /**
     * Sets how long a context may run before the device switches to another.
     *
     * @param context     the context
     * @param timesliceNs nanoseconds, 0 = what it had before it was changed
     * @return false if the device cannot or refused; of 0, if something of the context still has another than its own:
     *     a context without work, or of a process that has ended, has nothing to give back
     */
    boolean setTimeslice(ContextRef context, long timesliceNs);

    /**
     * Whether a context that has used up its time slice yields to another that becomes ready within one switch, also
     * within a kernel. Then slices alone bound how long a begin waits.
     *
     * @return false unless that was measured
     */
    default boolean slicesBoundWaits() {
        return false;
    }

    /**
     * How much of about the last second the device worked. It may wait for the driver's locks, so it has a thread of
     * its own: always the same, which is no enforcer's, and has ended when {@link #close} is called.
     *
     * @return 0 to 100 percent; -1 = this mechanism cannot tell now
     */
    default int busyPercent() {
        return -1;
    }

    /**
     * What another program, such as the watchdog, needs to enable the context.
     *
     * @param context the context
     * @return at most {@code GPUSEG_HELD_PAYLOAD} bytes, in the form that the watchdog reads
     */
    byte[] heldPayload(ContextRef context);

    /**
     * What another program, such as the watchdog, needs to restore the context's own time slices. Called before
     * {@link #setTimeslice}.
     *
     * @param context the context
     * @return at most {@code GPUSEG_HELD_PAYLOAD} bytes, in the form that the watchdog reads; empty: there is nothing
     *     to restore, or the watchdog cannot do it for this mechanism
     */
    default byte[] timeslicePayload(final ContextRef context) {
        return new byte[0];
    }

    /**
     * The number of channels, queues or the like of a context now, for the status. Any thread.
     *
     * @param context the context
     * @return their number; -1 = this mechanism does not count them
     */
    default int units(final ContextRef context) {
        return -1;
    }

    /**
     * What is special about a context, for the status. Any thread.
     *
     * @param context the context
     * @return one line, empty if there is nothing to say
     */
    default String remark(final ContextRef context) {
        return "";
    }

    /**
     * The process has ended, or is no longer scheduled: everything of it must be enabled.
     *
     * @param context the context; not named again
     */
    void detach(ContextRef context);

    /**
     * A mechanism for the warm-up: it runs the code of this class's {@link #apply} for made-up contexts, with driver
     * calls that reach no device, so that this code is compiled before the first real segment.
     *
     * @return another mechanism, or null if none is needed
     */
    default Mechanism rehearsal() {
        return null;
    }

    /** Why the last operation failed; one line, empty if none did. */
    String lastError();

    @Override
    void close();
}
