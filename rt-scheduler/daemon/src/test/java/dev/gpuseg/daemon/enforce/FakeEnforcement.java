/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;

/** An enforcer that enforces when the test says so. */
public final class FakeEnforcement implements Enforcement {
    public final FakeMechanism mechanism = new FakeMechanism();
    public final List<String> calls = new ArrayList<>();
    final DesiredState desired;
    public boolean incomplete;
    /** Thrown by each look at the results. */
    public RuntimeException failure;
    private final List<UnsafeBuffer> results = new ArrayList<>();
    private final int contexts;
    private long enforcedVersion;
    private long enforcedNs;

    public FakeEnforcement(final int maxContexts) {
        contexts = maxContexts + 1;
        desired = new DesiredState(contexts);
    }

    /** Everything that was published is off. */
    public void enforce(final long atNs) {
        enforcedNs = atNs;
        enforcedVersion = desired.commit();
    }

    /** The contexts that an enforcer would disable now. */
    public List<Integer> off() {
        final boolean[] off = new boolean[contexts];
        desired.snapshot(off);
        return IntStream.range(1, contexts).filter(c -> off[c]).boxed().toList();
    }

    int kicks() {
        return (int) calls.stream().filter("kick"::equals).count();
    }

    @Override
    public DesiredState desired() {
        return desired;
    }

    @Override
    public Mechanism mechanism() {
        return mechanism;
    }

    @Override
    public void attach(final ContextRef context) {
        calls.add("attach " + context.contextId() + " pid " + context.pid());
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        calls.add("registered " + context.contextId() + " " + registered);
    }

    @Override
    public void joined(final ContextRef context, final Session session) {
        calls.add("joined " + context.contextId());
    }

    @Override
    public void left(final ContextRef context, final Session session) {
        calls.add("left " + context.contextId());
    }

    @Override
    public void detach(final int contextId) {
        calls.add("detach " + contextId);
    }

    @Override
    public void timeslice(final int contextId, final long wantedNs) {
        calls.add("timeslice " + contextId + " " + wantedNs);
    }

    @Override
    public boolean kick() {
        calls.add("kick");
        return true;
    }

    @Override
    public long enforcedVersion() {
        return enforcedVersion;
    }

    @Override
    public long enforcedNs() {
        return enforcedNs;
    }

    @Override
    public boolean isIncomplete() {
        return incomplete;
    }

    @Override
    public int poll(final MessageHandler handler) {
        if (failure != null) {
            throw failure;
        }
        final int n = results.size();
        for (final UnsafeBuffer result : results) {
            handler.onMessage(EnforcerResults.CONTEXT, result, 0, result.capacity());
        }
        results.clear();
        return n;
    }

    /** The next look at the results finds that a driver call changed a context. */
    public void changed(final int contextId, final boolean off, final long beganNs, final long doneNs) {
        final UnsafeBuffer result = new UnsafeBuffer(new byte[24]);
        result.putInt(0, contextId);
        result.putInt(EnforcerResults.OFF_OFFSET, off ? 1 : 0);
        result.putLong(EnforcerResults.BEGAN_OFFSET, beganNs);
        result.putLong(EnforcerResults.DONE_OFFSET, doneNs);
        results.add(result);
    }
}
