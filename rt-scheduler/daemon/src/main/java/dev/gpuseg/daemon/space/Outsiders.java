/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Programs that have a GPU open and are not clients of the space's MPS server: they take time slices of the whole GPU,
 * the reserve included. What cannot be read (another user's process, one that ends) is left out. One thread.
 */
final class Outsiders {
    /** Source: Linux, Documentation/admin-guide/devices.txt: a file for each GPU. */
    private static final Pattern GPU = Pattern.compile("/dev/nvidia[0-9]+");
    private static final Pattern PID = Pattern.compile("[1-9][0-9]{0,9}");
    /** The control daemon, and its servers. */
    private static final String OF_MPS = "nvidia-cuda-mps";

    private final Path proc;
    private final Path pipe;

    /**
     * Looks into one /proc.
     *
     * @param proc /proc
     * @param pipe where clients find the MPS server
     */
    Outsiders(final Path proc, final Path pipe) {
        this.proc = proc;
        this.pipe = pipe;
    }

    /**
     * Who is outside now. Reads the links of all descriptors that it may read: some milliseconds.
     *
     * @return "name[pid]" of each
     * @throws IOException if there is no /proc
     */
    List<String> look() throws IOException {
        final List<String> found = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc)) {
            for (final Path process : processes) {
                final String pid = process.getFileName().toString();
                if (PID.matcher(pid).matches() && hasGpu(process)) {
                    final String name = text(process.resolve("comm")).strip();
                    if (!name.startsWith(OF_MPS) && !isInside(process)) {
                        found.add(name + "[" + pid + "]");
                    }
                }
            }
        }
        return found;
    }

    private static boolean hasGpu(final Path process) {
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(process.resolve("fd"))) {
            for (final Path descriptor : descriptors) {
                if (GPU.matcher(Files.readSymbolicLink(descriptor).toString()).matches()) {
                    return true;
                }
            }
        } catch (final IOException | DirectoryIteratorException e) {
            return false;   // not ours to see, or it has ended
        }
        return false;
    }

    private boolean isInside(final Path process) {
        return List.of(text(process.resolve("environ")).split("\0")).contains(SpaceKeeper.PIPE_VARIABLE + "=" + pipe);
    }

    /** Empty if it cannot be read. */
    private static String text(final Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (final IOException e) {
            return "";
        }
    }
}
