/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;

/**
 * What the processes of a control group did with GPU devices since the observer began. Immutable.
 *
 * @param cgroup     inode of its directory in the unified hierarchy
 * @param processes  that have opened a device and not ended
 * @param ioctls     on GPU devices
 * @param ioctlNs    time inside them
 * @param opens      of GPU devices
 * @param contexts   channel groups for compute and graphics, or queues, that were made
 * @param lifetimeNs from first open to end, sum over the processes that have ended
 * @param contextNs  NVIDIA: from the making of a context until it was freed or its process ended, sum over those that
 *                   have ended
 */
public record GroupAccount(long cgroup, int processes, long ioctls, long ioctlNs, long opens, long contexts,
    long lifetimeNs, long contextNs) {

    /** {@code struct gpuseg_observer_group_record}. */
    static GroupAccount read(final ByteBuffer b, final int at) {
        return new GroupAccount(b.getLong(at + Layouts.ObserverGroupRecord.CGROUP_OFFSET),
            b.getInt(at + Layouts.ObserverGroupRecord.PROCESSES_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.IOCTLS_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.IOCTL_NS_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.OPENS_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.CONTEXTS_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.LIFETIME_NS_OFFSET),
            b.getLong(at + Layouts.ObserverGroupRecord.CONTEXT_NS_OFFSET));
    }
}
