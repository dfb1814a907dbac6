/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A control group with a limit of memory, of version 2 or 1, whichever this machine lets this process make. */
final class MemoryGroup implements AutoCloseable {
    private static final List<Path> ROOTS = List.of(Path.of("/sys/fs/cgroup"), Path.of("/sys/fs/cgroup/memory"));
    private static final List<String> LIMITS = List.of("memory.max", "memory.limit_in_bytes");
    private static final List<String> PEAKS = List.of("memory.peak", "memory.max_usage_in_bytes");
    private static final long BYTES_PER_MIB = 1L << 20;
    private static final long POLL_NS = 1_000_000;

    private final Path directory;

    private MemoryGroup(final Path directory) {
        this.directory = directory;
    }

    /** Makes a group with a limit in MiB; empty if this machine does not permit it. */
    static Optional<MemoryGroup> create(final String name, final int mib) {
        for (final Path root : ROOTS) {
            for (final String limit : LIMITS) {
                try {
                    final Path directory = Files.createDirectory(root.resolve(name));
                    try {
                        if (Files.exists(directory.resolve(limit))) {
                            Files.writeString(directory.resolve(limit), Long.toString(mib * BYTES_PER_MIB));
                            return Optional.of(new MemoryGroup(directory));
                        }
                    } catch (final IOException e) {
                        Files.delete(directory);   // the controller is not for this process
                        continue;
                    }
                    Files.delete(directory);
                } catch (final IOException e) {
                    continue;   // no such hierarchy, or not writable: the next one
                }
            }
        }
        return Optional.empty();
    }

    /** Put before a command, it runs in the group. */
    List<String> prefix() {
        return List.of("sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", directory.resolve("cgroup.procs").toString());
    }

    /** Most memory that its processes had, files in memory included, in bytes; -1 if the kernel does not say. */
    long peakBytes() throws IOException {
        for (final String file : PEAKS) {
            if (Files.exists(directory.resolve(file))) {
                return Long.parseLong(Files.readString(directory.resolve(file)).strip());
            }
        }
        return -1;
    }

    /** Waits until its processes have ended, or it is a hang, and removes it. */
    @Override
    public void close() throws IOException {
        final long untilNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(FaultRig.HANG_S);
        while (!Files.readString(directory.resolve("cgroup.procs")).isBlank() && System.nanoTime() - untilNs < 0) {
            LockSupport.parkNanos(POLL_NS);
        }
        Files.delete(directory);
    }
}
