/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.daemon.admission.TurnsControl;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.enforce.Enforcer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Takes admission's word to the dispatcher, and waits for the enforcer of the only GPU. */
record DaemonTurns(DispatcherAgent dispatcher, Enforcer enforcer) implements TurnsControl {
    /** A call of the driver took 130 ms at most beside two processes a second; some of them follow one another. */
    private static final long LIMIT_NS = 2_000_000_000L;
    private static final long LOOK_EVERY_MS = 1;

    @Override
    public void take(final boolean taken, final Map<String, Long> slicesNs, final String proof) {
        dispatcher.takeTurns(taken, slicesNs, proof);
    }

    @Override
    public boolean isInForce() {
        final long limitNs = System.nanoTime() + LIMIT_NS;
        try {
            final CompletableFuture<Void> decided = new CompletableFuture<>();
            dispatcher.submit(() -> decided.complete(null));   // what was submitted before has been looked at by then
            decided.get(limitNs - System.nanoTime(), TimeUnit.NANOSECONDS);
            final CompletableFuture<Boolean> sliced = new CompletableFuture<>();
            enforcer.whenSliced(sliced::complete);
            if (!sliced.get(limitNs - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                return false;
            }
            while (!enforcer.isIdle()) {
                if (System.nanoTime() - limitNs >= 0) {
                    return false;
                }
                TimeUnit.MILLISECONDS.sleep(LOOK_EVERY_MS);
            }
            return true;
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } catch (final TimeoutException e) {
            return false;
        } catch (final ExecutionException e) {
            throw new IllegalStateException("nothing completes these but a value", e);
        }
    }
}
