/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

/** A system call failed. The message has the call, its arguments, errno and a remedy. */
public final class SystemCallException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final int errno;

    /**
     * A failed call.
     *
     * @param call      name of the system call
     * @param arguments its arguments as text
     * @param errno     the positive error number
     */
    public SystemCallException(final String call, final String arguments, final int errno) {
        super(text(call, arguments, errno));
        this.errno = errno;
    }

    private static String text(final String call, final String arguments, final int errno) {
        final String remedy = Errno.remedy(errno);
        return call + "(" + arguments + ") failed: " + Errno.name(errno) + (remedy.isEmpty() ? "" : "; " + remedy);
    }

    /** The error number; positive, see {@link Errno}. */
    public int errno() {
        return errno;
    }
}
