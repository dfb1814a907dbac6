/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.util.Map;

/** Error numbers of Linux (the same on x86-64 and aarch64). */
public final class Errno {
    public static final int EPERM = 1;
    public static final int ENOENT = 2;
    public static final int ESRCH = 3;
    public static final int EINTR = 4;
    public static final int EIO = 5;
    public static final int EBADF = 9;
    public static final int ECHILD = 10;
    public static final int EAGAIN = 11;
    public static final int ENOMEM = 12;
    public static final int EACCES = 13;
    public static final int EBUSY = 16;
    public static final int EEXIST = 17;
    public static final int EINVAL = 22;
    public static final int EMFILE = 24;
    public static final int ENOSPC = 28;
    public static final int EPIPE = 32;
    public static final int ERANGE = 34;
    public static final int ENOSYS = 38;
    public static final int ELOOP = 40;
    public static final int ETIME = 62;
    public static final int EPROTO = 71;
    public static final int EMSGSIZE = 90;
    public static final int EPROTONOSUPPORT = 93;
    public static final int EOPNOTSUPP = 95;
    public static final int EADDRINUSE = 98;
    public static final int ENOPROTOOPT = 92;
    public static final int ECONNABORTED = 103;
    public static final int ECONNRESET = 104;
    public static final int ECONNREFUSED = 111;
    public static final int EALREADY = 114;
    public static final int ESTALE = 116;
    public static final int EDQUOT = 122;
    public static final int ENOTCONN = 107;
    public static final int ETIMEDOUT = 110;
    public static final int ENFILE = 23;
    public static final int ENAMETOOLONG = 36;

    private static final Map<Integer, String> NAMES = Map.ofEntries(
        Map.entry(EPERM, "EPERM"), Map.entry(ENOENT, "ENOENT"), Map.entry(ESRCH, "ESRCH"),
        Map.entry(EINTR, "EINTR"), Map.entry(EIO, "EIO"), Map.entry(EBADF, "EBADF"), Map.entry(EAGAIN, "EAGAIN"),
        Map.entry(ENOMEM, "ENOMEM"), Map.entry(EACCES, "EACCES"), Map.entry(EBUSY, "EBUSY"),
        Map.entry(EEXIST, "EEXIST"), Map.entry(EINVAL, "EINVAL"), Map.entry(EMFILE, "EMFILE"),
        Map.entry(ENOSPC, "ENOSPC"), Map.entry(EPIPE, "EPIPE"), Map.entry(ERANGE, "ERANGE"),
        Map.entry(ENOSYS, "ENOSYS"), Map.entry(EPROTO, "EPROTO"), Map.entry(EMSGSIZE, "EMSGSIZE"),
        Map.entry(EPROTONOSUPPORT, "EPROTONOSUPPORT"), Map.entry(EOPNOTSUPP, "EOPNOTSUPP"),
        Map.entry(EADDRINUSE, "EADDRINUSE"), Map.entry(ECONNRESET, "ECONNRESET"),
        Map.entry(ENOPROTOOPT, "ENOPROTOOPT"), Map.entry(ECONNABORTED, "ECONNABORTED"),
        Map.entry(ECONNREFUSED, "ECONNREFUSED"), Map.entry(EDQUOT, "EDQUOT"), Map.entry(ENOTCONN, "ENOTCONN"),
        Map.entry(ETIMEDOUT, "ETIMEDOUT"), Map.entry(ENFILE, "ENFILE"), Map.entry(ENAMETOOLONG, "ENAMETOOLONG"),
        Map.entry(ECHILD, "ECHILD"), Map.entry(ETIME, "ETIME"), Map.entry(EALREADY, "EALREADY"),
        Map.entry(ESTALE, "ESTALE"));

    private Errno() {
    }

    /**
     * The symbolic name of an error number.
     *
     * @param errno a positive error number
     * @return for example {@code ENOSPC}, or {@code errno 200} where the name is unknown here
     */
    public static String name(final int errno) {
        final String name = NAMES.get(errno);
        return name != null ? name : "errno " + errno;
    }

    static String remedy(final int errno) {
        switch (errno) {
            case EPERM:
            case EACCES:
                return "run as root or give the process the needed capability";
            case ENOSPC:
            case EDQUOT:
                return "free space on that file system or lower the queue size";
            case EMFILE:
            case ENFILE:
                return "raise the limit of open files (ulimit -n)";
            case ENOMEM:
                return "raise RLIMIT_MEMLOCK or free memory";
            case ENOENT:
                return "check that the path exists and that the daemon runs";
            case ECONNREFUSED:
                return "no daemon listens there; start it with `gpuseg run`";
            case EADDRINUSE:
                return "another daemon uses this directory; stop it or choose another GPUSEG_DIR";
            case ENOSYS:
                return "a newer kernel is needed";
            default:
                return "";
        }
    }
}
