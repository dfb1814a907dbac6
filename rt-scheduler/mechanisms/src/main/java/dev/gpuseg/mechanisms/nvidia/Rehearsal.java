/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.MechanismException;
import java.util.ArrayList;
import java.util.List;

/**
 * {@link NvidiaMechanism} for processes that do not exist: every context has the channels that a CUDA program has, and
 * their calls go to the kernel but to no driver. Not all that makes a first disable slower is cured by it: on an
 * H200 a daemon's first ones took 0.1 to 0.4 ms longer than later ones with it, too, and the time from dispatcher to
 * call was 26 us (p50), before 30 (580.159.04, 2026-11, {@code bench gpu}, two machines).
 */
final class Rehearsal extends NvidiaMechanism {
    private static final int CHANNELS = 8;
    private static final String STAGE = "/dev/null";

    private final ControlFile file;

    Rehearsal() {
        super(RmControl.pretending());
        final int fd = DriverCalls.DRIVER.open(STAGE);
        if (fd < 0) {
            throw new MechanismException(STAGE + " cannot be opened: errno " + -fd);
        }
        file = new ControlFile(fd, fd);
    }

    @Override
    public void attach(final ContextRef context) {
        final List<RmContext.Channel> channels = new ArrayList<>();
        for (int i = 0; i < CHANNELS; i++) {
            channels.add(new RmContext.Channel(context.contextId(), i));
        }
        final ProcessWatch.Tracked made =
            new ProcessWatch.Tracked(context.pid(), context.pidStartTicks(), System.nanoTime());
        made.process = RmProcess.pretended(new RmContext(0, file, context.contextId(), 0, channels, List.of()));
        context.attachment(made);
        context.outcome(ContextRef.Outcome.NONE, 0, 0);
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        // nobody is watched
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
