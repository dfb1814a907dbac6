/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.Pattern;

/** One attached process and its TSGs. Everything but the identity is touched under the mechanism's lock. */
final class TegraProcess {
    /** Version of the held payload; {@code struct gpuseg_tegra_held} in rt-scheduler/native/tegra/gpuseg_tegra.h. */
    static final int HELD_VERSION = 1;
    static final int TSGS_MAX = 64;
    private static final Pattern TSG = Pattern.compile("/dev/nvhost-tsg-gpu|/dev/nvgpu/[^/]+/tsg");
    private static final byte[] NOTHING = new byte[0];

    private final int pid;
    private final long startTicks;
    private final byte[] target = new byte[128];
    private int pidfd = -1;
    private List<TsgFile> tsgs = List.of();
    private byte[] heldPayload = NOTHING;
    private String refusal = "";

    TegraProcess(final int pid, final long startTicks) {
        this.pid = pid;
        this.startTicks = startTicks;
    }

    int pid() {
        return pid;
    }

    List<TsgFile> tsgs() {
        return tsgs;
    }

    byte[] heldPayload() {
        return heldPayload;
    }

    /** Why its descriptors cannot be had; empty if nothing stands in the way. */
    String refusal() {
        return refusal;
    }

    boolean isAlive() {
        return ProcessStatus.isAlive(pid, startTicks);
    }

    /** Looks at its descriptors. True: its TSGs are others than before. Those that went are closed. */
    boolean refresh() {
        if (!isAlive()) {
            final boolean had = !tsgs.isEmpty();
            close();
            return had;
        }
        final TreeSet<Integer> remote = remoteTsgs();
        final List<TsgFile> next = new ArrayList<>();
        boolean changed = false;
        for (final TsgFile known : tsgs) {
            if (remote.remove(known.remoteFd())) {
                next.add(known);
            } else {
                known.close();
                changed = true;
            }
        }
        for (final int fd : remote) {
            if (next.size() == TSGS_MAX) {
                refusal = "pid " + pid + " has more than " + TSGS_MAX + " TSGs; the others are not scheduled";
                break;
            }
            final TsgFile file = duplicate(fd);
            if (file != null) {
                next.add(file);
                changed = true;
            }
        }
        if (changed) {
            tsgs = List.copyOf(next);
            heldPayload = payload();
        }
        return changed;
    }

    private TsgFile duplicate(final int remoteFd) {
        if (pidfd < 0) {
            pidfd = SystemCalls.pidfdOpen(pid);
            // after pidfd_open the pid names one process: is it the one that was meant?
            if (pidfd >= 0 && !isAlive()) {
                SystemCalls.closeOnce(pidfd);
                pidfd = -1;
            }
        }
        final int fd = pidfd < 0 ? pidfd : SystemCalls.pidfdGetfd(pidfd, remoteFd);
        if (fd >= 0) {
            refusal = "";
            return new TsgFile(fd, remoteFd);
        }
        if (pidfd >= 0 && fd != -TegraCalls.EBADF) {
            refusal = "pid " + pid + ": its TSG descriptors cannot be duplicated (errno " + -fd
                + "); run the daemon with CAP_SYS_PTRACE";
        }
        return null;
    }

    private TreeSet<Integer> remoteTsgs() {
        final TreeSet<Integer> found = new TreeSet<>();
        try (DirectoryStream<Path> list = Files.newDirectoryStream(Path.of("/proc/" + pid + "/fd"))) {
            for (final Path p : list) {
                final int n = TegraCalls.readlink(p.toString(), target);
                if (n > 0 && TSG.matcher(new String(target, 0, n, StandardCharsets.ISO_8859_1)).matches()) {
                    found.add(Integer.parseInt(p.getFileName().toString()));
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            if (isAlive()) {
                refusal = "/proc/" + pid + "/fd cannot be read: " + e.getMessage()
                    + "; run the daemon with CAP_SYS_PTRACE";
            }
        }
        return found;
    }

    private byte[] payload() {
        if (tsgs.isEmpty()) {
            return NOTHING;
        }
        final ByteBuffer b = ByteBuffer.allocate((2 + tsgs.size()) * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(HELD_VERSION).putInt(tsgs.size());
        for (final TsgFile t : tsgs) {
            b.putInt(t.remoteFd());
        }
        return b.array();
    }

    /** Lets go of all descriptors; what is disabled stays so. */
    void close() {
        for (final TsgFile t : tsgs) {
            t.close();
        }
        tsgs = List.of();
        heldPayload = NOTHING;
        if (pidfd >= 0) {
            SystemCalls.closeOnce(pidfd);
            pidfd = -1;
        }
    }
}
