/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcPath;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** The descriptors of another process: what they refer to, and the right to duplicate them. Any thread. */
public final class RemoteDescriptors {
    private static final int TARGET_BYTES = 256;
    /** What stand-ins of drivers make their descriptors of. */
    private static final String SOCKET = "socket:[";
    private static final String MEMORY = "/memfd:";

    /** Receives the descriptors of a process one after another. */
    @FunctionalInterface
    public interface Visitor {
        /**
         * One descriptor.
         *
         * @param link valid during this call only
         * @return false to end the visit
         */
        boolean visit(Link link);
    }

    /** What a descriptor of another process refers to. Makes no object unless {@link #toString} is called. */
    public static final class Link {
        private final byte[] target = new byte[TARGET_BYTES];
        private int fd;
        private int length;

        private Link() {
        }

        /** Its number inside the process; 0 or more. */
        public int fd() {
            return fd;
        }

        /**
         * Whether it refers to this file.
         *
         * @param path ASCII
         * @return false also if the link cannot be read
         */
        public boolean is(final String path) {
            return length == path.length() && startsWith(path);
        }

        /**
         * Whether the name of what it refers to begins like this.
         *
         * @param prefix ASCII
         * @return false also if the link cannot be read
         */
        public boolean startsWith(final String prefix) {
            boolean same = length >= prefix.length();
            for (int i = 0; same && i < prefix.length(); i++) {
                same = target[i] == prefix.charAt(i);
            }
            return same;
        }

        @Override
        public String toString() {
            return new String(target, 0, length, StandardCharsets.ISO_8859_1);
        }
    }

    /** What a thread keeps from visit to visit. */
    private static final class Scratch {
        private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);
        private final ProcEntries entries = new ProcEntries();
        private final Link link = new Link();
    }

    private RemoteDescriptors() {
    }

    /**
     * Visits the descriptors of a process. Opens none of them, because that could block. Makes no object for a
     * descriptor, save for those that a stand-in of the driver may have made.
     *
     * @param pid     the process
     * @param driver  whose readlink is used
     * @param visitor receives each of them; visits no other process meanwhile
     * @throws IOException if the process has ended, or may not be examined
     */
    public static void visit(final int pid, final DriverLibrary driver, final Visitor visitor) throws IOException {
        final Scratch scratch = Scratch.OF_THREAD.get();
        final Link link = scratch.link;
        try (ProcEntries entries = scratch.entries) {
            entries.openDescriptors(pid);
            while (entries.next()) {
                link.fd = entries.number();
                link.length = Math.max(0, entries.readlink(link.target));
                if (driver.isReplaced() && (link.startsWith(SOCKET) || link.startsWith(MEMORY))) {
                    link.length = Math.max(0, driver.readlink(ProcPath.ofDescriptor(pid, link.fd), link.target));
                }
                if (!visitor.visit(link)) {
                    return;
                }
            }
        }
    }

    /**
     * Whether the main thread of a process has ended: then /proc shows no descriptors, though other threads may live
     * and have some.
     *
     * @param pid the process
     * @return true also if all of it has ended and its parent has not asked for its status
     */
    public static boolean mainThreadEnded(final int pid) {
        try {
            final String stat = BoundedFile.text(Path.of("/proc/" + pid + "/stat"), StandardCharsets.ISO_8859_1);
            return stat.startsWith("Z", stat.lastIndexOf(')') + 2);
        } catch (final IOException e) {
            return false;   // what is known of its descriptors says that it has ended
        }
    }

    /**
     * Opens a process, so that its descriptors can be duplicated ({@link SystemCalls#pidfdGetfd}).
     *
     * @param pid        the process
     * @param startTicks field 22 of /proc/pid/stat
     * @return a pidfd, or -errno; -ESRCH also if the pid belongs to another process now
     */
    public static int openProcess(final int pid, final long startTicks) {
        final int pidfd = SystemCalls.pidfdOpen(pid);
        // after pidfd_open the pid names one process: is it the one that was meant?
        if (pidfd >= 0 && !ProcessStatus.isAlive(pid, startTicks)) {
            SystemCalls.closeOnce(pidfd);
            return -Errno.ESRCH;
        }
        return pidfd;
    }

    /**
     * Whether this kernel, or this container, lets this process duplicate descriptors at all.
     *
     * @return why not, one line; empty if it does
     */
    public static String refusal() {
        final int pidfd = SystemCalls.pidfdOpen(ProcessStatus.pid());
        final int copy = pidfd < 0 ? pidfd : SystemCalls.pidfdGetfd(pidfd, pidfd);
        if (pidfd >= 0) {
            SystemCalls.closeOnce(pidfd);
        }
        if (copy < 0) {
            return "descriptors of other processes cannot be duplicated: " + (pidfd < 0 ? "pidfd_open" : "pidfd_getfd")
                + " fails with errno " + -copy
                + "; a kernel of 5.6 or later is needed, and a container must allow the call";
        }
        SystemCalls.closeOnce(copy);
        return "";
    }
}
