/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import java.util.List;

/**
 * {@link NvidiaMechanism} for processes that do not exist: every context has the channels that a CUDA program has, and
 * calls reach the kernel but no driver. A first disable is still slower than later ones: on an H200 by 0.1 to 0.4 ms,
 * with and without a rehearsal. The time from dispatcher to call was 26 us (p50) with it and 30 us without
 * (580.159.04, 2026-11, {@code bench gpu}, two machines).
 */
final class Rehearsal extends NvidiaMechanism {
    private static final int CHANNELS = 8;
    private static final String ANY_FILE = "/dev/null";

    private final ControlFile file;

    Rehearsal() {
        super(RmControl.pretending());
        final int fd = DriverCalls.DRIVER.open(ANY_FILE);
        if (fd < 0) {
            throw new MechanismException(ANY_FILE + " cannot be opened: errno " + -fd);
        }
        file = new ControlFile(fd, fd);
    }

    @Override
    public void attach(final ContextRef context) {
        final int[] clients = new int[CHANNELS];
        final int[] channels = new int[CHANNELS];
        for (int i = 0; i < CHANNELS; i++) {
            clients[i] = context.contextId();
            channels[i] = i;
        }
        final WatchedProcess made = new WatchedProcess(context.pid(), context.pidStartTicks(), System.nanoTime());
        made.process = RmProcess.pretended(new RmContext(0, file, context.contextId(), 0,
            new RmContext.Channels(clients, channels, new int[CHANNELS], true), List.of()));
        context.attachment(made);
        context.result(ContextRef.SwitchResult.NONE, 0, 0);
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        // no process is watched
    }

    @Override
    public void detach(final ContextRef context) {
        context.attachment(null);
    }

    @Override
    public String lastError() {
        return "";
    }

    @Override
    public void close() {
        file.close();
    }
}
