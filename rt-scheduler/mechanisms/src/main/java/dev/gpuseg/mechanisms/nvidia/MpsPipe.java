/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The pipe directory by which a process finds an MPS server: CUDA_MPS_PIPE_DIRECTORY of the environment that it was
 * started with, or /tmp/nvidia-mps if that is not set. A process that sets the variable itself, later, is not
 * recognised. Immutable; any thread.
 *
 * @param proc      /proc
 * @param pid       the process, through whose root the directory is found
 * @param directory as the process names it, empty if that is unknown
 */
record MpsPipe(String proc, int pid, String directory) {
    static final MpsPipe UNKNOWN = new MpsPipe("", 0, "");
    static final Path PROC = Path.of("/proc");
    /** More than the kernel gives a process for arguments and environment together. */
    static final int ENVIRONMENT_MAX = 8 << 20;
    private static final String VARIABLE = "CUDA_MPS_PIPE_DIRECTORY=";
    private static final String DEFAULT = "/tmp/nvidia-mps";

    /**
     * The directory of a process.
     *
     * @param files of /proc, with room for an environment
     * @param pid   the process
     * @return {@link #UNKNOWN} if its environment cannot be read, or names no absolute path
     */
    static MpsPipe of(final ProcFile files, final int pid) {
        if (files.read(pid, "environ") < 0) {
            return UNKNOWN;
        }
        final String directory = variable(files.content());
        return directory.startsWith("/") ? new MpsPipe(files.directory(), pid, directory) : UNKNOWN;
    }

    /** The value of the first entry of that name, as getenv has it; the default if there is none. */
    private static String variable(final ByteBuffer environment) {
        int entry = 0;
        while (entry < environment.limit()) {
            int end = entry;
            while (end < environment.limit() && environment.get(end) != 0) {
                end++;
            }
            int same = 0;
            while (same < VARIABLE.length() && entry + same < end
                && environment.get(entry + same) == VARIABLE.charAt(same)) {
                same++;
            }
            if (same == VARIABLE.length()) {
                return StandardCharsets.UTF_8.decode(environment.slice(entry + same, end - entry - same)).toString();
            }
            entry = end + 1;
        }
        return DEFAULT;
    }

    /**
     * Whether two processes may use the same directory. Examined at each call, because it can be created later.
     *
     * @param other of the other process
     * @return true also if that is unknown
     */
    boolean mayBe(final MpsPipe other) {
        final Object mine = identity();
        final Object theirs = other.identity();
        return mine == UNKNOWN || theirs == UNKNOWN || mine.equals(theirs);
    }

    /** Without its detours; two processes may name the same directory in different ways. */
    String name() {
        return Path.of(directory).normalize().toString();
    }

    /** Device and inode, found through the root of the process; its name if there is no such directory. */
    private Object identity() {
        if (directory.isEmpty()) {
            return UNKNOWN;
        }
        try {
            return Files.readAttributes(Path.of(proc + "/" + pid + "/root" + directory), BasicFileAttributes.class)
                .fileKey();
        } catch (final NoSuchFileException | NotDirectoryException e) {
            return name();
        } catch (final IOException | InvalidPathException e) {   // no path in this JVM's encoding
            return UNKNOWN;
        }
    }
}
