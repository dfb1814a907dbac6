/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** What the two levers of the stock driver have in common: a thread that traces, and no batches. */
abstract class TracedLever implements Lever {
    static final int ESRCH = 3;
    static final int EPERM = 1;
    private static final int ETIME = 62;

    private final Tracer tracer;
    private final byte[] payload;
    private final AtomicBoolean broughtBack = new AtomicBoolean();
    private final Map<AmdProcess, Boolean> off = new LinkedHashMap<>();   // tracer's thread

    TracedLever() {
        tracer = new Tracer(this::bringAllBack);
        payload = Held.payload(rung(), tracer.pageFd(), ProcessStatus.pid());
    }

    final Tracer tracer() {
        return tracer;
    }

    /** On the tracer's thread: 0 or -errno, with a reason if there is one. */
    abstract int takeOff(AmdProcess process);

    /** On the tracer's thread; only for what {@link #takeOff} was called for. 0 or -errno. */
    abstract int bringBack(AmdProcess process);

    /** On the tracer's thread: it is not named again. */
    abstract void letGo(AmdProcess process);

    /** On the tracer's thread, last. */
    abstract void closeAll();

    @Override
    public final boolean holdsInAdvance() {
        return false;
    }

    @Override
    public final void switchAll(final AmdProcess[] processes, final int count, final boolean disable) {
        final AmdProcess[] copy = Arrays.copyOf(processes, count);   // the thread may look later than we wait
        for (final AmdProcess p : copy) {
            p.result(-ETIME, "the kernel did not answer in time");
        }
        tracer.call(() -> {
            for (final AmdProcess p : copy) {
                p.result(disable ? disable(p) : enable(p), p.reason());
            }
            return true;
        });
    }

    private int disable(final AmdProcess p) {
        p.result(0, "");
        off.put(p, true);   // also when it fails half way
        return takeOff(p);
    }

    private int enable(final AmdProcess p) {
        p.result(0, "");
        if (!off.containsKey(p)) {
            return 0;
        }
        final int rc = bringBack(p);
        if (rc == 0 || !p.isAlive()) {
            off.remove(p);
            return 0;
        }
        return rc;
    }

    private void bringAllBack() {
        for (final AmdProcess p : off.keySet().toArray(AmdProcess[]::new)) {
            enable(p);
            broughtBack.set(true);
        }
    }

    @Override
    public final boolean beat() {
        return broughtBack.get() && broughtBack.getAndSet(false);
    }

    @Override
    public final byte[] heldPayload() {
        return payload;
    }

    @Override
    public final void forget(final AmdProcess process) {
        tracer.call(() -> {
            enable(process);
            off.remove(process);
            letGo(process);
            return true;
        });
    }

    @Override
    public final void close() {
        tracer.call(() -> {
            bringAllBack();
            closeAll();
            return true;
        });
        tracer.close();
    }
}
