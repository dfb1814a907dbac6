/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * The pipe directory by which a process finds an MPS server: CUDA_MPS_PIPE_DIRECTORY of the environment that it was
 * started with, or /tmp/nvidia-mps if that is not set. A process that sets the variable itself, later, is not
 * recognised. Immutable; any thread.
 *
 * @param name how the process names it, empty if that is unknown
 * @param seen its path as this process sees it
 */
record MpsPipe(String name, Path seen) {
    static final MpsPipe UNKNOWN = new MpsPipe("", Path.of(""));
    static final Path PROC = Path.of("/proc");
    private static final String VARIABLE = "CUDA_MPS_PIPE_DIRECTORY=";
    private static final String DEFAULT = "/tmp/nvidia-mps";

    /**
     * The directory of a process.
     *
     * @param proc /proc
     * @param pid  the process
     * @return {@link #UNKNOWN} if its environment cannot be read, or names no absolute path
     */
    static MpsPipe of(final Path proc, final int pid) {
        final Path process = proc.resolve(Integer.toString(pid));
        final byte[] environment;
        try {
            environment = Files.readAllBytes(process.resolve("environ"));
        } catch (final IOException e) {
            return UNKNOWN;
        }
        final String directory = variable(environment);
        return directory.startsWith("/")
            ? new MpsPipe(Path.of(directory).normalize().toString(), Path.of(process + "/root" + directory)) : UNKNOWN;
    }

    /** The value of the first entry of that name, as getenv has it; the default if there is none. */
    private static String variable(final byte[] environment) {
        int entry = 0;
        while (entry < environment.length) {
            int end = entry;
            while (end < environment.length && environment[end] != 0) {
                end++;
            }
            int same = 0;
            while (same < VARIABLE.length() && entry + same < end
                && environment[entry + same] == VARIABLE.charAt(same)) {
                same++;
            }
            if (same == VARIABLE.length()) {
                return new String(environment, entry + same, end - entry - same, StandardCharsets.UTF_8);
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

    /** Device and inode, found through the root of the process; its name if there is no such directory. */
    private Object identity() {
        if (name.isEmpty()) {
            return UNKNOWN;
        }
        try {
            return Files.readAttributes(seen, BasicFileAttributes.class).fileKey();
        } catch (final NoSuchFileException | NotDirectoryException e) {
            return name;
        } catch (final IOException | RuntimeException e) {
            return UNKNOWN;
        }
    }
}
