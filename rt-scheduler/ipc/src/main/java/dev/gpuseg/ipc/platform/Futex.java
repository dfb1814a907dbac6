/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

/** Wakes threads of other processes that wait for a 32-bit word of shared memory. Allocates nothing. */
public final class Futex {
    private static final int FUTEX_WAKE = 1;

    private Futex() {
    }

    /**
     * Wakes waiters of a word (not private: the waiters may be in other processes).
     *
     * @param address address of the word, 4-byte aligned, in a shared mapping
     * @param count   most threads to wake
     * @return how many were woken, or -1 on an error (unmapped address)
     */
    public static int wake(final long address, final int count) {
        try {
            return (int) LibC.syscall(LibC.SYS_FUTEX, address, FUTEX_WAKE, count, 0, 0, 0);
        } catch (final InternalError e) {
            FaultBarrier.postpone(e);   // the call was made; the caller must finish first
            return 0;
        }
    }
}
