/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Builds and runs programs written in C for tests. A missing compiler is a failure, not a reason to skip. */
public final class NativeTool {
    private NativeTool() {
    }

    /** The checkout. */
    public static Path root() {
        final String root = System.getProperty("gpuseg.root");
        if (root == null) {
            throw new IllegalStateException("system property gpuseg.root is not set; run the tests through Maven");
        }
        return Path.of(root);
    }

    /** The interoperability writer, made by the segment-api's Makefile. */
    public static Path queueWriter() {
        final Path writer = root().resolve("segment-api/build/gpuseg-queue-writer");
        if (!Files.isExecutable(writer)) {
            run(120, "make", "-s", "-C", root().resolve("segment-api").toString(), "build/gpuseg-queue-writer");
        }
        return writer;
    }

    /** Compiles one source file of the checkout, with headers from these folders of it, too. */
    public static Path compile(final Path directory, final Path source, final String... folders) {
        final Path program = directory.resolve(source.getFileName().toString().replace(".c", ""));
        final List<String> command = new ArrayList<>(List.of("gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall",
            "-Wextra", "-Werror", "-I" + root().resolve("segment-api/include")));
        for (final String folder : folders) {
            command.add("-I" + root().resolve(folder));
        }
        command.addAll(List.of(source.toString(), "-o", program.toString()));
        run(60, command.toArray(String[]::new));
        return program;
    }

    /** Runs a program to its end and returns what it printed; anything but exit status 0 is a failure. */
    public static String run(final int limitSeconds, final String... command) {
        try {
            final Path out = Files.createTempFile("gpuseg-tool", ".out");
            final Process process = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(out.toFile()).start();
            final boolean ended = process.waitFor(limitSeconds, TimeUnit.SECONDS);
            if (!ended) {
                process.destroyForcibly();
            }
            final String text = Files.readString(out, StandardCharsets.UTF_8);
            Files.delete(out);
            if (!ended || process.exitValue() != 0) {
                throw new AssertionError(List.of(command) + (ended ? " exited with " + process.exitValue()
                    : " did not end within " + limitSeconds + " s") + ": " + text);
            }
            return text;
        } catch (final IOException e) {
            throw new AssertionError(List.of(command) + " cannot be run: " + e.getMessage(), e);
        } catch (final InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** Starts a program without waiting for it. */
    public static Process start(final Object... command) throws IOException {
        final List<String> words = new ArrayList<>();
        for (final Object word : command) {
            words.add(word.toString());
        }
        final Path out = Files.createTempFile("gpuseg-tool", ".log");
        out.toFile().deleteOnExit();
        return new ProcessBuilder(words).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    }
}
