/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A process that a command started: its lines, its end, both waited for with a limit. Killed by {@link #close}. */
public final class Child implements AutoCloseable {
    private static final int KILL_WAIT_MS = 2_000;

    private final String name;
    private final Process process;
    private final Path errors;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final List<String> seen = new ArrayList<>();
    private final Thread reader;

    private Child(final String name, final Process process, final Path errors) {
        this.name = name;
        this.process = process;
        this.errors = errors;
        reader = new Thread(this::read, "gpuseg-lines-of-" + name);
        reader.setDaemon(true);
        reader.start();
    }

    /**
     * Starts a process.
     *
     * @param name    for messages
     * @param command what to run
     * @param errors  file for its standard error
     * @return the process
     */
    public static Child start(final String name, final List<String> command, final Path errors) {
        try {
            return new Child(name, new ProcessBuilder(command).redirectInput(new File("/dev/null"))
                .redirectError(ProcessBuilder.Redirect.appendTo(errors.toFile())).start(), errors);
        } catch (final IOException e) {
            throw new IllegalStateException(name + " does not start: " + e.getMessage(), e);
        }
    }

    /**
     * Starts a process that is told more later, by {@link #tell}.
     *
     * @param name    for messages
     * @param command what to run
     * @param errors  file for its standard error
     * @return the process
     */
    public static Child startListening(final String name, final List<String> command, final Path errors) {
        try {
            return new Child(name, new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.appendTo(errors.toFile())).start(), errors);
        } catch (final IOException e) {
            throw new IllegalStateException(name + " does not start: " + e.getMessage(), e);
        }
    }

    /**
     * Writes lines to its standard input, and ends that.
     *
     * @param text the lines
     * @throws IllegalStateException if it does not read
     */
    public void tell(final List<String> text) {
        try (OutputStream to = process.getOutputStream()) {
            to.write((String.join("\n", text) + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (final IOException e) {
            throw new IllegalStateException(name + " does not listen: " + e.getMessage() + "; " + said(), e);
        }
    }

    private void read() {
        try (BufferedReader in = new BufferedReader(
            new java.io.InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                lines.add(line);
            }
        } catch (final IOException e) {
            lines.add("(its output broke: " + e.getMessage() + ")");
        }
    }

    /**
     * Waits for a line that contains a text.
     *
     * @param text     what to look for
     * @param limitSeconds how long to wait
     * @return the line
     * @throws IllegalStateException if it ended or the time passed, with its output
     */
    public String await(final String text, final int limitSeconds) throws InterruptedException {
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitSeconds);
        while (System.nanoTime() - limitNs < 0) {
            final String line = lines.poll(20, TimeUnit.MILLISECONDS);
            if (line != null) {
                seen.add(line);
                if (line.contains(text)) {
                    return line;
                }
            } else if (!process.isAlive() && hasReadAll()) {
                throw new IllegalStateException(name + " ended with status " + process.exitValue() + " instead of "
                    + "saying \"" + text + "\": " + said());
            }
        }
        throw new IllegalStateException(name + " did not say \"" + text + "\" within " + limitSeconds + " s: "
            + said());
    }

    /** Of a process that has ended: whether its last output was read, and asked for. */
    private boolean hasReadAll() throws InterruptedException {
        reader.join(KILL_WAIT_MS);   // longer only if a process that it started holds its output
        return lines.isEmpty();
    }

    /**
     * Waits for its end.
     *
     * @param limitSeconds how long
     * @return exit status
     * @throws TimeoutException if it lives on
     */
    public int awaitExit(final int limitSeconds) throws InterruptedException, TimeoutException {
        if (!process.waitFor(limitSeconds, TimeUnit.SECONDS)) {
            throw new TimeoutException(name + " (pid " + process.pid() + ") did not end within " + limitSeconds + " s: "
                + said());
        }
        reader.join(KILL_WAIT_MS);
        lines.drainTo(seen);
        return process.exitValue();
    }

    /** The last line it printed. After {@link #awaitExit}. Empty if there is none. */
    public String lastLine() {
        return seen.isEmpty() ? "" : seen.get(seen.size() - 1);
    }

    /** All lines it printed. After {@link #awaitExit}. */
    public List<String> allLines() {
        return List.copyOf(seen);
    }

    /** Output and errors, for a message: the last of both. */
    public String said() {
        String error = "";
        try {
            if (Files.exists(errors)) {
                final List<String> all = Files.readAllLines(errors);
                error = String.join(" | ", all.subList(Math.max(0, all.size() - 40), all.size()));
            }
        } catch (final IOException e) {
            error = "(" + errors + ": " + e.getMessage() + ")";
        }
        return (lastLine() + " " + error).strip();
    }

    public long pid() {
        return process.pid();
    }

    public boolean isAlive() {
        return process.isAlive();
    }

    /** SIGTERM. */
    public void terminate() {
        process.destroy();
    }

    @Override
    public void close() {
        if (process.isAlive()) {
            process.destroyForcibly();
            try {
                process.waitFor(KILL_WAIT_MS, TimeUnit.MILLISECONDS);
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
