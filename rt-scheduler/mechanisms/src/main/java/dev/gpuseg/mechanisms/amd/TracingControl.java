/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/** What the stock driver's two interfaces for tracers have in common: one tracing thread, and no batches. */
abstract class TracingControl implements QueueControl {
    private final Tracer tracer;
    private final byte[] payload;
    private final AtomicBoolean resumed = new AtomicBoolean();
    /** Or perhaps so; false: it could not be resumed, and is to be before it is suspended again. Tracer's thread. */
    private final Map<AmdProcess, Boolean> disabled = new LinkedHashMap<>();

    TracingControl() {
        tracer = new Tracer(this::resumeAll);
        payload = HeldPayload.of(controlInterface(), tracer.pageFd());
    }

    final Tracer tracer() {
        return tracer;
    }

    /** On the tracer's thread: 0 or -errno, with a reason if there is one. */
    abstract int suspendQueues(AmdProcess process);

    /** On the tracer's thread; only for a process that {@link #suspendQueues} was called for. 0 or -errno. */
    abstract int resumeQueues(AmdProcess process);

    /** On the tracer's thread: gives up what is kept for a process, which is not named again. */
    abstract void discard(AmdProcess process);

    /** On the tracer's thread, last. */
    abstract void discardAll();

    @Override
    public final boolean coversFutureQueues() {
        return false;
    }

    @Override
    public final void apply(final AmdProcess[] processes, final int count, final boolean disable) {
        final AmdProcess[] copy = Arrays.copyOf(processes, count);   // the thread may run after we stopped waiting
        for (final AmdProcess p : copy) {
            p.result(-Errno.ETIME, "the kernel did not answer in time");
        }
        tracer.call(() -> {
            for (final AmdProcess p : copy) {
                p.result(disable ? suspend(p) : resume(p), p.reason());
            }
            return true;
        });
    }

    private int suspend(final AmdProcess p) {
        p.result(0, "");
        if (!disabled.getOrDefault(p, true)) {
            final int rc = resume(p);
            if (rc != 0) {
                return rc;
            }
        }
        disabled.put(p, true);   // also if it fails half way
        return suspendQueues(p);
    }

    private int resume(final AmdProcess p) {
        p.result(0, "");
        if (!disabled.containsKey(p)) {
            return 0;
        }
        final int rc = resumeQueues(p);
        if (rc == 0 || !p.isAlive()) {
            disabled.remove(p);
            return 0;
        }
        disabled.put(p, false);   // some of it may run
        return rc;
    }

    private void resumeAll() {
        for (final AmdProcess p : disabled.keySet().toArray(AmdProcess[]::new)) {
            resume(p);
            resumed.set(true);
        }
    }

    @Override
    public final boolean heartbeat() {
        return resumed.get() && resumed.getAndSet(false);
    }

    @Override
    public final byte[] heldPayload() {
        return payload;
    }

    @Override
    public final void release(final AmdProcess process) {
        tracer.call(() -> {
            resume(process);
            disabled.remove(process);
            discard(process);
            return true;
        });
    }

    @Override
    public final void close() {
        tracer.call(() -> {
            resumeAll();
            discardAll();
            return true;
        });
        tracer.close();
    }
}
