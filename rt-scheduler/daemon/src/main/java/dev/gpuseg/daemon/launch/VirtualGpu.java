/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.process.StartUpException;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The virtual GPU of {@code gpuseg run --virtual-gpu}: a process of its own, which ends with this one however that
 * ends. Not thread-safe.
 */
final class VirtualGpu implements AutoCloseable {
    private static final long END_LIMIT_S = 3;

    private final Process process;

    private VirtualGpu(final Process process) {
        this.process = process;
    }

    /**
     * Starts one unless one answers in the directory.
     *
     * @param directory of the daemon; created if needed
     * @param priority  of the daemon, 0 = normal; the virtual GPU has the same, since hardware waits for no program
     * @return to be closed after the daemon
     * @throws StartUpException if it does not start, with the reason
     */
    static VirtualGpu start(final RuntimeDirectory directory, final int priority) {
        if (MechanismCatalog.get("sim").survey(directory).usable()) {
            return new VirtualGpu(null);
        }
        final Process process;
        final String said;
        try {
            directory.create();
            process = new ProcessBuilder(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
                directory.root().toString(), "--parent", Long.toString(ProcessHandle.current().pid()))
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
            process.getOutputStream().close();
            final BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
            said = out.readLine();
        } catch (final IOException | RuntimeException e) {
            throw new StartUpException("--virtual-gpu: " + e.getMessage(), e);
        }
        if (said == null) {
            throw new StartUpException("--virtual-gpu: gpuseg-vgpu ended at once; its message above says why");
        }
        final VirtualGpu gpu = new VirtualGpu(process);
        if (priority > 0) {
            gpu.raise(priority);
        }
        return gpu;
    }

    /** Its threads are those of its start; any later one has the class of the thread that makes it. */
    private void raise(final int priority) {
        try (Stream<Path> threads = Files.list(Path.of("/proc", Long.toString(process.pid()), "task"))) {
            threads.forEach(thread -> ThreadControl.realTime(Integer.parseInt(thread.getFileName().toString()),
                priority));
        } catch (final IOException | SystemCallException e) {
            close();
            throw new StartUpException("--virtual-gpu: gpuseg-vgpu does not get priority " + priority + ": "
                + e.getMessage(), e);
        }
    }

    /** Ends the one that was started here. */
    @Override
    public void close() {
        if (process == null) {
            return;
        }
        process.destroy();
        try {
            if (!process.waitFor(END_LIMIT_S, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (final InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
