/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.AttachedProcess;
import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** One attached process and its TSGs. All but the identity is guarded by the mechanism's lock. */
final class TegraProcess extends AttachedProcess {
    /** Version of the held payload; {@code struct gpuseg_tegra_held} in rt-scheduler/native/tegra/gpuseg_tegra.h. */
    static final int HELD_VERSION = Layouts.TEGRA_HELD_VERSION;
    static final int TSGS_MAX = Layouts.TEGRA_TSGS_MAX;
    private static final String DEVICES = "/dev/nv";
    private static final Pattern TSG = Pattern.compile("/dev/nvhost-tsg-gpu|/dev/nvgpu/[^/]+/tsg");
    private static final DeviceFile DEVICE = DeviceFile.likeOwn(TegraCalls.DRIVER);
    private static final byte[] NOTHING = new byte[0];

    private int pidfd = -1;
    private List<TsgFile> tsgs = List.of();
    private byte[] heldPayload = NOTHING;
    private String refusal = "";

    TegraProcess(final int pid, final long startTicks) {
        super(pid, startTicks);
    }

    @Override
    protected boolean hasWork() {
        return !tsgs.isEmpty();
    }

    List<TsgFile> tsgs() {
        return tsgs;
    }

    byte[] heldPayload() {
        return heldPayload;
    }

    /** Why its descriptors cannot be duplicated; empty if they can. */
    String refusal() {
        return refusal;
    }

    /** Examines its descriptors. True if its TSGs have changed. Duplicates of those that it closed are closed. */
    boolean refresh() {
        if (!isAlive()) {
            final boolean had = !tsgs.isEmpty();
            close();
            return had;
        }
        final TreeMap<Integer, String> remote = remoteTsgs();
        final List<TsgFile> next = new ArrayList<>();
        boolean changed = false;
        for (final TsgFile known : tsgs) {
            if (remote.remove(known.remoteFd()) != null) {
                next.add(known);
            } else {
                known.close();
                changed = true;
            }
        }
        for (final Map.Entry<Integer, String> named : remote.entrySet()) {
            if (next.size() == TSGS_MAX) {
                refusal = "pid " + pid() + " has more than " + TSGS_MAX + " TSGs; the others are not scheduled";
                break;
            }
            final TsgFile file = duplicate(named.getKey(), named.getValue());
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

    private TsgFile duplicate(final int remoteFd, final String path) {
        if (pidfd < 0) {
            pidfd = RemoteDescriptors.openProcess(pid(), startTicks());
        }
        final int fd = pidfd < 0 ? pidfd : DEVICE.duplicate(pid(), pidfd, remoteFd, path);
        if (fd >= 0) {
            refusal = "";
            return new TsgFile(fd, remoteFd);
        }
        if (pidfd >= 0 && fd != -Errno.EBADF && fd != DeviceFile.FOREIGN) {
            refusal = "pid " + pid() + ": its TSG descriptors cannot be duplicated (errno " + -fd
                + "); run the daemon with CAP_SYS_PTRACE";
        }
        return null;
    }

    private TreeMap<Integer, String> remoteTsgs() {
        final TreeMap<Integer, String> found = new TreeMap<>();
        try {
            RemoteDescriptors.visit(pid(), TegraCalls.DRIVER, link -> {
                final String path = link.startsWith(DEVICES) ? link.toString() : "";
                if (TSG.matcher(path).matches() && DEVICE.leadsTo(pid(), link.fd(), path)) {
                    found.put(link.fd(), path);
                }
                return true;
            });
        } catch (final IOException e) {
            if (isAlive()) {
                refusal = "/proc/" + pid() + "/fd cannot be read: " + e.getMessage()
                    + "; run the daemon with CAP_SYS_PTRACE";
            }
        }
        return found;
    }

    private byte[] payload() {
        if (tsgs.isEmpty()) {
            return NOTHING;
        }
        final ByteBuffer b = ByteBuffer.allocate(Layouts.TegraHeld.FDS_OFFSET + tsgs.size() * Integer.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN);
        b.putInt(Layouts.TegraHeld.VERSION_OFFSET, HELD_VERSION).putInt(Layouts.TegraHeld.COUNT_OFFSET, tsgs.size());
        b.position(Layouts.TegraHeld.FDS_OFFSET);
        for (final TsgFile t : tsgs) {
            b.putInt(t.remoteFd());
        }
        return b.array();
    }

    /** Closes all descriptors. A disabled TSG stays disabled. */
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
