/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentState;
import dev.gpuseg.ipc.Abi;
import java.util.ArrayList;
import java.util.List;

/** Writes down what a client is told. */
final class FakeSlot implements TaskSlot {
    final List<String> told = new ArrayList<>();
    /** What the client says of its kernels. */
    boolean inFlight;
    long drainedNs;
    long kernelNs;
    int kernelClass;
    int kernelPercent;

    @Override
    public void grant(final long ticket, final int verdict) {
        told.add((verdict == Abi.VERDICT_GRANTED ? "granted " : "verdict " + verdict + " ") + ticket);
    }

    @Override
    public void pregrant(final boolean pregrant) {
        told.add("pregrant " + pregrant);
    }

    @Override
    public void state(final int state) {
        told.add(SegmentState.name(state));
    }

    @Override
    public void countPreemption() {
        told.add("preemption counted");
    }

    @Override
    public void countMiss() {
        told.add("miss counted");
    }

    @Override
    public void countOverrun() {
        told.add("overrun counted");
    }

    @Override
    public void expected() {
        told.add("expected");
    }

    @Override
    public boolean isInFlight() {
        return inFlight;
    }

    @Override
    public long drainedNs() {
        return drainedNs;
    }

    @Override
    public long kernelNs() {
        return kernelNs;
    }

    @Override
    public int kernelClass() {
        return kernelClass;
    }

    @Override
    public int kernelPercent() {
        return kernelPercent;
    }

    @Override
    public void release() {
        told.add("released");
    }
}
