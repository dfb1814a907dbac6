/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.Futex;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.agrona.BufferUtil;

/** The system calls of {@link AgentPage}. */
final class AgentCalls {
    private static final int F_GET_SEALS = 1034;
    private static final int F_SEAL_SHRINK = 2;
    private static final int F_SEAL_GROW = 4;
    private static final int FUTEX_WAIT = 0;
    private static final int TIMESPEC_BYTES = 16;
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long SYS_FUTEX =
        "aarch64".equals(System.getProperty("os.arch")) ? 98 : 202;   // the daemon runs on these two only

    static {
        Native.register(LibC.class, NativeLibrary.getInstance(Platform.C_LIBRARY_NAME));
    }

    private static final class LibC {
        static native long syscall(long number, long a, long b, long c, long d, long e, long f);

        static native int fcntl(int fd, int command, long argument);
    }

    private AgentCalls() {
    }

    /** Whether a descriptor refers to a memory file whose size can no longer change. */
    static boolean isSealed(final int fd) {
        final int seals = LibC.fcntl(fd, F_GET_SEALS, 0);
        return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && (seals & F_SEAL_GROW) != 0;
    }

    /** Wakes one waiter, in any process. */
    static void wake(final long address) {
        Futex.wake(address, 1);
    }

    /** Memory for {@link #await}, for one thread. */
    static ByteBuffer timeout() {
        return ByteBuffer.allocateDirect(TIMESPEC_BYTES).order(ByteOrder.nativeOrder());
    }

    /** Waits while the word has this value, at most this long; may return early. */
    static void await(final long address, final int value, final long ns, final ByteBuffer timeout) {
        timeout.putLong(0, ns / SECOND_NS).putLong(Long.BYTES, ns % SECOND_NS);
        LibC.syscall(SYS_FUTEX, address, FUTEX_WAIT, value, BufferUtil.address(timeout), 0, 0);
    }
}
