/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import dev.gpuseg.ipc.RuntimeDirectory;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * What a command that starts processes does when a signal ends it: it ends all processes that come from this one, also
 * those that are stopped, and deletes directories in memory. Removed when the command ends by itself.
 */
public final class InterruptHook {
    private static final int PASSES = 40;
    private static final int QUIET_PASSES = 3;
    private static final long PASS_MS = 50;

    private final Thread thread;
    private final AtomicBoolean began = new AtomicBoolean();

    private InterruptHook(final List<Path> directories) {
        thread = new Thread(() -> {
            began.set(true);
            endDescendants();
            directories.forEach(RuntimeDirectory::deleteTree);
        }, "gpuseg-interrupted");
    }

    /**
     * Watches for the end of this JVM.
     *
     * @param directories deleted then, with what is in them
     * @return to be removed at the end of the command
     */
    public static InterruptHook deleting(final List<Path> directories) {
        final InterruptHook hook = new InterruptHook(List.copyOf(directories));
        Runtime.getRuntime().addShutdownHook(hook.thread);
        return hook;
    }

    /** The main thread may start further ones meanwhile: until none was left for some passes. */
    private static void endDescendants() {
        int quiet = 0;
        for (int pass = 0; pass < PASSES && quiet < QUIET_PASSES; pass++) {
            // a list first: the children of one that has ended are no descendants any more
            final List<ProcessHandle> alive = ProcessHandle.current().descendants().filter(ProcessHandle::isAlive)
                .toList();
            alive.forEach(ProcessHandle::destroyForcibly);
            quiet = alive.isEmpty() ? quiet + 1 : 0;
            try {
                TimeUnit.MILLISECONDS.sleep(PASS_MS);
            } catch (final InterruptedException e) {
                return;
            }
        }
    }

    /**
     * The command ends by itself. If the JVM is ending already, waits for that end: nothing more is to be said.
     *
     * @throws InterruptedException if that wait is interrupted
     */
    public void remove() throws InterruptedException {
        try {
            Runtime.getRuntime().removeShutdownHook(thread);
        } catch (final IllegalStateException e) {
            if (began.get() && Thread.currentThread() != thread) {
                thread.join();
            }
        }
    }
}
