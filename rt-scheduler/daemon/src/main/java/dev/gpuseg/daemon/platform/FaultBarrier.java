/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.platform;

/**
 * Makes a pending memory fault show now. Touching a mapping of a file that was truncated does not throw at once: the
 * JVM remembers the fault and throws {@link InternalError} at some later point of the same thread, which may lie
 * anywhere.
 *
 * <p>Source: measured on OpenJDK 17.0.15 and 25.0.3, x86-64: on 25 any return from a native method delivers it (12 ns),
 * on 17 only one that called back into the VM, as JNA's do (about 80 ns). Other releases: taken as 17.
 */
public final class FaultBarrier {
    private static final boolean NATIVE_RETURN_DELIVERS = Runtime.version().feature() >= 25;

    private FaultBarrier() {
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
