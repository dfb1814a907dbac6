/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.agrona.collections.Int2IntHashMap;
import org.agrona.collections.IntArrayList;
import org.agrona.collections.IntHashSet;

/**
 * Builds the contexts of a process, one for each GPU, from the objects of its RM clients. It is kept from process to
 * process, and makes an object only for a context that is new. Not thread-safe.
 */
final class ContextBuilder {
    /** What was found on one GPU. */
    private static final class Part {
        private final int gpu;
        private final IntArrayList clients = new IntArrayList();
        private final IntArrayList channels = new IntArrayList();
        private final IntArrayList groups = new IntArrayList();
        private final List<RmClient> tsgClients = new ArrayList<>();
        private final IntArrayList tsgs = new IntArrayList();
        private final List<Boolean> computes = new ArrayList<>();
        /** The client, with its descriptor, and the subdevice through which the channels are switched. */
        private RmClient carrier;
        private int subdevice;

        Part(final int gpu) {
            this.gpu = gpu;
        }

        void clear() {
            clients.clear();
            channels.clear();
            groups.clear();
            tsgClients.clear();
            tsgs.clear();
            computes.clear();
            carrier = null;
        }

        /** How many of its channels can be held. */
        int held() {
            return Math.min(channels.size(), RmContext.CHANNELS_MAX);
        }

        /** Whether a context, or null, is what was found. */
        boolean is(final RmContext c, final boolean confirmed) {
            if (c == null || held() == 0) {
                return c == null && held() == 0;
            }
            boolean same = c.isConfirmed() == confirmed && c.channelCount() == held() && c.file() == carrier.file()
                && c.client() == carrier.handle() && c.subdevice() == subdevice;
            for (int i = 0; same && i < held(); i++) {
                same = c.channelClient(i) == clients.getInt(i) && c.channel(i) == channels.getInt(i);
            }
            return same;
        }

        RmContext build(final boolean confirmed) {
            final List<RmContext.Tsg> all = new ArrayList<>(tsgs.size());
            for (int i = 0; i < tsgs.size(); i++) {
                final RmClient c = tsgClients.get(i);
                all.add(new RmContext.Tsg(c.file(), c.handle(), tsgs.getInt(i), computes.get(i)));
            }
            return new RmContext(gpu, carrier.file(), carrier.handle(), subdevice,
                new RmContext.Channels(first(clients), first(channels), first(groups), confirmed), all);
        }

        private int[] first(final IntArrayList list) {
            final int[] some = new int[held()];
            for (int i = 0; i < some.length; i++) {
                some[i] = list.getInt(i);
            }
            return some;
        }
    }

    private final GpuIndex gpus;
    private final Scope scope;
    private final RmControl rm;
    /** By GPU; those that nothing was found on are empty. */
    private final List<Part> parts = new ArrayList<>();
    /** By the handle of a device, of the client that is being added. */
    private final Int2IntHashMap gpuOfDevice = new Int2IntHashMap(GpuIndex.UNKNOWN);
    /** Channel groups of that client whose channels do compute or graphics. */
    private final IntHashSet compute = new IntHashSet();

    ContextBuilder(final GpuIndex gpus, final Scope scope, final RmControl rm) {
        this.gpus = gpus;
        this.scope = scope;
        this.rm = rm;
    }

    /** Begins with another process. */
    void clear() {
        for (int i = 0; i < parts.size(); i++) {
            parts.get(i).clear();
        }
    }

    private Part part(final int gpu) {
        while (parts.size() <= gpu) {
            parts.add(new Part(parts.size()));
        }
        return parts.get(gpu);
    }

    void add(final RmClient c) {
        findDevices(c);
        findCompute(c);
        final RmObjects objects = c.objects();
        for (int i = 0; i < objects.size(); i++) {
            final int parent = objects.parent(i);
            if (RmClass.isTsg(objects.classId(i))) {
                addTsg(c, objects.handle(i), gpuOfDevice.get(parent));
            } else if (RmClass.isChannel(objects.classId(i))) {
                final int tsg = objects.place(parent);
                final int gpu = gpuOfDevice.get(tsg == RmObjects.NONE ? parent : objects.parent(tsg));
                if (gpu != GpuIndex.UNKNOWN && (scope == Scope.ALL || compute.contains(parent))) {
                    final Part on = part(gpu);
                    on.clients.addInt(c.handle());
                    on.channels.addInt(objects.handle(i));
                    on.groups.addInt(parent);
                }
            }
        }
    }

    private void addTsg(final RmClient c, final int handle, final int gpu) {
        if (gpu != GpuIndex.UNKNOWN) {
            final Part on = part(gpu);
            on.tsgClients.add(c);
            on.tsgs.addInt(handle);
            on.computes.add(compute.contains(handle));
        }
    }

    private void findDevices(final RmClient c) {
        gpuOfDevice.clear();
        final RmObjects objects = c.objects();
        for (int i = 0; i < objects.size(); i++) {
            final int gpu = RmClass.isSubdevice(objects.classId(i)) ? c.gpu(rm, gpus, objects.handle(i))
                : GpuIndex.UNKNOWN;
            if (gpu != GpuIndex.UNKNOWN) {
                gpuOfDevice.put(objects.parent(i), gpu);
                final Part on = part(gpu);
                if (on.carrier == null) {
                    on.carrier = c;
                    on.subdevice = objects.handle(i);
                }
            }
        }
    }

    private void findCompute(final RmClient c) {
        compute.clear();
        compute.addAll(c.reportedGr0());
        final RmObjects objects = c.objects();
        for (int i = 0; i < objects.size(); i++) {
            final int above = RmClass.isComputeOrGraphics(objects.classId(i)) ? objects.place(objects.parent(i))
                : RmObjects.NONE;
            if (above != RmObjects.NONE && RmClass.isChannel(objects.classId(above))) {
                compute.add(objects.parent(above));
            }
        }
    }

    /** Marks the GPUs on which the process has a channel group for compute or graphics. */
    void markCompute(final BitSet marked) {
        marked.clear();
        for (int gpu = 0; gpu < parts.size(); gpu++) {
            marked.set(gpu, parts.get(gpu).computes.contains(Boolean.TRUE));
        }
    }

    /** How many GPUs may have been found, from 0. */
    int gpus() {
        return parts.size();
    }

    /** How many channels the process has on a GPU, which may be more than can be held. */
    int channels(final int gpu) {
        return parts.get(gpu).channels.size();
    }

    /**
     * Contexts by GPU, null for those without; those of before if nothing has changed, else one each that has not.
     *
     * @param confirmed whether RM was asked for each channel that was added
     */
    RmContext[] build(final RmContext[] before, final boolean confirmed) {
        int length = 0;
        boolean same = true;
        for (int gpu = 0; gpu < parts.size(); gpu++) {
            length = parts.get(gpu).held() == 0 ? length : gpu + 1;
            same &= parts.get(gpu).is(RmContext.on(gpu, before), confirmed);
        }
        if (same && length == before.length) {
            return before;
        }
        final RmContext[] next = new RmContext[length];
        for (int gpu = 0; gpu < length; gpu++) {
            final Part part = parts.get(gpu);
            final RmContext was = RmContext.on(gpu, before);
            next[gpu] = part.is(was, confirmed) ? was : part.held() == 0 ? null : part.build(confirmed);
        }
        return next;
    }
}
