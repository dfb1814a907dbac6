/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.Observation;
import java.util.ArrayList;
import java.util.List;

/** What a process says that it does with RM, as the observer reports it. */
final class Claims {
    static final int CHANNEL = 0xc86f;
    static final int COMPUTE = 0xcbc0;
    private static final int CLIENT = 0x41;
    private static final int DEVICE = 0x80;
    private static final int SUBDEVICE = 0x2080;
    private static final int TSG = 0xa06c;
    private static final int ENGINE_COPY = 9;

    private final int pid;
    private final int fd;
    private final int client;
    private final List<Observation> records = new ArrayList<>();
    private ObservedProcess observed;

    Claims(final RmRig.App app, final int client) {
        this(app.pid(), RmRig.controlDescriptors(app.pid()).get(0), client);
    }

    Claims(final int pid, final int fd, final int client) {
        this.pid = pid;
        this.fd = fd;
        this.client = client;
        say(Observation.Kind.OPEN, 0, 0, 0, Observation.NVIDIA);
    }

    /** All that there is of a context. */
    static Claims honest(final RmRig.App app, final RmContext c) {
        final Claims honest = new Claims(app, c.client());
        honest.device(c.subdevice());
        honest.group(c.subdevice() - 1, compute(c), RmRig.channels(c));
        return honest;
    }

    /** The group of a context that computes. */
    static int compute(final RmContext c) {
        return c.tsgs().stream().filter(RmContext.Tsg::compute).findFirst().orElseThrow().handle();
    }

    private void say(final Observation.Kind kind, final int parent, final int handle, final int classId,
        final int engine) {
        final Observation o = new Observation(kind, pid, ProcessStatus.startTicks(pid), true, System.nanoTime(), fd,
            pid, client, parent, handle, classId, engine, 0, System.nanoTime());
        observed = observed == null ? new ObservedProcess(o) : observed;
        observed.take(o);
        records.add(o);
    }

    ObservedProcess observed() {
        return observed;
    }

    /** In order. */
    List<Observation> records() {
        return records;
    }

    void object(final int parent, final int handle, final int classId) {
        say(Observation.Kind.ALLOC, parent, handle, classId, 0);
    }

    /** A client with a device. */
    void device(final int subdevice) {
        object(0, client, CLIENT);
        object(client, subdevice - 1, DEVICE);
        object(subdevice - 1, subdevice, SUBDEVICE);
    }

    /** A channel group for compute that runs. */
    void group(final int device, final int tsg, final int... channels) {
        group(device, tsg, RmClient.ENGINE_GR0, channels);
    }

    void copyingGroup(final int device, final int tsg, final int... channels) {
        group(device, tsg, ENGINE_COPY, channels);
    }

    private void group(final int device, final int tsg, final int engine, final int... channels) {
        say(Observation.Kind.ALLOC, device, tsg, TSG, engine);
        for (final int channel : channels) {
            object(tsg, channel, CHANNEL);
        }
        say(Observation.Kind.SCHEDULED, 0, tsg, 0, 0);
    }
}
