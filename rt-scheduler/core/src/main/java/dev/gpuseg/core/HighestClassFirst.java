/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Optional;
import java.util.Set;

/**
 * Fixed priority by classes: priorities are cut into classes of equal width, and all begun segments of the highest
 * class that has one run together, sharing the GPU as the device does it; lower classes and best effort wait. With
 * width 1 a class is one priority. Stateless and thread-safe.
 *
 * <p>What it gives up: a segment's time on the GPU then depends on its class mates and on how the driver divides the
 * GPU between them, so that no analysis bounds it. Where no two tasks of a GPU are in one class it decides as
 * {@link FixedPriority} does, and the bounds of that policy hold.
 *
 * <p>Pre-grants: a task of the best begun class, or of a higher one, is certain to run when it begins.
 */
public final class HighestClassFirst implements Policy {
    /** The name of this policy. */
    public static final String NAME = "classes";
    private static final Set<TaskNeed> NEEDS = Set.of(TaskNeed.PRIORITY);

    private final int width;

    /**
     * Classes of priorities.
     *
     * @param width how many neighbouring priorities are one class, 1..99; classes begin at priority 1
     * @throws IllegalArgumentException if the width is out of range
     */
    public HighestClassFirst(final int width) {
        if (width < Priority.MIN || width > Priority.MAX) {
            throw new IllegalArgumentException("class width is " + width + "; it must be 1.." + Priority.MAX);
        }
        this.width = width;
    }

    /** The lowest priority of the class that a real-time priority belongs to. */
    private int classOf(final int priority) {
        return priority - (priority - Priority.MIN) % width;
    }

    /** Whether both are in one class. */
    @Override
    public boolean runTogether(final int a, final int b) {
        return classOf(a) == classOf(b);
    }

    /** Theorem 12, analysis/docs/classes.md. */
    @Override
    public Optional<String> exclusiveAs() {
        return Optional.of(FixedPriority.NAME);
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Set<TaskNeed> needs() {
        return NEEDS;
    }

    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        if (a.isRealTime() && b.isRealTime()) {
            return Priority.compareHigherFirst(classOf(a.gpuPriority()), classOf(b.gpuPriority()));
        }
        return a.isRealTime() ? -1 : b.isRealTime() ? 1 : 0;
    }

    @Override
    public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
        return leader.isRealTime() == other.isRealTime()
            && (!leader.isRealTime() || runTogether(leader.gpuPriority(), other.gpuPriority()));
    }

    @Override
    public boolean admitsBackground(final SegmentView leader) {
        return !leader.isRealTime();
    }

    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return begun.isRealTime() ? classOf(begun.gpuPriority()) - 1 : Priority.BELOW_ALL;
    }
}
