/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.client;

import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.UserNames;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.attribute.PosixFileAttributes;
import java.util.ArrayList;
import java.util.List;

/**
 * Why no daemon answers, and what helps: none runs, a variable names the place of another one, or this user is not
 * served. The C library has the same in {@code src/refusal.h}.
 */
final class NoAnswer {
    /** A daemon shows that it is alive every 20 ms; this much later it has ended, or hangs. */
    private static final long ALIVE_NS = 5_000_000_000L;
    private static final String ROOT = "root";

    private NoAnswer() {
    }

    /**
     * What to throw.
     *
     * @param directory where the daemon was looked for
     * @param failure   of the connection
     */
    static IllegalStateException of(final RuntimeDirectory directory, final SystemCallException failure) {
        final int pid = failure.errno() == Errno.EACCES ? runs(directory) : 0;
        if (pid != 0) {
            try {
                return notServed(directory, pid, failure);
            } catch (final IOException e) {
                failure.addSuppressed(e); // it ended meanwhile
            }
        }
        final RuntimeDirectory other = directory.withoutVariable();
        return new AdminClient.NoDaemonException("no daemon answers in " + directory.root() + (other == null
            ? " (" + failure.getMessage() + "); start one with `gpuseg run`, or name its directory with --dir"
            : ", which GPUSEG_DIR names; " + (other.isOfRoot() ? "one of root" : "another one") + " is in "
                + other.root() + ": `unset GPUSEG_DIR`"), failure);
    }

    /** The pid of a daemon that shows that it is alive; else 0. Every user may read its status page. */
    private static int runs(final RuntimeDirectory directory) {
        try (StatusPage page = StatusPage.open(directory.status())) {
            return !page.isStopping() && System.nanoTime() - page.heartbeatNs() < ALIVE_NS ? page.daemonPid() : 0;
        } catch (final IllegalStateException | UncheckedIOException e) {
            return 0; // none is there
        }
    }

    private static IllegalStateException notServed(final RuntimeDirectory directory, final int pid,
        final SystemCallException failure) throws IOException {
        final PosixFileAttributes socket = Files.readAttributes(directory.socket(), PosixFileAttributes.class,
            LinkOption.NOFOLLOW_LINKS);
        final String user = PlainText.of(socket.owner().getName());
        final String group = PlainText.of(socket.group().getName());
        final List<String> served = new ArrayList<>(List.of(ROOT));
        if (!user.equals(ROOT)) {
            served.add("user " + user);
        }
        if (!group.equals(ROOT)) {
            served.add("group " + group);
        }
        return new AdminClient.NotServedException("a daemon runs in " + directory.root() + " (pid " + pid + "), and "
            + "serves " + String.join(", ", served) + " only", remedy(group), failure);
    }

    private static String remedy(final String group) {
        final int uid = ProcessStatus.effectiveUid();
        final String user = UserNames.of(uid).orElse(Integer.toUnsignedString(uid));
        return group.equals(ROOT)
            ? "`sudo groupadd -rf gpuseg && sudo usermod -aG gpuseg " + user + "`, restart the daemon, log in again"
            : "`sudo usermod -aG " + group + " " + user + "`, then log in again";
    }
}
