/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Builds the contexts of a process, one for each GPU, from the objects of its RM clients. Used once. */
final class ContextBuilder {
    /** The client, subdevice and descriptor through which the channels of one GPU are switched. */
    private record Carrier(ControlFile file, int client, int subdevice) {
    }

    private final GpuIndex gpus;
    private final Scope scope;
    private final RmControl rm;
    private final Map<Integer, List<RmContext.Tsg>> tsgs = new HashMap<>();
    private final Map<Integer, List<RmContext.Channel>> channels = new HashMap<>();
    private final Map<Integer, Carrier> carriers = new HashMap<>();

    ContextBuilder(final GpuIndex gpus, final Scope scope, final RmControl rm) {
        this.gpus = gpus;
        this.scope = scope;
        this.rm = rm;
    }

    void add(final RmClient c) {
        final Map<Integer, Integer> gpuOfDevice = devices(c);
        final Set<Integer> compute = computeTsgs(c);
        c.objects().forEach((handle, node) -> {
            final Integer gpu = gpuOfDevice.get(node.parent());
            if (node.isTsg() && gpu != null) {
                tsgs.computeIfAbsent(gpu, g -> new ArrayList<>())
                    .add(new RmContext.Tsg(c.file(), c.handle(), handle, compute.contains(handle)));
            } else if (node.isChannel()) {
                final RmClient.Node tsg = c.objects().get(node.parent());
                final Integer on = tsg == null ? gpu : gpuOfDevice.get(tsg.parent());
                if (on != null && (scope == Scope.ALL || compute.contains(node.parent()))) {
                    channels.computeIfAbsent(on, g -> new ArrayList<>())
                        .add(new RmContext.Channel(c.handle(), handle, node.parent()));
                }
            }
        });
    }

    /** GPU by the handle of its device. */
    private Map<Integer, Integer> devices(final RmClient c) {
        final Map<Integer, Integer> gpuOfDevice = new HashMap<>();
        c.objects().forEach((handle, node) -> {
            final Integer id = node.isSubdevice() ? c.gpuId(rm, handle) : null;
            if (id != null) {
                final int gpu = gpus.of(id);
                if (gpu != GpuIndex.UNKNOWN) {
                    gpuOfDevice.put(node.parent(), gpu);
                    carriers.putIfAbsent(gpu, new Carrier(c.file(), c.handle(), handle));
                }
            }
        });
        return gpuOfDevice;
    }

    /** Channel groups whose channels do compute or graphics. */
    private static Set<Integer> computeTsgs(final RmClient c) {
        final Set<Integer> compute = new HashSet<>(c.reportedGr0());
        c.objects().forEach((handle, node) -> {
            final RmClient.Node channel = node.isComputeOrGraphics() ? c.objects().get(node.parent()) : null;
            if (channel != null && channel.isChannel()) {
                compute.add(channel.parent());
            }
        });
        return compute;
    }

    /** The GPUs on which the process has a channel group for compute or graphics. */
    Set<Integer> computeGpus() {
        final Set<Integer> found = new HashSet<>();
        tsgs.forEach((gpu, list) -> {
            if (list.stream().anyMatch(RmContext.Tsg::compute)) {
                found.add(gpu);
            }
        });
        return found;
    }

    /** The GPUs on which the process has more channels than can be held, with their number. */
    Map<Integer, Integer> tooMany() {
        final Map<Integer, Integer> found = new HashMap<>();
        channels.forEach((gpu, list) -> {
            if (list.size() > RmContext.CHANNELS_MAX) {
                found.put(gpu, list.size());
            }
        });
        return found;
    }

    /** Contexts by GPU. One that has not changed is the object of before. */
    Map<Integer, RmContext> build(final Map<Integer, RmContext> before) {
        final Map<Integer, RmContext> next = new HashMap<>();
        channels.forEach((gpu, list) -> {
            final Carrier carrier = carriers.get(gpu);
            final RmContext now = new RmContext(gpu, carrier.file(), carrier.client(), carrier.subdevice(),
                list.subList(0, Math.min(list.size(), RmContext.CHANNELS_MAX)), tsgs.getOrDefault(gpu, List.of()));
            next.put(gpu, now.sameAs(before.get(gpu)) ? before.get(gpu) : now);
        });
        return next;
    }
}
