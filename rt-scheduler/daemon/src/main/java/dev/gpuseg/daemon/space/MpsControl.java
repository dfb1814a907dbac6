/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * NVIDIA's MPS control daemon of one pipe directory. It is a process of its own that outlives this one, as its clients
 * do. Nothing of the device is set. One thread at a time.
 */
final class MpsControl {
    /** What is started, looked for on the PATH. */
    static final String PROGRAM = "nvidia-cuda-mps-control";
    private static final String PID_FILE = PROGRAM + ".pid";
    private static final long LIMIT_S = 5;
    private static final int SHUTDOWN_S = 2;

    private final Path pipe;
    private final Path logs;
    private ProcessHandle seen;

    /**
     * @param pipe directory by which clients find the server; it need not exist yet
     * @param logs directory of its logs
     */
    MpsControl(final Path pipe, final Path logs) {
        this.pipe = pipe;
        this.logs = logs;
    }

    Path pipe() {
        return pipe;
    }

    /**
     * Starts it.
     *
     * @throws IOException if it does not start, with the reason
     */
    void start() throws IOException {
        Files.createDirectories(pipe);
        Files.createDirectories(logs);
        seen = null;   // it may come up after the limit: then that is the one
        final Answer answer = run(List.of(PROGRAM, "-d"), "");
        if (answer.status() != 0) {
            throw new IOException(PROGRAM + " -d ended with status " + answer.status() + ": " + answer.text()
                + "; its logs are in " + logs);
        }
        seen = process();
    }

    /** Whether it is there and answers. Starts a process. */
    boolean answers() {
        try {
            return Files.isDirectory(pipe) && ask("get_server_list").status() == 0;
        } catch (final IOException e) {
            return false;   // no such program: then nobody answers either
        }
    }

    /** Whether the process that its own note names lives, and is the one that it named at first. Cheap. */
    boolean isAlive() {
        final ProcessHandle noted = process();
        if (seen == null) {
            seen = noted;
        }
        return noted != null && noted.equals(seen);   // a handle has the time of the process's start
    }

    private ProcessHandle process() {
        final long pid = pid();
        return pid == 0 ? null : ProcessHandle.of(pid).orElse(null);
    }

    /** Its process, as it notes itself; 0 if it does not. */
    long pid() {
        try {
            final String text = Files.readString(pipe.resolve(PID_FILE), StandardCharsets.US_ASCII).strip();
            return text.matches("[0-9]{1,10}") ? Long.parseLong(text) : 0;
        } catch (final IOException | UncheckedIOException e) {
            return 0;   // it has not been started, or has ended
        }
    }

    /**
     * The number of clients of all its servers.
     *
     * @throws IOException if it does not answer
     */
    int clients() throws IOException {
        int clients = 0;
        for (final String server : numbers(answer("get_server_list"))) {
            clients += numbers(answer("get_client_list " + server)).size();
        }
        return clients;
    }

    /**
     * Ends it and its servers. It must have no clients.
     *
     * @throws IOException if it does not answer
     */
    void quit() throws IOException {
        answer("quit -t " + SHUTDOWN_S);
    }

    private static List<String> numbers(final Answer answer) {
        return answer.text().lines().map(String::strip).filter(line -> line.matches("[0-9]+")).toList();
    }

    /** One that must be an answer: a control daemon that hangs is not one without clients. */
    private Answer answer(final String command) throws IOException {
        final Answer answer = ask(command);
        if (answer.status() != 0) {
            throw new IOException(command + ": status " + answer.status() + ": " + answer.text());
        }
        return answer;
    }

    private Answer ask(final String command) throws IOException {
        return run(List.of(PROGRAM), command + "\n");
    }

    /** What a command printed, and its status; -1 if it did not end in time. */
    private record Answer(int status, String text) {
    }

    private Answer run(final List<String> command, final String input) throws IOException {
        final Path said = Files.createTempFile(logs.getParent(), "mps", ".said");
        try {
            final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(said.toFile());
            if (input.isEmpty()) {
                builder.redirectInput(new File("/dev/null"));
            }
            builder.environment().put("CUDA_MPS_PIPE_DIRECTORY", pipe.toString());
            builder.environment().put("CUDA_MPS_LOG_DIRECTORY", logs.toString());
            final Process process = builder.start();
            if (!input.isEmpty()) {
                try (var to = process.getOutputStream()) {
                    to.write(input.getBytes(StandardCharsets.US_ASCII));
                } catch (final IOException e) {
                    if (process.isAlive()) {
                        throw e;   // else it has ended without reading, and its status says why
                    }
                }
            }
            if (!process.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return new Answer(-1, "no answer within " + LIMIT_S + " s");
            }
            return new Answer(process.exitValue(), Files.readString(said).strip());
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while " + command.get(0) + " ran", e);
        } finally {
            Files.deleteIfExists(said);
        }
    }
}
