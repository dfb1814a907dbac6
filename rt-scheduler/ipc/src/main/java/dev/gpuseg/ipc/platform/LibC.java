/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.FunctionMapper;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.Locale;
import java.util.Map;

/**
 * The mapped functions of the C library. Addresses are passed as {@code long}; only strings allocate. All supported
 * targets are 64-bit and little-endian. Names are those of C with {@code _x} written as {@code X}.
 */
final class LibC {
    static final int SYS_PIDFD_SEND_SIGNAL = 424;
    static final int SYS_PIDFD_OPEN = 434;
    static final boolean ARM64;
    static final int SYS_FUTEX;

    static {
        final String arch = System.getProperty("os.arch");
        ARM64 = "aarch64".equals(arch);
        if (!ARM64 && !"amd64".equals(arch) && !"x86_64".equals(arch)) {
            throw new ExceptionInInitializerError("architecture " + arch + " is not supported; use x86-64 or aarch64");
        }
        SYS_FUTEX = ARM64 ? 98 : 202;
        final FunctionMapper underscores = (library, method) ->
            method.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
        Native.register(LibC.class,
            NativeLibrary.getInstance("c", Map.of(Library.OPTION_FUNCTION_MAPPER, underscores)));
    }

    private LibC() {
    }

    static native long syscall(long number, long a, long b, long c, long d, long e, long f);

    static native int socket(int domain, int type, int protocol);

    static native int bind(int fd, long address, int length);

    static native int listen(int fd, int backlog);

    static native int connect(int fd, long address, int length);

    static native int accept4(int fd, long address, long length, int flags);

    static native int getsockopt(int fd, int level, int option, long value, long length);

    static native int setsockopt(int fd, int level, int option, long value, int length);

    static native long recvmsg(int fd, long message, int flags);

    static native long sendmsg(int fd, long message, int flags);

    static native int epollCreate1(int flags);

    static native int epollCtl(int epoll, int operation, int fd, long event);

    static native int epollWait(int epoll, long events, int max, int timeoutMs);

    static native int poll(long fds, long count, int timeoutMs);

    static native int eventfd(int initial, int flags);

    static native int memfdCreate(String name, int flags);

    static native int fcntl(int fd, int command, long argument);

    static native int ftruncate(int fd, long length);

    static native int posixFallocate(int fd, long offset, long length);

    static native int open(String path, int flags, int mode);

    static native int close(int fd);

    static native long read(int fd, long address, long length);

    static native long write(int fd, long address, long length);

    static native int kill(int pid, int signal);

    static native int lchown(String path, int uid, int gid);

    static native int chmod(String path, int mode);

    static native int umask(int mask);

    static native int mlockall(int flags);

    static native int mlock(long address, long length);

    static native int schedSetaffinity(int tid, long size, long mask);

    static native int schedSetscheduler(int tid, int policy, long parameters);

    static native int gettid();

    static native int geteuid();

    static native int getegid();

    static native Pointer getpwuid(int uid);

    static native int statfs(String path, long buffer);

    static native int statx(int directory, String path, int flags, int mask, long buffer);

    static native int clockGettime(int clock, long address);

    static native int prctl(int option, long a, long b, long c, long d);
}
