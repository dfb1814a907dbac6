/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.ScanningMechanism;
import dev.gpuseg.mechanisms.observer.Observation;
import dev.gpuseg.mechanisms.observer.Observer;
import java.util.Collection;
import java.util.List;
import java.util.Set;

/**
 * Level 3 on Tegra (nvgpu) with the stock driver: DISABLE and PREEMPT remove a TSG from the runlist, ENABLE puts it
 * back. Each TSG is one call; nothing is batched. A disabled TSG stays disabled when this process dies: see
 * {@link #heldPayload}.
 *
 * <p>Experimental. Source: nvgpu's public UAPI header. Tested: a stand-in only, never a board.
 */
public final class TegraMechanism extends ScanningMechanism<TegraProcess> {
    // published by GCAPS for a runlist update on Orin Nano, maximum; not measured here
    private static final long UPDATE_NS = 1_150_000;
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.INTERRUPT, 0, UPDATE_NS, 0, UPDATE_NS, 1, true, "TSG");
    private static final int US_IN_NS = 1_000;

    private final TegraDevice device;

    /**
     * Opens the mechanism. nvgpu drives one GPU.
     *
     * @param protection processes that are never touched
     * @throws MechanismException if this machine has no nvgpu that can be used, with the reason
     */
    public TegraMechanism(final Protection protection) {
        this(protection, Observer.none("not asked for"));
    }

    /**
     * Opens the mechanism, which learns of processes from an observer where that works.
     *
     * @param protection as above
     * @param observer   sees processes open nvgpu's devices
     * @throws MechanismException as above
     */
    public TegraMechanism(final Protection protection, final Observer observer) {
        super("gpuseg-tegra-scan", protection, observer, Observation.NVGPU);
        device = TegraDevice.open();
        if (device == null) {
            throw new MechanismException(TegraSurvey.verdict().reason()
                + ", or use the next lower level, --mechanism gate");
        }
        startScanning();
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
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        synchronized (lock()) {   // the scan thread closes descriptors under it
            int failed = 0;
            for (int i = 0; i < disableCount; i++) {
                failed += apply(disable[i], true) ? 0 : 1;
            }
            for (int i = 0; i < enableCount; i++) {
                failed += apply(enable[i], false) ? 0 : 1;
            }
            return failed;
        }
    }

    @Override
    public void released() {
        synchronized (lock()) {
            for (final TegraProcess p : attachedProcesses()) {
                p.tsgs().forEach(TsgFile::released);
            }
        }
    }

    private boolean apply(final ContextRef context, final boolean disable) {
        final TegraProcess p = processOf(context);
        final long beganNs = System.nanoTime();
        if (p == null || p.tsgs().isEmpty()) {
            final boolean refused = p != null && !p.refusal().isEmpty() && p.isAlive();
            if (refused) {
                lastError(p.refusal());
            }
            context.result(refused ? ContextRef.SwitchResult.FAILED : ContextRef.SwitchResult.ABSENT, beganNs, beganNs);
            return !refused;
        }
        int error = 0;
        final List<TsgFile> tsgs = p.tsgs();
        for (int i = 0; i < tsgs.size(); i++) {
            final int rc = disable ? tsgs.get(i).disable() : tsgs.get(i).enable();
            error = error == 0 ? rc : error;
        }
        if (error != 0) {
            lastError(context + ": " + (disable ? "disable" : "enable") + " of " + tsgs.size()
                + " TSGs failed with errno " + -error + "; the kernel's log may say why");
        }
        context.result(error == 0 ? ContextRef.SwitchResult.DONE : ContextRef.SwitchResult.FAILED, beganNs,
            System.nanoTime());
        return error == 0;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        synchronized (lock()) {
            final TegraProcess p = processOf(context);
            boolean done = timesliceNs == 0 || p != null && !p.tsgs().isEmpty();
            if (done && p != null) {
                for (final TsgFile t : p.tsgs()) {
                    final int rc = t.setTimesliceUs((int) Math.min(Integer.MAX_VALUE, timesliceNs / US_IN_NS));
                    if (rc < 0) {
                        lastError(context + ": a time slice of " + timesliceNs / US_IN_NS
                            + " us was refused with errno " + -rc + "; nvgpu accepts about 1 to 50 ms");
                        done = false;
                    }
                }
            }
            return done;
        }
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        synchronized (lock()) {
            final TegraProcess p = processOf(context);
            return p == null ? new byte[0] : p.heldPayload();
        }
    }

    @Override
    protected TegraProcess newProcess(final int pid, final long startTicks) {
        return new TegraProcess(pid, startTicks);
    }

    @Override
    protected void replaced(final TegraProcess process) {
        process.close();
    }

    @Override
    protected void detached(final TegraProcess process) {
        for (final TsgFile t : process.tsgs()) {
            if (t.disabled()) {
                t.enable();
            }
            t.setTimesliceUs(0);
        }
        process.close();
    }

    @Override
    protected boolean scan(final TegraProcess process) {
        synchronized (lock()) {
            return isAttached(process) && process.refresh();
        }
    }

    @Override
    protected Set<Integer> pidsWithWork() {
        return device.pids();
    }

    @Override
    protected void closed(final Collection<TegraProcess> remaining) {
        remaining.forEach(TegraProcess::close);   // what is disabled stays so, for the watchdog
    }

    @Override
    protected void scanEnded() {
        device.close();
    }
}
