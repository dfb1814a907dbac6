/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.enforce.DesiredStates;
import java.util.function.Consumer;

/**
 * Programs outside of the space rest while a task with room of its own is open: they have the whole GPU in turns, and
 * its segments would wait. Dispatcher thread only; rare.
 */
final class OutsideRests {
    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    /** By context id: what was asked for last. */
    private final boolean[] rests;
    private final int[] reserved;
    private final Consumer<ProcessEntry> refreshOne = this::refresh;
    private boolean isRoomTaken;
    private boolean isChanged;

    OutsideRests(final SegmentScheduler scheduler, final DesiredStates desired, final int maxContexts) {
        this.scheduler = scheduler;
        this.desired = desired;
        rests = new boolean[maxContexts + 1];
        reserved = new int[maxContexts + 1];
        desired.onForget((gpu, contextId) -> rests[contextId] = false);
    }

    /**
     * Looks who has to rest: after each command, since all that changes it is one.
     *
     * @return whether that changed, so has to be published
     */
    boolean refresh(final ProcessRegistry processes) {
        isRoomTaken = scheduler.reservedContexts(0, reserved) > 0;   // a space is on one GPU
        isChanged = false;
        processes.forEach(refreshOne);
        return isChanged;
    }

    private void refresh(final ProcessEntry process) {
        final int contextId = process.contexts[0];
        final boolean wanted = isRoomTaken && process.refs[0].isOutside() && scheduler.isSteerable(contextId);
        if (wanted != rests[contextId]) {
            rests[contextId] = wanted;
            desired.rest(0, contextId, wanted);
            isChanged = true;
        }
    }
}
