/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.ProcessListener;
import java.util.function.IntPredicate;

/**
 * A space and what is outside of it: launches of programs inside are held, and the device disables the others. It is
 * never told of who is inside, since clients of one MPS server cannot be disabled one by one. The daemon asks once
 * where a program is, before it is attached.
 */
public final class SpaceMechanism extends ForwardingMechanism {
    private static final ContextRef[] NOBODY = new ContextRef[0];

    private final LaunchMechanism inside;
    private final IntPredicate isInside;
    // enforcer only
    private ContextRef[] insiders = new ContextRef[64];
    private ContextRef[] outsiders = new ContextRef[64];
    private int insiderCount;
    private int outsiderCount;

    /**
     * Joins two mechanisms, which are closed with this one.
     *
     * @param inside   for the programs inside
     * @param device   for those outside
     * @param isInside tells of a pid whether that program is inside; any thread
     */
    public SpaceMechanism(final LaunchMechanism inside, final Mechanism device, final IntPredicate isInside) {
        super(device);
        this.inside = inside;
        this.isInside = isInside;
    }

    @Override
    public String name() {
        return inside.name();
    }

    @Override
    public Capabilities capabilities() {
        return inside.capabilities();
    }

    @Override
    public boolean isOutside(final int pid) {
        return !isInside.test(pid);
    }

    @Override
    public void attach(final ContextRef context) {
        of(context).attach(context);
    }

    private Mechanism of(final ContextRef context) {
        return context.isOutside() ? device : inside;
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        of(context).registered(context, registered);
    }

    @Override
    public void joined(final ContextRef context, final Session session, final LaunchHold word) {
        of(context).joined(context, session, word);
    }

    @Override
    public void left(final ContextRef context, final Session session) {
        of(context).left(context, session);
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        sort(disable, disableCount);
        int failed = outsiderCount == 0 ? 0 : device.apply(outsiders, outsiderCount, NOBODY, 0);
        failed += insiderCount == 0 ? 0 : inside.apply(insiders, insiderCount, NOBODY, 0);
        sort(enable, enableCount);
        failed += insiderCount == 0 ? 0 : inside.apply(NOBODY, 0, insiders, insiderCount);
        return failed + (outsiderCount == 0 ? 0 : device.apply(NOBODY, 0, outsiders, outsiderCount));
    }

    private void sort(final ContextRef[] contexts, final int count) {
        if (count > insiders.length) {
            insiders = new ContextRef[2 * count];
            outsiders = new ContextRef[2 * count];
        }
        insiderCount = 0;
        outsiderCount = 0;
        for (int i = 0; i < count; i++) {
            if (contexts[i].isOutside()) {
                outsiders[outsiderCount++] = contexts[i];
            } else {
                insiders[insiderCount++] = contexts[i];
            }
        }
    }

    /** Only of programs outside: those inside come by their sessions, and the MPS server is nobody's to disable. */
    @Override
    public void processListener(final ProcessListener listener) {
        device.processListener((pid, startTicks, name) -> {
            if (isOutside(pid)) {
                listener.found(pid, startTicks, name);
            }
        });
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return false;
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return of(context).heldPayload(context);
    }

    @Override
    public int units(final ContextRef context) {
        return of(context).units(context);
    }

    @Override
    public String remark(final ContextRef context) {
        return of(context).remark(context);
    }

    @Override
    public void detach(final ContextRef context) {
        of(context).detach(context);
    }

    @Override
    public Mechanism rehearsal() {
        return inside.rehearsal();
    }

    @Override
    public void close() {
        inside.close();
        device.close();
    }
}
