/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.concurrent.locks.LockSupport;

/**
 * Level 1, without privileges and with any driver: a context is disabled by holding its next launches. What it has
 * queued runs on; best-effort programs under {@code gpuseg exec} keep that below a bound. Processes that were not
 * started by {@code gpuseg exec} are not held.
 */
public final class LaunchMechanism implements Mechanism {
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.GATE, 0, 0, 0, 0, Integer.MAX_VALUE, false, "process", true);
    private static final byte[] NOTHING = new byte[0];

    /** Longer than a kernel beside which a segment of the whole GPU makes sense. */
    private static final long DRAIN_LIMIT_NS = 50_000_000;
    private static final long LOOK_NS = 20_000;

    private final HeldLaunches launches = new HeldLaunches();
    private final boolean drains;

    /**
     * There is nothing to connect to: programs come by their sessions.
     *
     * @param drains whether a context counts as disabled only when it has nothing in flight, or after {@value
     *               #DRAIN_LIMIT_NS} ns
     */
    public LaunchMechanism(final boolean drains) {
        this.drains = drains;
    }

    @Override
    public String name() {
        return "launch";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_LAUNCH;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    public void attach(final ContextRef context) {
        launches.attach(context);
        context.result(ContextRef.SwitchResult.NONE, 0, 0);
    }

    @Override
    public void joined(final ContextRef context, final Session session, final LaunchHold word) {
        launches.joined(context, session, word);
    }

    @Override
    public void left(final ContextRef context, final Session session) {
        launches.left(context, session);
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        final long heldNs = System.nanoTime();
        for (int i = 0; i < disableCount; i++) {
            final long beganNs = System.nanoTime();
            done(disable[i], launches.hold(disable[i]), beganNs);
        }
        for (int i = 0; drains && i < disableCount; i++) {
            while (launches.isInFlight(disable[i]) && System.nanoTime() - heldNs < DRAIN_LIMIT_NS) {
                LockSupport.parkNanos(LOOK_NS);
            }
        }
        for (int i = 0; i < enableCount; i++) {
            final long beganNs = System.nanoTime();
            done(enable[i], launches.go(enable[i]), beganNs);
        }
        return 0;
    }

    private static void done(final ContextRef context, final int sessions, final long beganNs) {
        context.result(sessions == 0 ? ContextRef.SwitchResult.ABSENT : ContextRef.SwitchResult.DONE, beganNs,
            System.nanoTime());
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return false;
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return NOTHING;
    }

    @Override
    public void detach(final ContextRef context) {
        launches.detach(context);
    }

    @Override
    public Mechanism rehearsal() {
        return new LaunchMechanism(drains);
    }

    @Override
    public String lastError() {
        return "";
    }

    @Override
    public void close() {
        launches.close();
    }
}
