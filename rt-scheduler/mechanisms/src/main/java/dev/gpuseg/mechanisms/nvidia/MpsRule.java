/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcFile;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.agrona.collections.Int2ObjectHashMap;

/**
 * Which processes must stay enabled because they may share an MPS server with a registered process.
 *
 * <p>The work of a server and of its clients depends on each other, in a way that cannot be observed from outside. If a
 * client is registered and the server or another client were disabled for its segment, possibly nothing would run and
 * the segment would never end. So the server and all processes that may be its clients stay enabled.
 *
 * <p>A process may be a client of a server if both name the same pipe directory ({@link MpsPipe}), or if it is
 * registered and apparently uses CUDA without channels of its own. Used by the watch thread.
 */
final class MpsRule {
    /** Why a process must stay enabled: the server, and the registered process that may be its client. */
    record Exemption(int server, int client, boolean clientHasChannels) {
    }

    private static final String SERVER = "nvidia-cuda-mps-server";
    private static final String CUDA = "/libcuda.so";

    private final ProcFile environments;
    /** Kept from call to call: there are many calls while processes come and go, mostly without a server. */
    private final List<WatchedProcess> servers = new ArrayList<>();
    private final Int2ObjectHashMap<Exemption> exemptions = new Int2ObjectHashMap<>();
    private boolean serverRuns;

    /** Reads environments of processes below this directory, usually /proc. */
    MpsRule(final Path proc) {
        environments = new ProcFile(proc.toString(), MpsPipe.ENVIRONMENT_MAX);
    }

    /**
     * Sets the exemption of every process. Makes no object unless a server runs or a process is new.
     *
     * @return true if one has changed
     */
    boolean update(final List<WatchedProcess> all) {
        servers.clear();
        for (int i = 0; i < all.size(); i++) {
            final WatchedProcess p = all.get(i);
            if (p.pipe == null && !p.dead) {   // once: the environment is that of the process's start
                p.pipe = MpsPipe.of(environments, p.pid);
                p.mpsServer = ProcessStatus.runs(p.pid, SERVER);
            }
            if (p.mpsServer && !p.dead && !p.detached) {
                servers.add(p);
            }
        }
        serverRuns = !servers.isEmpty();
        exemptions.clear();
        for (int i = 0; i < servers.size(); i++) {
            final WatchedProcess server = servers.get(i);
            final Exemption exemption = exemption(server, all);
            if (exemption != null) {
                exemptions.put(server.pid, exemption);
                for (final WatchedProcess p : all) {
                    if (!p.mpsServer && (p.registered && p.withoutOwnChannels || mayShare(p, server))) {
                        exemptions.putIfAbsent(p.pid, exemption);
                    }
                }
            }
        }
        boolean changed = false;
        for (int i = 0; i < all.size(); i++) {
            final WatchedProcess p = all.get(i);
            final Exemption exemption = exemptions.get(p.pid);
            if (!Objects.equals(exemption, p.exemption)) {
                p.exemption = exemption;
                changed = true;
            }
        }
        return changed;
    }

    /** By the registered process with the lowest pid that may be a client; null if there is none. */
    private static Exemption exemption(final WatchedProcess server, final List<WatchedProcess> all) {
        WatchedProcess client = null;
        for (final WatchedProcess p : all) {
            if (p.registered && !p.dead && !p.detached && !p.mpsServer && (client == null || p.pid < client.pid)
                && (p.withoutOwnChannels || mayShare(p, server))) {
                client = p;
            }
        }
        return client == null ? null : new Exemption(server.pid, client.pid, !client.withoutOwnChannels);
    }

    private static boolean mayShare(final WatchedProcess p, final WatchedProcess server) {
        return p.pipe != null && p.pipe.mayBe(server.pipe);
    }

    /** Whether a process without channels uses CUDA, as far as can be seen. Its channels may be in a server. */
    boolean usesCudaWithoutChannels(final RmProcess process) {
        return process.hasNoWork() && (process.usesDriver() || serverRuns && mapsCuda(process.pid()));
    }

    private static boolean mapsCuda(final int pid) {
        try (Stream<String> lines = Files.lines(Path.of("/proc/" + pid + "/maps"), StandardCharsets.ISO_8859_1)) {
            return lines.anyMatch(line -> line.contains(CUDA));
        } catch (final IOException | UncheckedIOException e) {
            return false;   // it has ended, or may not be examined
        }
    }

    /** What the status shows of a process; empty if there is nothing to say. */
    static String remark(final WatchedProcess p) {
        final Exemption exemption = p.exemption;
        if (exemption == null) {
            return p.mpsServer ? "MPS server: it is disabled for tasks that are not its clients" : "";
        }
        return (p.mpsServer ? "MPS server" : "apparently an MPS client of server pid " + exemption.server())
            + ": it stays enabled, because pid " + exemption.client() + " is registered"
            + (exemption.clientHasChannels() ? "" : ", has no channels of its own") + " and may be a client of "
            + (p.mpsServer ? "it" : "that server")
            + "; start real-time tasks with CUDA_MPS_PIPE_DIRECTORY naming a directory without a server";
    }
}
