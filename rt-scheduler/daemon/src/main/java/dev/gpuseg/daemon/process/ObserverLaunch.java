/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.jvm.RuntimeThreads;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.observer.Observer;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Starts the observer of a daemon, connects to the one that runs as a service, or says why there is none. */
public final class ObserverLaunch {
    /** Socket of the service gpuseg-observer. */
    public static final Path SERVICE = Path.of("/run/gpuseg-observer/socket");
    /** The program. */
    public static final String PROGRAM = "gpuseg-observer";
    /** Property: options of the program, separated by blanks, for tests on a stand-in. */
    static final String OPTIONS_PROPERTY = "gpuseg.observer.options";
    private static final long START_MS = 5_000;
    private static final long LOOK_NS = 20_000_000;

    private ObserverLaunch() {
    }

    /**
     * Opens the observer.
     *
     * @param mode      of the daemon
     * @param mechanism name of its mechanism
     * @param priority  SCHED_FIFO priority of the dispatcher, 0 = none; if there is one, a child that is started is
     *                  real-time, too
     * @return an observer that sees, or none, with the reason
     * @throws StartUpException if there must be one and it does not work, with the reason
     */
    static Observer open(final ObserverMode mode, final String mechanism, final int priority) {
        if (mode == ObserverMode.OFF) {
            return Observer.none("switched off (observer: off)");
        }
        if (!MechanismCatalog.get(mechanism).observed()) {
            return Observer.none("mechanism " + mechanism + " does not use it");
        }
        final Observer observer = start(priority);
        if (observer.await(START_MS)) {
            return observer;
        }
        final String problem = observer.problem().isEmpty() ? "no answer in " + START_MS + " ms" : observer.problem();
        observer.close();
        if (mode == ObserverMode.ON) {
            throw new StartUpException("observer is on: " + problem + "; use auto to scan instead");
        }
        return Observer.none(problem);
    }

    /**
     * Waits for a service that starts beside this daemon, as in a pod: it has its directory before it has its socket.
     *
     * @param socket of the service
     * @param millis at most this long
     * @return whether the socket is there; false at once where no such service is
     */
    static boolean awaitService(final Path socket, final long millis) {
        final long untilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (!Files.exists(socket)) {
            if (!Files.isDirectory(socket.getParent()) || System.nanoTime() - untilNs >= 0) {
                return false;
            }
            LockSupport.parkNanos(LOOK_NS);
        }
        return true;
    }

    private static Observer start(final int priority) {
        awaitService(SERVICE, START_MS);
        final String given = System.getProperty(OPTIONS_PROPERTY, "").strip();
        final String options = priority > 0
            ? (given + " --priority " + Math.min(priority, RuntimeThreads.FOLLOWERS)).strip() : given;
        try {
            return Observer.open(SERVICE, NativePrograms.named(PROGRAM),
                options.isEmpty() ? List.of() : List.of(options.split("\\s+")));
        } catch (final IllegalStateException e) {
            return Observer.none(e.getMessage() + " (it is built where clang and libbpf-dev are installed)");
        }
    }
}
