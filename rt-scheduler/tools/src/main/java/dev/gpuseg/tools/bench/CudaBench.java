/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.tools.process.Child;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/** Starts the CUDA programs of {@code rt-scheduler/native/gpu-bench}. One thread. */
public final class CudaBench {
    private static final int START_LIMIT_S = 120;
    private static final int RUN_LIMIT_S = 240;
    /** Of the page of a program, {@code rt-scheduler/native/gpu-bench/bench_page.h}; a test compares them. */
    static final int PAGE_BYTES = 4096;
    static final int READY_AT = 4;
    static final int STOP_AT = 8;
    static final int KERNELS_AT = 16;
    static final int WRONG_AT = 24;
    static final int SET_UP_AT = 48;
    static final int GATE_AT = 12;
    private static final int DONE = 2;

    private final Path root;

    /** Keeps the files of its processes there. */
    public CudaBench(final Path root) {
        this.root = root;
    }

    /** A best-effort process and the page it counts in. */
    public record Other(Child child, MappedByteBuffer page, Path file) {
        public int pid() {
            return page.getInt(0);
        }

        public long kernels() {
            return page.getLong(KERNELS_AT);
        }

        long wrong() {
            return page.getLong(WRONG_AT);
        }

        void askToStop() {
            page.putInt(STOP_AT, 1);
        }

        /** Lets a process start that waits for its gate. */
        void openGate() {
            page.putInt(GATE_AT, 1);
        }

        /** Waits until a process waits for its gate. */
        void awaitSetUp() throws InterruptedException {
            final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_LIMIT_S);
            while (page.getLong(SET_UP_AT) == 0) {
                if (!child.isAlive() || System.nanoTime() - limitNs > 0) {
                    throw new IllegalStateException("a process does not get ready: " + child.said());
                }
                Thread.sleep(5);
            }
        }

        /** Waits until a process that stays has done its jobs, or has ended without. */
        void awaitDone(final int limitSeconds) throws InterruptedException {
            final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitSeconds);
            while (page.getInt(GATE_AT) != DONE && child.isAlive()) {
                if (System.nanoTime() - limitNs > 0) {
                    throw new IllegalStateException("a process does not end its jobs within " + limitSeconds + " s: "
                        + child.said());
                }
                Thread.sleep(5);
            }
        }

        public void awaitReady() throws InterruptedException {
            final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_LIMIT_S);
            while (page.getInt(READY_AT) != 1) {
                if (!child.isAlive() || System.nanoTime() - limitNs > 0) {
                    throw new IllegalStateException("a best-effort process does not work: " + child.said());
                }
                Thread.sleep(5);
            }
        }
    }

    /** Asks all to stop, then waits for each. */
    public static void stop(final List<Other> running) throws InterruptedException, TimeoutException {
        for (final Other o : running) {
            o.askToStop();
        }
        for (final Other o : running) {
            try {
                o.child().awaitExit(START_LIMIT_S);
            } finally {
                o.child().close();
            }
        }
    }

    /** Kills what still runs. */
    static void close(final List<Other> running) {
        running.forEach(o -> o.child().close());
    }

    /**
     * What a program printed at its end.
     *
     * @param status   exit status
     * @param lastLine last line of its output
     * @param said     for a message
     */
    record Answer(int status, String lastLine, String said) {
    }

    public static String program(final String which) {
        try {
            return NativePrograms.named("gpuseg-bench-" + which).toString();
        } catch (final IllegalStateException e) {
            throw new IllegalStateException(e.getMessage() + " (CUDA programs: make -C rt-scheduler/native gpu-bench,"
                + " which needs nvcc)", e);
        }
    }

    /** Length of one iteration of the kernel after five seconds of load, as the programs take it; ns. */
    public String nsPerIteration(final String... options) throws InterruptedException, TimeoutException {
        final List<String> command = new ArrayList<>(List.of(program("rt"), "--calibrate"));
        command.addAll(List.of(options));
        return run("calibration", command);
    }

    /** Kernels back to back until stopped; gpu -1 = the first that the environment shows. */
    public Other startOther(final String name, final double kernelMs, final String perIteration,
        final int gpu) throws IOException {
        return startOther(name, kernelMs, perIteration, gpu, List.of());
    }

    /** The same with a command before it. */
    Other startOther(final String name, final double kernelMs, final String perIteration, final int gpu,
        final List<String> environment) throws IOException {
        return startCounting(name, page -> {
            final List<String> command = new ArrayList<>(environment);
            command.addAll(List.of(program("be"), page.toString(), Double.toString(kernelMs), perIteration,
                Integer.toString(RUN_LIMIT_S * 4), Integer.toString(gpu)));
            return command;
        });
    }

    /** A process that counts in a page (struct be_page). */
    Other startCounting(final String name, final Function<Path, List<String>> program)
        throws IOException {
        final Path file = root.resolve("other-" + name);
        Files.write(file, new byte[PAGE_BYTES]);
        final MappedByteBuffer page;
        final Child child = Child.start("process " + name, program.apply(file), errorsOf(name));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            page = channel.map(FileChannel.MapMode.READ_WRITE, 0, PAGE_BYTES);
        }
        page.order(ByteOrder.LITTLE_ENDIAN);
        return new Other(child, page, file);
    }

    private Path errorsOf(final String name) {
        return root.resolve("errors-" + name);
    }

    /** Runs a program to its end, whatever its status. */
    Answer answer(final String name, final List<String> command) throws InterruptedException, TimeoutException {
        try (Child child = Child.start(name, command, errorsOf(name))) {
            final int status = child.awaitExit(RUN_LIMIT_S);
            return new Answer(status, child.lastLine(), child.said());
        }
    }

    /** Runs a program to its end and gives its last line. */
    public String run(final String name, final List<String> command) throws InterruptedException, TimeoutException {
        final Answer answer = answer(name, command);
        if (answer.status() != 0) {
            throw new IllegalStateException(name + " failed: " + answer.said());
        }
        return answer.lastLine();
    }
}
