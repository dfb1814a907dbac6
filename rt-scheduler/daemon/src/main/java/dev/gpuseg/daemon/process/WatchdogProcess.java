/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.WatchdogPage;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.LongConsumer;

/** The C watchdog of this daemon: started with it, started again if it dies, left to finish by itself. */
final class WatchdogProcess implements Watchdog {
    private static final int HIGHEST = 99;
    /** Where all processors are taken a new process can wait for one for seconds. */
    private static final long READY_NS = 30_000_000_000L;
    private static final long NS_PER_S = 1_000_000_000L;
    private static final long NS_PER_MS = 1_000_000L;
    private static final long POLL_MS = 2;
    private static final int EXIT_MS = 1_000;

    private final Process process;
    private final WatchdogPage page;

    private WatchdogProcess(final Process process, final WatchdogPage page) {
        this.process = process;
        this.page = page;
    }

    /**
     * Starts the watchdog and waits until it watches.
     *
     * @param directory of the daemon
     * @param periodMs  no application stays frozen longer: it releases when the heartbeat is nine tenths of this old
     * @param priority  SCHED_FIFO priority of the dispatcher, 0 = none; the watchdog gets the next higher one, for
     *                  what starves the daemon must not starve it. Without, it takes SCHED_FIFO by itself
     *                  if it may
     * @param heartbeat called with the time while waiting, so that the watchdog sees a living daemon
     * @return the watchdog
     * @throws StartUpException if it does not start
     */
    static WatchdogProcess start(final RuntimeDirectory directory, final int periodMs, final int priority,
        final LongConsumer heartbeat) {
        final Path program = program();
        final Process process;
        try {
            final List<String> command = new ArrayList<>(List.of(program.toString(), "--dir",
                directory.root().toString(), "--daemon-pid", Long.toString(ProcessHandle.current().pid()), "--period",
                periodMs + "ms"));
            if (priority > 0) {
                command.addAll(List.of("--scheduling", "fifo:" + Math.min(HIGHEST, priority + 1)));
            }
            process = new ProcessBuilder(command)
                .redirectInput(new File("/dev/null"))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        } catch (final IOException e) {
            throw new StartUpException("watchdog " + program + ": " + e.getMessage()
                + "; build it, or set no-watchdog: true", e);
        }
        final long deadlineNs = System.nanoTime() + READY_NS;
        while (System.nanoTime() - deadlineNs < 0 && process.isAlive()) {
            heartbeat.accept(System.nanoTime());
            final WatchdogPage page = pageOf(directory, process.pid());
            if (page != null) {
                return new WatchdogProcess(process, page);
            }
            try {
                TimeUnit.MILLISECONDS.sleep(POLL_MS);
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        final String how = process.isAlive()
            ? "did not become ready in " + READY_NS / NS_PER_S + " s" + used(process.pid())
            : "exited with status " + process.exitValue();
        process.destroy();
        throw new StartUpException("watchdog " + program + " " + how + "; its message is above; "
            + "without it: no-watchdog: true in the settings file (a dead daemon can then leave applications frozen)");
    }

    /** What it did meanwhile, of schedstat (proc(5)): a machine that is full is told from one that hangs. */
    private static String used(final long pid) {
        try {
            final String[] ns = Files.readString(Path.of("/proc", Long.toString(pid), "schedstat")).split(" ");
            return ", in which it ran for " + Long.parseLong(ns[0]) / NS_PER_MS + " ms and waited for a processor for "
                + Long.parseLong(ns[1]) / NS_PER_MS + " ms";
        } catch (final IOException | NumberFormatException e) {
            return "";   // it has just ended, or this kernel does not count
        }
    }

    private static Path program() {
        try {
            return NativePrograms.named("gpuseg-watchdog");
        } catch (final IllegalStateException e) {
            throw new StartUpException(e.getMessage() + "; or set no-watchdog: true", e);
        }
    }

    private static WatchdogPage pageOf(final RuntimeDirectory directory, final long pid) {
        final WatchdogPage page;
        try {
            page = WatchdogPage.map(directory.watchdog());
        } catch (final java.io.UncheckedIOException | IllegalStateException e) {
            return null;   // not there, or not complete yet
        }
        if (page.pid() != pid) {
            page.close();   // a former watchdog's
            return null;
        }
        return page;
    }

    @Override
    public WatchdogPage page() {
        return page;
    }

    @Override
    public long pid() {
        return process.pid();
    }

    @Override
    public boolean isAlive() {
        return process.isAlive();
    }

    /** After the clean stop was announced and nothing is held: it leaves by itself; if it lingers, it is told to. */
    @Override
    public void close() {
        try {
            if (!process.waitFor(EXIT_MS, TimeUnit.MILLISECONDS)) {
                process.destroy();
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            process.destroy();
        }
    }
}
