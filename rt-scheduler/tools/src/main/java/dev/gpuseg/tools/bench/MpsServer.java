/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import dev.gpuseg.tools.process.Child;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** An MPS of a measurement's own, beside which no other program runs. {@link #close} ends it. One thread. */
public final class MpsServer implements AutoCloseable {
    /** The program that is started, looked for on the PATH. */
    public static final String CONTROL = "nvidia-cuda-mps-control";
    private static final int LIMIT_S = 60;

    private final List<String> environment;
    private final Path errors;

    /**
     * Starts it.
     *
     * @param root for its pipes and logs
     * @throws IllegalStateException if it does not start, with the reason
     */
    public MpsServer(final Path root) throws IOException, InterruptedException, TimeoutException {
        errors = root.resolve("errors-mps");
        environment = List.of("env",
            "CUDA_MPS_PIPE_DIRECTORY=" + Files.createDirectories(root.resolve("mps")),
            "CUDA_MPS_LOG_DIRECTORY=" + Files.createDirectories(root.resolve("mps-log")));
        final List<String> command = new ArrayList<>(environment);
        command.addAll(List.of(CONTROL, "-d"));
        try (Child control = Child.start(CONTROL, command, errors)) {
            final int status = control.awaitExit(LIMIT_S);
            if (status != 0) {
                throw new IllegalStateException(CONTROL + " -d ended with status " + status + ": " + control.said());
            }
        }
    }

    /** What stands before the command of a client. */
    public List<String> environment() {
        return environment;
    }

    @Override
    public void close() throws TimeoutException {
        final List<String> command = new ArrayList<>(environment);
        command.add(CONTROL);
        try (Child control = Child.startListening(CONTROL, command, errors)) {
            control.tell(List.of("quit"));
            control.awaitExit(LIMIT_S);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();   // told, and ends by itself
        }
    }
}
