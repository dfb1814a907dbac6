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
 * Who has a GPU open: programs that are not clients of the space's MPS server take time slices of the whole GPU, the
 * reserve included; best-effort programs inside may have more processes than places, each with the limit of a place.
 * What cannot be read (another user's process, one that ends) is left out. One thread, but for {@link #isInside}.
 */
final class Outsiders {
    /** Source: Linux, Documentation/admin-guide/devices.txt: a file for each GPU. */
    private static final Pattern GPU = Pattern.compile("/dev/nvidia[0-9]+");
    private static final Pattern PID = Pattern.compile("[1-9][0-9]{0,9}");
    private static final String VARIABLE = SpaceKeeper.PIPE_VARIABLE + "=";
    /** Where clients look that are not told. Source: MPS, environment variables, driver 580. */
    private static final String DEFAULT = "/tmp/nvidia-mps";
    /** The control daemon, and its servers. */
    private static final String OF_MPS = "nvidia-cuda-mps";
    /** Of best effort inside, as {@code gpuseg exec} starts it. */
    private static final String LOW = "CUDA_MPS_CLIENT_PRIORITY=1";

    /**
     * What was seen.
     *
     * @param outside  "name[pid]" of each program outside
     * @param occupied processes of best-effort programs inside
     */
    record Seen(List<String> outside, int occupied) {
    }

    private final Path proc;
    private final String pipe;

    /**
     * Looks into one /proc.
     *
     * @param proc /proc
     * @param pipe where clients find the MPS server
     */
    Outsiders(final Path proc, final Path pipe) {
        this.proc = proc;
        this.pipe = pipe.toString();
    }

    /**
     * Looks. Reads the links of all descriptors that it may read: some milliseconds.
     *
     * @return who is there now
     * @throws IOException if there is no /proc
     */
    Seen look() throws IOException {
        final List<String> outside = new ArrayList<>();
        int occupied = 0;
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc)) {
            for (final Path process : processes) {
                final String pid = process.getFileName().toString();
                if (PID.matcher(pid).matches() && hasGpu(process)) {
                    final List<String> environment = environment(process);
                    if (isClient(environment)) {
                        occupied += environment.contains(LOW) ? 1 : 0;
                    } else if (!isOfMps(process)) {
                        outside.add(name(process) + "[" + pid + "]");
                    }
                }
            }
        }
        return new Seen(outside, occupied);
    }

    /** Whether a program was started as a client of the server, or is an MPS server. Any thread. */
    boolean isInside(final int pid) {
        final Path process = proc.resolve(Integer.toString(pid));
        return isClient(environment(process)) || isOfMps(process);
    }

    private boolean isClient(final List<String> environment) {
        return pipe.equals(environment.stream().filter(entry -> entry.startsWith(VARIABLE)).findFirst()
            .map(entry -> entry.substring(VARIABLE.length())).orElse(DEFAULT));
    }

    private static boolean isOfMps(final Path process) {
        return name(process).startsWith(OF_MPS);
    }

    private static String name(final Path process) {
        return text(process.resolve("comm")).strip();
    }

    private static List<String> environment(final Path process) {
        return List.of(text(process.resolve("environ")).split("\0"));
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

    /** Empty if it cannot be read. */
    private static String text(final Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (final IOException e) {
            return "";
        }
    }
}
