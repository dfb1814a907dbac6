/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** A process that a command started: its lines, its end, both waited for with a limit. Killed by {@link #close}. */
final class Child implements AutoCloseable {
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
    static Child start(final String name, final List<String> command, final Path errors) {
        try {
            return new Child(name, new ProcessBuilder(command).redirectInput(new File("/dev/null"))
                .redirectError(ProcessBuilder.Redirect.appendTo(errors.toFile())).start(), errors);
        } catch (final IOException e) {
            throw new IllegalStateException(name + " does not start: " + e.getMessage(), e);
        }
    }

    /**
     * The command line of another JVM like this one.
     *
     * @param arguments of the gpuseg program
     * @return java, this JVM's flags, the class path, the main class, the arguments
     */
    static List<String> java(final List<String> arguments) {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        boolean collectorChosen = false;
        for (final String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (!flag.startsWith("-agentlib") && !flag.startsWith("-javaagent") && !flag.startsWith("-Xm")) {
                command.add(flag);
                collectorChosen |= flag.startsWith("-XX:+Use") && flag.endsWith("GC");
            }
        }
        if (!collectorChosen) {
            command.add("-XX:+UseSerialGC");
        }
        if (!arguments.isEmpty() && arguments.get(0).equals("run")) {
            command.addAll(daemonFlags());
        } else {
            command.addAll(List.of("-Xms96m", "-Xmx96m"));
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Gpuseg.class.getName()));
        command.addAll(arguments);
        return command;
    }

    /** What the launchers give the daemon's JVM, but for the collector. */
    private static List<String> daemonFlags() {
        final Path file = Path.of(System.getProperty("gpuseg.root", "."), "config", "daemon.jvm");
        try (Stream<String> lines = Files.lines(file)) {
            return lines.filter(line -> line.startsWith("-") && !line.endsWith("GC")).toList();
        } catch (final IOException e) {
            throw new UncheckedIOException(file + " cannot be read: " + e.getMessage()
                + "; set -Dgpuseg.root to where gpuseg is installed", e);
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
     * @throws IllegalStateException if it ended or the time passed, with what it said
     */
    String await(final String text, final int limitSeconds) throws InterruptedException {
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

    /** Of a process that has ended: whether what it said last has been taken note of, and asked for. */
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
    int awaitExit(final int limitSeconds) throws InterruptedException, TimeoutException {
        if (!process.waitFor(limitSeconds, TimeUnit.SECONDS)) {
            throw new TimeoutException(name + " (pid " + process.pid() + ") did not end within " + limitSeconds + " s: "
                + said());
        }
        reader.join(KILL_WAIT_MS);
        lines.drainTo(seen);
        return process.exitValue();
    }

    /**
     * The last line it printed. After {@link #awaitExit}.
     *
     * @return the line, empty if there is none
     */
    String lastLine() {
        return seen.isEmpty() ? "" : seen.get(seen.size() - 1);
    }

    /**
     * All lines it printed. After {@link #awaitExit}.
     *
     * @return the lines
     */
    List<String> allLines() {
        return List.copyOf(seen);
    }

    /**
     * Output and errors, for a message.
     *
     * @return the last of both
     */
    String said() {
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

    long pid() {
        return process.pid();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    /** SIGTERM. */
    void terminate() {
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
