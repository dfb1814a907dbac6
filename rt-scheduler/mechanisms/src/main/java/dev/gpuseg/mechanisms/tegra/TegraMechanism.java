/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.LookThread;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.ProcessListener;
import dev.gpuseg.mechanisms.Protection;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Level 3 on Tegra (nvgpu) with the stock driver: DISABLE and PREEMPT take a TSG off the runlist, ENABLE brings it
 * back. Each TSG is one call; nothing is batched. What is disabled stays so when this process dies: see
 * {@link #heldPayload}.
 *
 * <p>A thread looks at attached processes every 20 ms (until they have a TSG) to 250 ms, and at the driver's list of
 * TSGs for processes that nobody attached.
 *
 * <p>Source: nvgpu's public UAPI header. Not run on a board: tested against a stand-in only.
 */
public final class TegraMechanism implements Mechanism {
    // published by GCAPS for a runlist update on Orin Nano, maximum; not measured here
    private static final long UPDATE_NS = 1_150_000;
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.INTERRUPT, 0, UPDATE_NS, 0, UPDATE_NS, 1, true, "TSG");
    private static final int US_IN_NS = 1_000;

    private final Object lock = new Object();
    private final Map<Integer, TegraProcess> processes = new HashMap<>();   // under the lock
    private final Set<Integer> announced = new HashSet<>();                 // watch thread
    private final AtomicBoolean changed = new AtomicBoolean();
    private final Protection protection;
    private final TegraDevice device;
    private final int ownPid = ProcessStatus.pid();
    private final LookThread watch;
    private volatile ProcessListener listener;
    private volatile String lastError = "";

    /**
     * Opens the mechanism.
     *
     * @param protection processes that are never touched
     * @throws MechanismException if this machine has no nvgpu that can be used, with the reason
     */
    public TegraMechanism(final Protection protection) {
        this.protection = protection;
        device = TegraDevice.open();
        if (device == null) {
            throw new MechanismException(TegraSurvey.verdict().reason()
                + ", or use the next lower level, --mechanism gate");
        }
        watch = new LookThread("gpuseg-tegra-watch", this::look, e -> lastError = e, this::closeFiles);
        watch.start();
    }

    @Override
    public String name() {
        return "tegra";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_TEGRA;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    public void processListener(final ProcessListener to) {
        listener = to;
        watch.wake();
    }

    @Override
    public boolean changed() {
        return changed.get() && changed.getAndSet(false);
    }

    @Override
    public void attach(final ContextRef context) {
        final TegraProcess p = new TegraProcess(context.pid(), context.pidStartTicks());
        synchronized (lock) {
            final TegraProcess known = processes.put(p.pid(), p);
            if (known != null) {
                known.close();
            }
        }
        context.attachment(p);
        context.outcome(ContextRef.Outcome.NONE, 0, 0);
        watch.wake();
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        synchronized (lock) {   // the watch thread closes descriptors under it
            int failed = 0;
            for (int i = 0; i < disableCount; i++) {
                failed += switchOne(disable[i], true) ? 0 : 1;
            }
            for (int i = 0; i < enableCount; i++) {
                failed += switchOne(enable[i], false) ? 0 : 1;
            }
            return failed;
        }
    }

    private boolean switchOne(final ContextRef context, final boolean disable) {
        final TegraProcess p = (TegraProcess) context.attachment();
        final long beganNs = System.nanoTime();
        if (p == null || p.tsgs().isEmpty()) {
            final boolean refused = p != null && !p.refusal().isEmpty() && p.isAlive();
            lastError = refused ? p.refusal() : lastError;
            context.outcome(refused ? ContextRef.Outcome.FAILED : ContextRef.Outcome.ABSENT, beganNs, beganNs);
            return !refused;
        }
        int error = 0;
        final List<TsgFile> tsgs = p.tsgs();
        for (int i = 0; i < tsgs.size(); i++) {
            final int rc = disable ? tsgs.get(i).disable() : tsgs.get(i).enable();
            error = error == 0 ? rc : error;
        }
        if (error != 0) {
            lastError = context + ": " + (disable ? "disable" : "enable") + " of " + tsgs.size()
                + " TSGs failed with errno " + -error + "; the kernel's log may say why";
        }
        context.outcome(error == 0 ? ContextRef.Outcome.DONE : ContextRef.Outcome.FAILED, beganNs, System.nanoTime());
        return error == 0;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        synchronized (lock) {
            final TegraProcess p = (TegraProcess) context.attachment();
            boolean done = p != null && !p.tsgs().isEmpty();
            if (done) {
                for (final TsgFile t : p.tsgs()) {
                    final int rc = t.setTimesliceUs((int) Math.min(Integer.MAX_VALUE, timesliceNs / US_IN_NS));
                    if (rc < 0) {
                        lastError = context + ": a time slice of " + timesliceNs / US_IN_NS
                            + " us was refused with errno " + -rc + "; nvgpu takes about 1 to 50 ms";
                        done = false;
                    }
                }
            }
            return done;
        }
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        synchronized (lock) {
            final TegraProcess p = (TegraProcess) context.attachment();
            return p == null ? new byte[0] : p.heldPayload();
        }
    }

    @Override
    public void detach(final ContextRef context) {
        synchronized (lock) {
            final TegraProcess p = (TegraProcess) context.attachment();
            if (p != null) {
                for (final TsgFile t : p.tsgs()) {
                    if (t.disabled()) {
                        t.enable();
                    }
                    t.setTimesliceUs(0);
                }
                p.close();
                processes.remove(p.pid(), p);
                context.attachment(null);
            }
        }
    }

    @Override
    public String lastError() {
        return lastError;
    }

    @Override
    public void close() {
        watch.stop();
    }

    private void closeFiles() {
        synchronized (lock) {
            processes.values().forEach(TegraProcess::close);
            processes.clear();
        }
        device.close();
    }

    /** Brings the picture up to date. True while some attached process has no TSG yet. */
    private boolean look() {
        final List<TegraProcess> all;
        synchronized (lock) {
            all = new ArrayList<>(processes.values());
        }
        boolean waiting = false;
        for (final TegraProcess p : all) {
            synchronized (lock) {
                if (processes.get(p.pid()) == p) {
                    if (p.refresh()) {
                        changed.set(true);
                    }
                    waiting |= p.tsgs().isEmpty() && p.isAlive();
                }
            }
        }
        final ProcessListener to = listener;
        if (to != null) {
            announce(to);
        }
        return waiting;
    }

    private void announce(final ProcessListener to) {
        final Set<Integer> now = device.pids();
        announced.retainAll(now);
        for (final int pid : now) {
            final boolean known;
            synchronized (lock) {
                known = processes.containsKey(pid);
            }
            if (!known && pid != ownPid && announced.add(pid)) {
                final long ticks = ProcessStatus.startTicks(pid);
                if (ticks != 0 && !protection.covers(pid)) {
                    to.found(pid, ticks, ProcessStatus.commandName(pid));
                }
            }
        }
    }
}
