/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

/**
 * Delivers a pending memory fault now. Access to a mapping of a truncated file does not throw at once: the JVM
 * remembers the fault and throws {@link InternalError} at some later point of the same thread.
 *
 * <p>Source: measured on OpenJDK 17.0.15 and 25.0.3, x86-64: on 25 any return from a native method delivers it (12 ns),
 * on 17 only one that called back into the VM, as JNA's do (about 80 ns). Other releases: taken as 17.
 */
public final class FaultBarrier {
    private static final boolean NATIVE_RETURN_DELIVERS = Runtime.version().feature() >= 25;

    /** W any thread that met a fault in the middle of something; R the dispatcher. */
    private static volatile InternalError postponed;

    private FaultBarrier() {
    }

    /**
     * Keeps a fault that was delivered in an unrelated call, in the middle of something that must be finished. Any
     * thread.
     *
     * @param fault thrown by the next {@link #deliver}; only the last one is kept
     */
    public static void postpone(final InternalError fault) {
        postponed = fault;
    }

    /**
     * Throws what was postponed. Reads one word otherwise.
     *
     * @throws InternalError the fault
     */
    public static void deliver() {
        final InternalError fault = postponed;
        if (fault != null) {
            postponed = null;
            throw fault;
        }
    }

    /**
     * Returns normally only if no fault of this thread is pending.
     *
     * @throws InternalError if one is
     */
    public static void settle() {
        if (NATIVE_RETURN_DELIVERS) {
            Thread.holdsLock(FaultBarrier.class);
        } else {
            LibC.geteuid();
        }
    }
}
