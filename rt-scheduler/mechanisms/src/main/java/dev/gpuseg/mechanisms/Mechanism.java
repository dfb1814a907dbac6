/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/**
 * The port to a device. One instance per GPU; every call is made on the thread of that GPU's enforcer (the constructor
 * and {@link #close} on the thread that starts and stops the daemon, while the enforcer does not run).
 *
 * <p>Contract of {@link #apply}: contexts to disable are off the hardware before any context to enable is touched, and
 * each {@link ContextRef} tells what came of it. Disabling a disabled context and enabling an enabled one are
 * harmless. An implementation bounds every call in time; it never blocks for longer than a second.
 */
public interface Mechanism extends AutoCloseable {
    /**
     * Name on the command line.
     *
     * @return for instance "sim"
     */
    String name();

    /**
     * Number in the held file.
     *
     * @return a constant of {@code enum gpuseg_mechanism}
     */
    int id();

    /**
     * What this device can do.
     *
     * @return constant for the life of the instance
     */
    Capabilities capabilities();

    /**
     * A process appeared.
     *
     * @param context what will be named in later calls
     * @throws MechanismException if the process cannot be controlled, with the reason
     */
    void attach(ContextRef context);

    /**
     * The process of an attached context registered, or its last registration ended. Until this is called it is one
     * that was only found.
     *
     * @param context    the context
     * @param registered whether it may have tasks from now on
     */
    default void registered(final ContextRef context, final boolean registered) {
        // a mechanism that treats all processes alike does not ask
    }

    /**
     * Takes contexts off the hardware, then brings others back.
     *
     * @param disable      contexts to take off
     * @param disableCount how many of them count
     * @param enable       contexts to bring back
     * @param enableCount  how many of them count
     * @return contexts whose outcome is {@link ContextRef.Outcome#FAILED}
     */
    int apply(ContextRef[] disable, int disableCount, ContextRef[] enable, int enableCount);

    /**
     * Whether what stands behind some context is no longer what the last {@link #apply} acted on, for instance because
     * a process made its first channels. Resets itself; the enforcer then writes its held entries and applies its
     * desired state again.
     *
     * @return true once per change
     */
    default boolean changed() {
        return false;
    }

    /**
     * Asks to be told of processes that have work on this GPU and were never attached.
     *
     * @param listener called on a thread of the mechanism
     */
    default void processListener(final ProcessListener listener) {
        // a mechanism that sees only processes that registered has nothing to tell
    }

    /**
     * Sets how long a context may run before the device switches to another.
     *
     * @param context     the context
     * @param timesliceNs nanoseconds, 0 = the device's default
     * @return false if the device cannot or refused
     */
    boolean setTimeslice(ContextRef context, long timesliceNs);

    /**
     * What a tool without this daemon's memory needs to enable the context again.
     *
     * @param context the context
     * @return at most {@code GPUSEG_HELD_PAYLOAD} bytes, in the form that the watchdog reads
     */
    byte[] heldPayload(ContextRef context);

    /**
     * What a tool without this daemon's memory needs to give the context its own time slices back. Asked before
     * {@link #setTimeslice}.
     *
     * @param context the context
     * @return at most {@code GPUSEG_HELD_PAYLOAD} bytes, in the form that the watchdog reads; empty: there is nothing
     *     to give back, or the watchdog cannot do it for this mechanism
     */
    default byte[] timeslicePayload(final ContextRef context) {
        return new byte[0];
    }

    /**
     * What stands behind a context now, for status pages. Any thread.
     *
     * @param context the context
     * @return its channels, queues or the like; -1 = this mechanism does not count them
     */
    default int units(final ContextRef context) {
        return -1;
    }

    /**
     * What is special about a context, for status pages. Any thread.
     *
     * @param context the context
     * @return one line, empty if there is nothing to say
     */
    default String remark(final ContextRef context) {
        return "";
    }

    /**
     * The process is gone.
     *
     * @param context the context; not named again
     */
    void detach(ContextRef context);

    /**
     * Something to practise on: runs the code of this class's {@link #apply} with driver calls that reach no device,
     * for contexts that it makes up, so that the first real segment does not find it interpreted.
     *
     * @return another mechanism, or null if there is nothing worth practising
     */
    default Mechanism rehearsal() {
        return null;
    }

    /**
     * Why the last operation failed.
     *
     * @return one line, empty if none did
     */
    String lastError();

    @Override
    void close();
}
