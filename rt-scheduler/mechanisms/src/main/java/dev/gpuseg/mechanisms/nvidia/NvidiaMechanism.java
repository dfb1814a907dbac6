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
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Level 3 on NVIDIA GPUs with the stock driver: a context's channels leave the hardware, mid-kernel, and come back.
 *
 * <p>Channels of several contexts go into one call, up to 64; RM walks such a list in order and stops at the first
 * channel that does not exist, so after a refusal each context of the batch is switched on its own. RM counts: a
 * channel disabled twice needs two enables, and an enable too many is ignored; so nothing is ever disabled that may
 * already be. What is disabled stays so when this process dies: see {@link #heldPayload}.
 *
 * <p>An MPS server is a context, and so is each of its clients. Server and clients go off for a task that is no
 * client, and come back. While a registered process may be a client of a server, that server and whoever may be its
 * client stay on, whoever has the GPU: what they need of each other is unknown. {@link #remark} says so, and each
 * counts as a disable that failed. Who may be a client: CUDA_MPS_PIPE_DIRECTORY at the start of the process names the
 * server's directory (or cannot be read), or the process registered, has CUDA open and no channels of its own. Seen on
 * an H200: clients have channels of their own (2 for compute, others 8), and one that registered hung while server and
 * other clients were off. That none hangs while they stay on is tested with the stand-in only.
 *
 * <p>A context whose process has no channels (yet) is {@link ContextRef.Outcome#ABSENT}; when they appear,
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
    private static final int US_IN_NS = 1_000;
    private static final Capabilities CAPABILITIES = new Capabilities(Capabilities.INTERRUPT, DISABLE_NS,
        DISABLE_PER_CONTEXT_NS, ENABLE_NS, ENABLE_PER_CONTEXT_NS, RmControl.BATCH_MAX / CHANNELS_PER_CONTEXT, true,
        "TSG");
    private static final int TIMESLICES_VERSION = 1;
    private static final int TIMESLICES_HEADER_BYTES = 16;
    private static final int TIMESLICE_BYTES = 16;
    private static final int TIMESLICES_MAX = 123;
    private static final byte[] NOTHING = new byte[0];

    private final int gpu;
    private final Object lock = new Object();
    private final RmControl rm;
    private final AtomicBoolean changed = new AtomicBoolean();
    private final ProcessWatch watch;
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
        this(gpu, protection, MpsPipe.PROC);
    }

    /** With another place in which environments of processes are found. */
    NvidiaMechanism(final int gpu, final Protection protection, final Path proc) {
        this.gpu = gpu;
        rm = new RmControl();
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
            () -> changed.set(true), proc);
        watch.start();
    }

    /** For {@link Rehearsal}: without a driver, and nobody is watched. */
    NvidiaMechanism(final RmControl rm) {
        gpu = 0;
        this.rm = rm;
        watch = null;
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

    @Override
    public boolean changed() {
        return changed.get() && changed.getAndSet(false);
    }

    @Override
    public void attach(final ContextRef context) {
        context.attachment(watch.attach(context.pid(), context.pidStartTicks()));
        context.outcome(ContextRef.Outcome.NONE, 0, 0);
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        if (t != null) {
            watch.registered(t, registered);
        }
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        synchronized (lock) {   // the watch thread closes descriptors under it
            for (int i = 0; i < disableCount; i++) {
                enableDisabled(disable[i]);
            }
            for (int i = 0; i < enableCount; i++) {
                final ProcessWatch.Tracked t = (ProcessWatch.Tracked) enable[i].attachment();
                if (t != null && t.disabled != current(enable[i])) {
                    enableDisabled(enable[i]);   // what was disabled is no longer what the process consists of
                }
            }
            return switchAll(disable, disableCount, true) + switchAll(enable, enableCount, false);
        }
    }

    /**
     * Brings back what is, or may be, disabled of a context. The driver counts how often a channel was disabled, and
     * ignores an enable too many: a context that is disabled again must be enabled first, or one enable would not do.
     */
    private void enableDisabled(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        final RmContext off = t == null ? null : t.disabled;
        if (off == null) {
            return;
        }
        t.disabled = null;
        if (!off.file().isOpen()) {
            return;   // its client went with the descriptor
        }
        int status = RmStatus.OK;
        if (off.channelCount() <= RmControl.BATCH_MAX) {
            rm.clear();
            for (int k = 0; k < off.channelCount(); k++) {
                rm.add(off.channelClient(k), off.channel(k));
            }
            status = rm.switchChannels(off.file().fd(), off.client(), off.subdevice(), false);
        }
        for (int k = 0; (status != RmStatus.OK || off.channelCount() > RmControl.BATCH_MAX)
            && k < off.channelCount(); k++) {   // one by one: RM stops a list at the first channel that is gone
            rm.clear();
            rm.add(off.channelClient(k), off.channel(k));
            rm.switchChannels(off.file().fd(), off.client(), off.subdevice(), false);
        }
        rm.clear();
    }

    /** Remembers what a call did, or, where it failed to disable, may have done. */
    private static void note(final ContextRef context, final RmContext switched, final boolean disable) {
        ((ProcessWatch.Tracked) context.attachment()).disabled = disable ? switched : null;
    }

    private int switchAll(final ContextRef[] contexts, final int count, final boolean disable) {
        int failed = 0;
        int from = 0;
        RmContext carrier = null;
        rm.clear();
        for (int i = 0; i < count; i++) {
            final RmContext c = current(contexts[i]);
            if (disable && c != null && stay(contexts[i]) != null) {
                final long nowNs = System.nanoTime();
                contexts[i].outcome(ContextRef.Outcome.FAILED, nowNs, nowNs);
                lastError = contexts[i] + ": " + remark(contexts[i]);
                failed++;
                continue;
            }
            if (c == null) {
                final boolean refused = refused(contexts[i]);
                final long nowNs = System.nanoTime();
                contexts[i].outcome(refused ? ContextRef.Outcome.FAILED : ContextRef.Outcome.ABSENT, nowNs, nowNs);
                failed += refused ? 1 : 0;
                continue;
            }
            if (rm.size() > 0 && rm.size() + c.channelCount() > RmControl.BATCH_MAX) {
                failed += flush(contexts, from, i, carrier, disable);
                from = i;
                carrier = null;
            }
            if (c.channelCount() > RmControl.BATCH_MAX) {
                failed += alone(contexts[i], c, disable) ? 0 : 1;
                from = i + 1;
                continue;
            }
            if (carrier == null) {
                carrier = c;
                from = i;
            }
            for (int k = 0; k < c.channelCount(); k++) {
                rm.add(c.channelClient(k), c.channel(k));
            }
            contexts[i].outcome(ContextRef.Outcome.NONE, 0, 0);   // in the batch
            if (i >= batched.length) {
                batched = java.util.Arrays.copyOf(batched, 2 * i);
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
            if (contexts[i].outcome() != ContextRef.Outcome.NONE) {
                continue;   // absent, or switched on its own
            }
            if (status == RmStatus.OK) {
                contexts[i].outcome(ContextRef.Outcome.DONE, beganNs, doneNs);
                note(contexts[i], batched[i], disable);
            } else {
                if (disable) {
                    note(contexts[i], batched[i], true);   // RM stopped somewhere in the list
                    enableDisabled(contexts[i]);
                }
                failed += alone(contexts[i], current(contexts[i]), disable) ? 0 : 1;
            }
        }
        return failed;
    }

    /** One context in calls of its own, as many as its channels need. False if it failed. */
    private boolean alone(final ContextRef context, final RmContext c, final boolean disable) {
        final long beganNs = System.nanoTime();
        if (c == null) {   // the watch thread saw it go between two lines of ours
            context.outcome(ContextRef.Outcome.ABSENT, beganNs, beganNs);
            return true;
        }
        int status = RmStatus.OK;
        rm.clear();
        for (int k = 0; k < c.channelCount(); k++) {
            rm.add(c.channelClient(k), c.channel(k));
            if (rm.size() == RmControl.BATCH_MAX || k == c.channelCount() - 1) {
                final int s = rm.switchChannels(c.file().fd(), c.client(), c.subdevice(), disable);
                status = status == RmStatus.OK ? s : status;
                rm.clear();
            }
        }
        final long doneNs = System.nanoTime();
        if (status == RmStatus.OK) {
            context.outcome(ContextRef.Outcome.DONE, beganNs, doneNs);
            note(context, c, disable);
            return true;
        }
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        if (disable) {
            note(context, c, true);
        }
        watch.distrust(t);   // its channels are not what they were; a new look follows and changed() tells of it
        lastError = context + ": " + (disable ? "disable" : "enable") + " of " + c.channelCount()
            + " channels answered " + RmStatus.name(status) + "; looking at the process again";
        context.outcome(ContextRef.Outcome.FAILED, beganNs, doneNs);
        return false;
    }

    private RmContext current(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        final RmProcess p = t == null ? null : t.process;
        return p == null ? null : p.context(gpu);
    }

    private boolean refused(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        final RmProcess p = t == null ? null : t.process;
        if (p == null || p.refusal().isEmpty() || p.usesDriver()) {
            return false;
        }
        lastError = p.refusal();
        return true;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        synchronized (lock) {
            final RmContext c = current(context);
            if (c == null) {
                return false;
            }
            boolean done = true;
            for (final RmContext.Tsg tsg : c.tsgs()) {
                done &= !tsg.compute() || setTimeslice(own(context), tsg, timesliceNs);
            }
            return done;
        }
    }

    private static Map<Long, Long> own(final ContextRef context) {
        return ((ProcessWatch.Tracked) context.attachment()).ownTimeslicesUs;
    }

    private static long key(final RmContext.Tsg tsg) {
        return (long) tsg.client() << Integer.SIZE | tsg.handle() & 0xffffffffL;
    }

    /** What it had before it was changed, asked once; 0 if the driver does not tell. */
    private long ownTimesliceUs(final Map<Long, Long> known, final RmContext.Tsg tsg) {
        final Long own = known.get(key(tsg));
        if (own != null) {
            return own;
        }
        final long us = rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle());
        if (us <= 0) {
            lastError = "time slice cannot be read: " + RmStatus.name((int) -us);
            return 0;
        }
        known.put(key(tsg), us);
        return us;
    }

    private boolean setTimeslice(final Map<Long, Long> known, final RmContext.Tsg tsg, final long timesliceNs) {
        final long own = ownTimesliceUs(known, tsg);
        if (own == 0) {
            return false;
        }
        final long us = timesliceNs == 0 ? own : Math.max(1, timesliceNs / US_IN_NS);
        final int status = rm.setTimesliceUs(tsg.file().fd(), tsg.client(), tsg.handle(), us);
        if (status != RmStatus.OK) {
            lastError = "time slice of " + us + " us was refused: " + RmStatus.name(status);
        } else if (timesliceNs == 0) {
            known.remove(key(tsg));
        }
        return status == RmStatus.OK;
    }

    /** {@code struct gpuseg_rm_timeslices}. */
    @Override
    public byte[] timeslicePayload(final ContextRef context) {
        synchronized (lock) {
            final RmContext c = current(context);
            if (c == null) {
                return NOTHING;
            }
            final ByteBuffer b = ByteBuffer.allocate(TIMESLICES_HEADER_BYTES + TIMESLICE_BYTES * TIMESLICES_MAX)
                .order(ByteOrder.LITTLE_ENDIAN);
            b.position(TIMESLICES_HEADER_BYTES);
            int count = 0;
            for (final RmContext.Tsg tsg : c.tsgs()) {
                final long own = tsg.compute() && count < TIMESLICES_MAX ? ownTimesliceUs(own(context), tsg) : 0;
                if (own > 0) {
                    b.putInt(tsg.file().remoteFd()).putInt(tsg.client()).putInt(tsg.handle())
                        .putInt((int) Math.min(own, Integer.MAX_VALUE));
                    count++;
                }
            }
            b.putInt(0, TIMESLICES_VERSION).putInt(4, count);
            return count == 0 ? NOTHING : java.util.Arrays.copyOf(b.array(), b.position());
        }
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        final RmContext c = current(context);
        return c == null ? NOTHING : c.heldPayload();
    }

    /** See {@link ProcessWatch}: nothing might run, and nobody would end the segment. */
    private static ProcessWatch.Stay stay(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        return t == null ? null : t.stay;
    }

    @Override
    public String remark(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        final ProcessWatch.Stay stay = t == null ? null : t.stay;
        if (stay == null) {
            return t != null && t.mpsServer ? "MPS server: it goes off for tasks that are no clients of it" : "";
        }
        return (t.mpsServer ? "MPS server" : "MPS client, as it seems, of server pid " + stay.server())
            + ": it stays on, for pid " + stay.client() + " registered" + (stay.clientHasChannels() ? ""
            : ", has no channels of its own") + " and may be a client of " + (t.mpsServer ? "it" : "that server")
            + "; start real-time tasks with "
            + "CUDA_MPS_PIPE_DIRECTORY naming a directory without a server";
    }

    @Override
    public int units(final ContextRef context) {
        final RmContext c = current(context);
        return c == null ? 0 : c.channelCount();
    }

    @Override
    public void detach(final ContextRef context) {
        final ProcessWatch.Tracked t = (ProcessWatch.Tracked) context.attachment();
        if (t != null) {
            setTimesliceBack(context);
            watch.detach(t);
            context.attachment(null);
        }
    }

    private void setTimesliceBack(final ContextRef context) {
        synchronized (lock) {
            final RmContext c = current(context);
            if (c == null) {
                return;
            }
            final Map<Long, Long> known = own(context);
            for (final RmContext.Tsg tsg : c.tsgs()) {
                if (known.containsKey(key(tsg))) {
                    setTimeslice(known, tsg, 0);
                }
            }
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
    public void close() {
        watch.stop();
    }
}
