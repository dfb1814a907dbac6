/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.MechanismException;
import dev.gpuseg.mechanisms.ProcessListener;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.SystemCalls;
import dev.gpuseg.mechanisms.observer.Observer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Level 3 on NVIDIA GPUs with the stock driver: the channels of a context are disabled, which preempts a running
 * kernel, and enabled again.
 *
 * <p>One call carries up to 64 channels of several contexts. RM processes such a list in order and stops at the first
 * channel that does not exist; so after a refusal each context of the batch gets calls of its own, and one that RM was
 * not asked about gets them until they have succeeded once. RM counts disables:
 * a channel that was disabled twice needs two enables, and a surplus enable is ignored; so nothing is disabled that may
 * be disabled already. A disabled channel stays disabled when this process dies: see {@link #heldPayload}.
 *
 * <p>Whenever a process makes channels, what stands behind all contexts is applied anew. What is disabled already is
 * left so. What a call has enabled within the last second, and nothing has disabled since, is left so, too: channels
 * that it made meanwhile are born enabled, and each call is 0.4 ms in which no begin can disable anything. After that
 * second it is enabled once more, in case it was disabled by something that is not known here. A process of which a
 * part may have been left disabled is enabled every time.
 *
 * <p>An MPS server is a context, and so is each of its clients. They are disabled for tasks that are not clients,
 * except as {@link MpsRule} says; then {@link #remark} gives the reason, and each counts as a failed disable. Seen on
 * an H200: clients have channels of their own (2 for compute, other processes 8), and a registered client hung while
 * the server and other clients were disabled. That none hangs under the rule is tested with the stand-in only.
 *
 * <p>A process has its channels scheduled once it has made them, and then they run, also if they were disabled before.
 * Seen on an H200: of 25 processes whose first channel was disabled within a millisecond, none stopped. So what the
 * observer sees made is disabled when it is scheduled, by one call, or a second later, in case nobody saw it. Where
 * channels were disabled before they were scheduled, they are enabled, which undoes the count, and disabled again.
 *
 * <p>A context whose process has no channels (yet) is {@link ContextRef.SwitchResult#ABSENT}. When they appear,
 * {@link #changed} says so and the enforcer applies its state again.
 *
 * <p>Source: public driver headers 580.x. Tested: H200, 580.159.04, 2026-11.
 */
public class NvidiaMechanism implements Mechanism {
    // H200, 580.159.04: one busy context of 8 channels 650 us, three in one call 790; enable 360 and 430
    private static final long DISABLE_NS = 580_000;
    private static final long DISABLE_PER_CONTEXT_NS = 70_000;
    private static final long ENABLE_NS = 325_000;
    private static final long ENABLE_PER_CONTEXT_NS = 35_000;
    private static final int CHANNELS_PER_CONTEXT = 8;
    private static final int OWN_CALLS_MAX = 8;
    /** For so long an enable that succeeded is not repeated. */
    static final long ENABLED_NS = 1_000_000_000;
    private static final Capabilities CAPABILITIES = new Capabilities(Capabilities.INTERRUPT, DISABLE_NS,
        DISABLE_PER_CONTEXT_NS, ENABLE_NS, ENABLE_PER_CONTEXT_NS, RmControl.BATCH_MAX / CHANNELS_PER_CONTEXT, true,
        "TSG");
    private static final byte[] NOTHING = new byte[0];

    private final int gpu;
    private final Object lock = new Object();
    private final RmControl rm;
    private final RmTimeslices timeslices;
    private final AtomicBoolean changed = new AtomicBoolean();
    private final ProcessWatch watch;
    private final GpuGauge gauge;
    private volatile Runnable onChange = () -> { };
    private volatile Runnable onExpectation = () -> { };
    /** Enforcer only. */
    private long releases;
    private RmContext[] batched = new RmContext[64];
    private String lastError = "";

    /**
     * Opens the mechanism for one GPU.
     *
     * @param gpu        index, in the order of the PCI bus
     * @param protection processes that are never touched
     * @throws MechanismException if this machine has no NVIDIA driver that can be used, with the reason
     */
    public NvidiaMechanism(final int gpu, final Protection protection) {
        this(gpu, protection, MpsPipe.PROC, Observer.none("not asked for"));
    }

    /**
     * Opens the mechanism for one GPU.
     *
     * @param gpu        index, in the order of the PCI bus
     * @param protection processes that are never touched
     * @param observer   sees processes begin and work
     * @throws MechanismException if this machine has no NVIDIA driver that can be used, with the reason
     */
    public NvidiaMechanism(final int gpu, final Protection protection, final Observer observer) {
        this(gpu, protection, MpsPipe.PROC, observer);
    }

    /** With another directory in place of /proc for the environments of processes. */
    NvidiaMechanism(final int gpu, final Protection protection, final Path proc) {
        this(gpu, protection, proc, Observer.none("not asked for"));
    }

    private NvidiaMechanism(final int gpu, final Protection protection, final Path proc, final Observer observer) {
        this.gpu = gpu;
        rm = new RmControl();
        timeslices = new RmTimeslices(rm, e -> lastError = e);
        final int fd = DriverCalls.DRIVER.open(RmProcess.CONTROL_DEVICE);
        if (fd < 0) {
            throw new MechanismException(RmProcess.CONTROL_DEVICE + " cannot be opened: errno " + -fd
                + "; load NVIDIA's driver and run as root, or use the next lower level, --mechanism gate");
        }
        SystemCalls.closeOnce(fd);
        final GpuIndex gpus = GpuIndex.ofThisMachine();
        if (gpus.count() > 0 && gpu >= gpus.count()) {
            throw new MechanismException("GPU " + gpu + " does not exist; the driver lists " + gpus.count()
                + ", numbered from 0");
        }
        watch = new ProcessWatch(gpu, gpus, protection.allEngines() ? Scope.ALL : Scope.COMPUTE, protection, lock,
            this::noteChange, this::expectChange, proc, observer);
        gauge = new GpuGauge(gpus.address(gpu));
        watch.start();
    }

    /** For {@link Rehearsal}: without a driver, and no process is watched. */
    NvidiaMechanism(final RmControl rm) {
        gpu = 0;
        this.rm = rm;
        timeslices = new RmTimeslices(rm, e -> lastError = e);
        watch = null;
        gauge = new GpuGauge("");
    }

    @Override
    public String name() {
        return "nvidia";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_NVIDIA;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    public void processListener(final ProcessListener listener) {
        watch.listener(listener);
    }

    private void noteChange() {
        changed.set(true);
        onChange.run();
    }

    @Override
    public void changeListener(final Runnable wake) {
        onChange = wake;
    }

    @Override
    public void expectation(final Runnable soon) {
        onExpectation = soon;
    }

    private void expectChange() {
        onExpectation.run();
    }

    @Override
    public void released() {
        releases++;
    }

    @Override
    public boolean changed() {
        return changed.get() && changed.getAndSet(false);
    }

    @Override
    public void attach(final ContextRef context) {
        context.attachment(watch.attach(context.pid(), context.pidStartTicks()));
        context.result(ContextRef.SwitchResult.NONE, 0, 0);
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        final WatchedProcess p = watched(context);
        if (p != null) {
            watch.registered(p, registered);
        }
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        note("applying");
        synchronized (lock) {   // descriptors are retired under it
            note("locked");
            for (int i = 0; i < disableCount; i++) {
                undoScheduled(disable[i]);
                if (!isDisabledPart(disable[i])) {
                    enableDisabled(disable[i]);
                }
            }
            for (int i = 0; i < enableCount; i++) {
                final WatchedProcess p = watched(enable[i]);
                if (p != null && p.disabled != current(enable[i])) {
                    enableDisabled(enable[i]);   // what was disabled is no longer what the process consists of
                }
            }
            final int failed = switchAll(disable, disableCount, true) + switchAll(enable, enableCount, false);
            note("applied");
            return failed;
        }
    }

    private void note(final String step) {
        if (watch != null) {
            watch.note(step);
        }
    }

    /**
     * Enables what is, or may be, disabled of a context. RM counts disables and ignores a surplus enable: before a
     * context is disabled again it must be enabled, or one enable would not be enough later.
     */
    private void enableDisabled(final ContextRef context) {
        final WatchedProcess p = watched(context);
        final RmContext was = p == null ? null : p.disabled;
        if (was == null) {
            return;
        }
        p.disabled = null;
        p.lost |= !enable(was);
    }

    /** False: some of it may be disabled still, and no later call names it. */
    private boolean enable(final RmContext was) {
        if (!was.file().isOpen()) {
            return true;   // RM freed its client with the descriptor
        }
        int status = RmStatus.OK;
        if (was.channelCount() <= RmControl.BATCH_MAX) {
            rm.clear();
            for (int k = 0; k < was.channelCount(); k++) {
                rm.add(was.channelClient(k), was.channel(k));
            }
            status = rm.switchChannels(was.file().fd(), was.client(), was.subdevice(), false);
            rm.clear();
        }
        if (status != RmStatus.OK || was.channelCount() > RmControl.BATCH_MAX) {
            status = enableOneByOne(was);
        }
        return status == RmStatus.OK;
    }

    /** RM stops a list at the first missing channel. The answer is RM's, except that a missing one is enabled. */
    private int enableOneByOne(final RmContext was) {
        int status = RmStatus.OK;
        for (int k = 0; k < was.channelCount(); k++) {
            rm.clear();
            rm.add(was.channelClient(k), was.channel(k));
            final int one = rm.switchChannels(was.file().fd(), was.client(), was.subdevice(), false);
            status = status == RmStatus.OK && one != RmStatus.INVALID_CHANNEL ? one : status;
        }
        rm.clear();
        return status;
    }

    /** What a process had scheduled since it was disabled runs. It is enabled, so that it can be disabled again. */
    private void undoScheduled(final ContextRef context) {
        final WatchedProcess p = watched(context);
        if (p == null) {
            return;
        }
        for (RmContext.Scheduled s = p.scheduled.poll(); s != null; s = p.scheduled.poll()) {
            final RmContext part = p.disabled == null || s.timeNs() - p.disabledNs < 0 ? null
                : p.disabled.part(s, false);
            if (part != null) {
                p.disabled = p.disabled.part(s, true);
                p.lost |= !enable(part);
            }
        }
    }

    /**
     * Whether what was disabled of a context is certainly disabled, and still a part of it. Then the rest is disabled
     * without enabling that part, which would let a process run in a segment whenever it makes a channel.
     */
    private boolean isDisabledPart(final ContextRef context) {
        final WatchedProcess p = watched(context);
        final RmContext c = current(context);
        return p != null && c != null && p.disabled != null && p.disabledRelease == releases
            && p.disabled.file().isOpen() && p.exemption == null && c.contains(p.disabled);
    }

    /** What is already disabled of a context that is to be disabled; null: nothing, or not for certain. */
    private static RmContext already(final ContextRef context, final boolean disable) {
        return disable ? watched(context).disabled : null;
    }

    /** Whether it was enabled for certain a moment ago, and not disabled since. */
    private static boolean isEnabled(final WatchedProcess p) {
        return p.enabled && p.disabled == null && System.nanoTime() - p.enabledNs < ENABLED_NS;
    }

    /** Remembers what a call has disabled, or may have disabled although it failed. */
    private void note(final ContextRef context, final RmContext switched, final boolean disable, final boolean sure,
        final long beganNs) {
        final WatchedProcess p = watched(context);
        p.disabledNs = p.disabled == null ? beganNs : p.disabledNs;
        p.lost |= !disable && p.disabled != null && !switched.contains(p.disabled);   // it has changed meanwhile
        p.disabled = disable ? switched : null;
        p.enabled = !disable && !p.lost;
        p.enabledNs = p.enabled ? System.nanoTime() : 0;
        p.disabledRelease = sure ? releases : -1;
        if (disable && sure && watch != null) {
            watch.disabled(p);
        }
    }

    private int switchAll(final ContextRef[] contexts, final int count, final boolean disable) {
        int failed = 0;
        int from = 0;
        RmContext carrier = null;
        rm.clear();
        for (int i = 0; i < count; i++) {
            final RmContext c = current(contexts[i]);
            if (disable && c != null && watched(contexts[i]).exemption != null) {
                final long nowNs = System.nanoTime();
                contexts[i].result(ContextRef.SwitchResult.FAILED, nowNs, nowNs);
                lastError = contexts[i] + ": " + remark(contexts[i]);
                failed++;
                continue;
            }
            if (c == null) {
                final boolean refused = refused(contexts[i]);
                final long nowNs = System.nanoTime();
                contexts[i].result(refused ? ContextRef.SwitchResult.FAILED : ContextRef.SwitchResult.ABSENT, nowNs,
                    nowNs);
                failed += refused ? 1 : 0;
                continue;
            }
            RmContext before = already(contexts[i], disable);
            if (before != null && !c.contains(before)) {   // it has changed while others were switched
                failed += flush(contexts, from, i, carrier, disable);
                from = i;
                carrier = null;
                enableDisabled(contexts[i]);
                before = null;
            }
            if (before != null && c.channelCount() == before.channelCount()) {
                final long nowNs = System.nanoTime();
                contexts[i].result(ContextRef.SwitchResult.DONE, nowNs, nowNs);
                watched(contexts[i]).disabled = c;
                continue;
            }
            if (!disable && isEnabled(watched(contexts[i]))) {
                final long nowNs = System.nanoTime();
                contexts[i].result(ContextRef.SwitchResult.DONE, nowNs, nowNs);
                continue;
            }
            final boolean own = c.channelCount() > RmControl.BATCH_MAX || !isProven(watched(contexts[i]), c);
            if (rm.size() > 0 && (own || rm.size() + c.channelCount() > RmControl.BATCH_MAX)) {
                failed += flush(contexts, from, i, carrier, disable);
                from = i;
                carrier = null;
            }
            if (own) {
                countOwnCall(watched(contexts[i]), c);
                failed += alone(contexts[i], c, before, disable) ? 0 : 1;
                from = i + 1;
                continue;
            }
            if (carrier == null) {
                carrier = c;
                from = i;
            }
            for (int k = 0; k < c.channelCount(); k++) {
                if (before == null || !before.contains(c.channelClient(k), c.channel(k))) {
                    rm.add(c.channelClient(k), c.channel(k));
                }
            }
            contexts[i].result(ContextRef.SwitchResult.NONE, 0, 0);   // in the batch
            if (i >= batched.length) {
                batched = Arrays.copyOf(batched, 2 * i);
            }
            batched[i] = c;
        }
        return failed + flush(contexts, from, count, carrier, disable);
    }

    private int flush(final ContextRef[] contexts, final int from, final int to, final RmContext carrier,
        final boolean disable) {
        if (rm.size() == 0) {
            return 0;
        }
        final long beganNs = System.nanoTime();
        final int status = rm.switchChannels(carrier.file().fd(), carrier.client(), carrier.subdevice(), disable);
        final long doneNs = System.nanoTime();
        rm.clear();
        int failed = 0;
        for (int i = from; i < to; i++) {
            if (contexts[i].result() != ContextRef.SwitchResult.NONE) {
                continue;   // absent, or done in a call of its own
            }
            if (status == RmStatus.OK) {
                contexts[i].result(ContextRef.SwitchResult.DONE, beganNs, doneNs);
                note(contexts[i], batched[i], disable, true, beganNs);
            } else {
                if (disable) {
                    note(contexts[i], batched[i], true, false, beganNs);   // RM stopped somewhere in the list
                    enableDisabled(contexts[i]);
                }
                failed += alone(contexts[i], current(contexts[i]), null, disable) ? 0 : 1;
            }
        }
        return failed;
    }

    /** RM is asked about a process that makes channels again and again, so that it shares calls in the end. */
    private void countOwnCall(final WatchedProcess p, final RmContext c) {
        if (!c.isConfirmed() && ++p.ownCalls == OWN_CALLS_MAX) {
            watch.invalidate(p);
        }
    }

    /** Whether all channels of a context exist for certain: a false one would fail the call that it shares. */
    private static boolean isProven(final WatchedProcess p, final RmContext c) {
        return c.isConfirmed() || c == p.proven || p.proven != null && p.proven.contains(c);
    }

    /**
     * One context in calls of its own, as many as its channels need.
     *
     * @param before what of it is disabled already and shall stay so; null = nothing
     * @return false if it failed
     */
    private boolean alone(final ContextRef context, final RmContext c, final RmContext before, final boolean disable) {
        final long beganNs = System.nanoTime();
        if (c == null) {   // the watch thread closed it meanwhile
            context.result(ContextRef.SwitchResult.ABSENT, beganNs, beganNs);
            return true;
        }
        int status = RmStatus.OK;
        rm.clear();
        for (int k = 0; k < c.channelCount(); k++) {
            if (before == null || !before.contains(c.channelClient(k), c.channel(k))) {
                rm.add(c.channelClient(k), c.channel(k));
            }
            if (rm.size() == RmControl.BATCH_MAX || rm.size() > 0 && k == c.channelCount() - 1) {
                final int s = rm.switchChannels(c.file().fd(), c.client(), c.subdevice(), disable);
                status = status == RmStatus.OK ? s : status;
                rm.clear();
            }
        }
        final WatchedProcess p = watched(context);
        final boolean allExist = status == RmStatus.OK;
        if (status == RmStatus.INVALID_CHANNEL && !disable) {   // the process has freed one since it was examined
            watch.invalidate(p);
            status = enableOneByOne(c);
        }
        final long doneNs = System.nanoTime();
        if (status == RmStatus.OK) {
            context.result(ContextRef.SwitchResult.DONE, beganNs, doneNs);
            note(context, c, disable, true, beganNs);
            p.proven = allExist && before == null ? c : p.proven;
            return true;
        }
        if (disable) {
            note(context, c, true, false, beganNs);
        }
        p.enabled = false;
        p.disabledRelease = -1;   // some of it may be enabled, and some disabled
        watch.invalidate(p);   // its channels are not what they were; changed() follows when they are known again
        lastError = context + ": " + (disable ? "disable" : "enable") + " of " + c.channelCount()
            + " channels answered " + RmStatus.name(status) + "; examining the process again";
        context.result(ContextRef.SwitchResult.FAILED, beganNs, doneNs);
        return false;
    }

    private static WatchedProcess watched(final ContextRef context) {
        return (WatchedProcess) context.attachment();
    }

    private static RmProcess processOf(final ContextRef context) {
        final WatchedProcess p = watched(context);
        return p == null ? null : p.process;
    }

    private RmContext current(final ContextRef context) {
        final RmProcess process = processOf(context);
        return process == null ? null : process.context(gpu);
    }

    private boolean refused(final ContextRef context) {
        final RmProcess process = processOf(context);
        if (process == null || process.refusal().isEmpty() || process.usesDriver()) {
            return false;
        }
        lastError = process.refusal();
        return true;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        synchronized (lock) {
            final WatchedProcess p = watched(context);
            final RmContext c = current(context);
            return timesliceNs == 0 ? p == null || timeslices.restore(p, c)
                : c != null && timeslices.set(p, c, timesliceNs);
        }
    }

    /** Source: {@code traces/runs/2026-11-28-h200-slices}. */
    @Override
    public boolean slicesBoundWaits() {
        return true;
    }

    @Override
    public byte[] timeslicePayload(final ContextRef context) {
        synchronized (lock) {
            final RmContext c = current(context);
            return c == null ? NOTHING : timeslices.payload(watched(context), c);
        }
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        final RmContext c = current(context);
        return c == null ? NOTHING : c.heldPayload();
    }

    @Override
    public String remark(final ContextRef context) {
        final WatchedProcess p = watched(context);
        return p == null ? "" : MpsRule.remark(p);
    }

    @Override
    public int units(final ContextRef context) {
        final RmContext c = current(context);
        return c == null ? 0 : c.channelCount();
    }

    @Override
    public void detach(final ContextRef context) {
        final WatchedProcess p = watched(context);
        if (p != null) {
            synchronized (lock) {
                timeslices.restore(p, current(context));
            }
            watch.detach(p);
            context.attachment(null);
        }
    }

    @Override
    public Mechanism rehearsal() {
        return new Rehearsal();
    }

    @Override
    public String lastError() {
        final String watched = watch.lastError();
        return lastError.isEmpty() ? watched : lastError;
    }

    @Override
    public int busyPercent() {
        return gauge.percent();
    }

    @Override
    public void close() {
        gauge.close();
        watch.stop();
    }
}
