/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.HashSet;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Time partitions: a major frame repeats for ever, and each window of it belongs to one partition, which then has the
 * GPU to itself. Inside a window another policy ({@code fp}, {@code edf} or classes) decides among the segments of that
 * partition. Immutable and thread-safe.
 *
 * <h2>Windows</h2>
 * The frame begins at multiples of its length on CLOCK_MONOTONIC plus {@code phaseNs}. Time that no window covers
 * belongs to partition 0: tasks without a partition, and processes without tasks. Two windows must not overlap; one
 * must be longer than the guard.
 *
 * <h2>Guard</h2>
 * A window closes, and its contexts are to be disabled, {@code guardNs} before its owner changes. If the guard is at
 * least the longest time in which work on the GPU cannot be preempted (its tail) plus epsilon (the cost of one update),
 * nothing of a partition is on the hardware outside its windows. During a guard no context may use the GPU. Windows of
 * one partition that follow each other without a gap have no guard between them.
 *
 * <h2>Idle windows</h2>
 * Off by default: while no segment of the owner is begun, the others may use its window (not its guard), until the
 * owner begins one; it then waits for one update. Work conserving, but no longer isolating: an owner's begin finds the
 * GPU in use.
 *
 * <p>There are no pre-grants: a task that begins at a later time may find its window closed.
 */
public final class TimePartitions implements Policy {
    /** The name of this policy. */
    public static final String NAME = "partitions";
    /** The highest number of a partition. */
    public static final int PARTITIONS_MAX = 255;
    /** The most windows of a frame. */
    public static final int WINDOWS_MAX = 1024;
    /** The longest frame: one hour. */
    public static final long FRAME_MAX_NS = 3_600_000_000_000L;

    private final Policy inner;
    private final long frameNs;
    private final long phaseNs;
    private final long guardNs;
    private final boolean lending;
    /** Boundaries of the frame, from 0; what begins at each holds until the next; the last one is the frame's end. */
    private final long[] fromNs;
    /** Owner of each piece, {@link #CLOSED} for a guard. */
    private final int[] owner;

    private static final int CLOSED = -1;

    /**
     * One window.
     *
     * @param partition 1..{@value #PARTITIONS_MAX}
     * @param offsetNs  from the start of the frame, not negative
     * @param lengthNs  positive; the guard is its last part
     */
    public record Window(int partition, long offsetNs, long lengthNs) {
    }

    /**
     * A frame.
     *
     * @param inner   decides inside a window; not itself a policy of partitions, and not {@code rr}
     * @param frameNs length of the major frame, 1..{@value #FRAME_MAX_NS}
     * @param phaseNs start of some frame, 0..frameNs - 1
     * @param guardNs longest tail that cannot be preempted plus epsilon, not negative
     * @param lending whether others may use a window whose owner has no begun segment
     * @param windows in any order; not empty
     * @throws IllegalArgumentException if the numbers contradict each other, with the window and the remedy
     */
    public TimePartitions(final Policy inner, final long frameNs, final long phaseNs, final long guardNs,
        final boolean lending, final Window... windows) {
        this.inner = Objects.requireNonNull(inner, "inner");
        if (inner.isTimed() || !inner.enforces()) {
            throw new IllegalArgumentException("policy " + inner.name()
                + " cannot decide inside a window; use fp, edf or classes");
        }
        if (frameNs < 1 || frameNs > FRAME_MAX_NS) {
            throw new IllegalArgumentException("frame is " + Time.text(frameNs) + "; it must be 1ns.."
                + Time.text(FRAME_MAX_NS));
        }
        if (phaseNs < 0 || phaseNs >= frameNs) {
            throw new IllegalArgumentException("phase is " + Time.text(phaseNs) + "; it must be 0ns.."
                + Time.text(frameNs - 1));
        }
        if (guardNs < 0 || guardNs >= frameNs) {
            throw new IllegalArgumentException("guard is " + Time.text(guardNs) + "; it must be 0ns.."
                + Time.text(frameNs - 1));
        }
        if (windows.length < 1 || windows.length > WINDOWS_MAX) {
            throw new IllegalArgumentException("there are " + windows.length + " windows; give 1.." + WINDOWS_MAX);
        }
        this.frameNs = frameNs;
        this.phaseNs = phaseNs;
        this.guardNs = guardNs;
        this.lending = lending;
        final Window[] sorted = windows.clone();
        java.util.Arrays.sort(sorted, java.util.Comparator.comparingLong(Window::offsetNs));
        final long[] starts = new long[2 * sorted.length + 2];
        final int[] owners = new int[starts.length];
        final int pieces = cover(sorted, starts, owners);
        final long[] cuts = new long[2 * pieces + 1];
        final int[] holders = new int[2 * pieces + 1];
        final int n = cutGuards(starts, owners, pieces, cuts, holders);
        cuts[n] = frameNs;
        fromNs = java.util.Arrays.copyOf(cuts, n + 1);
        owner = java.util.Arrays.copyOf(holders, n);
    }

    /** The whole frame as pieces with an owner each, neighbours of one owner joined. */
    private int cover(final Window[] sorted, final long[] starts, final int[] owners) {
        int n = 0;
        long endNs = 0;
        for (final Window w : sorted) {
            requireFits(w, endNs);
            if (w.offsetNs() > endNs) {
                n = piece(starts, owners, n, endNs, 0);
            }
            n = piece(starts, owners, n, w.offsetNs(), w.partition());
            endNs = w.offsetNs() + w.lengthNs();
        }
        if (endNs < frameNs) {
            n = piece(starts, owners, n, endNs, 0);
        }
        starts[n] = frameNs;
        return n;
    }

    private static int piece(final long[] starts, final int[] owners, final int n, final long at, final int partition) {
        if (n > 0 && owners[n - 1] == partition) {
            return n;
        }
        starts[n] = at;
        owners[n] = partition;
        return n + 1;
    }

    private void requireFits(final Window w, final long previousEndNs) {
        final String what = "window of partition " + w.partition() + " at " + Time.text(w.offsetNs());
        if (w.partition() < 1 || w.partition() > PARTITIONS_MAX) {
            throw new IllegalArgumentException(what + ": the partition must be 1.." + PARTITIONS_MAX);
        }
        if (w.offsetNs() < 0 || w.lengthNs() < 1 || w.lengthNs() > frameNs - w.offsetNs()) {
            throw new IllegalArgumentException(what + ": its length is " + Time.text(w.lengthNs())
                + "; it must be positive and end within the frame of " + Time.text(frameNs));
        }
        if (w.offsetNs() < previousEndNs) {
            throw new IllegalArgumentException(what + " begins before the one before it ends, at "
                + Time.text(previousEndNs) + "; move one");
        }
        if (w.lengthNs() <= guardNs) {
            throw new IllegalArgumentException(what + ": its length is " + Time.text(w.lengthNs()) + ", the guard is "
                + Time.text(guardNs) + "; make it longer than the guard");
        }
    }

    /** The last part of a piece is its guard, unless the next piece has the same owner (the first after the last). */
    private int cutGuards(final long[] starts, final int[] owners, final int pieces, final long[] cuts,
        final int[] holders) {
        int n = 0;
        for (int i = 0; i < pieces; i++) {
            final boolean sameNext = owners[i] == owners[(i + 1) % pieces];
            final long closeNs = sameNext ? starts[i + 1] : Math.max(starts[i], starts[i + 1] - guardNs);
            if (closeNs > starts[i]) {
                cuts[n] = starts[i];
                holders[n++] = owners[i];
            }
            if (closeNs < starts[i + 1]) {
                cuts[n] = closeNs;
                holders[n++] = CLOSED;
            }
        }
        return n;
    }

    private long inFrame(final long nowNs) {
        return Math.floorMod(nowNs - phaseNs, frameNs);
    }

    private int pieceAt(final long frameTimeNs) {
        int low = 0;
        int high = owner.length - 1;
        while (low < high) {
            final int middle = (low + high + 1) >>> 1;
            if (fromNs[middle] <= frameTimeNs) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return low;
    }

    /**
     * Whose window is open.
     *
     * @param nowNs a time
     * @return a partition, 0 outside all windows, -1 during a guard
     */
    public int ownerAt(final long nowNs) {
        return owner[pieceAt(inFrame(nowNs))];
    }

    /** The length of the frame; ns. */
    public long frameNs() {
        return frameNs;
    }

    /** The policy inside a window; fp, edf or classes. */
    public Policy inner() {
        return inner;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Set<TaskNeed> needs() {
        final Set<TaskNeed> all = new HashSet<>(inner.needs());
        all.add(TaskNeed.PARTITION);
        return all;
    }

    @Override
    public Policy ordering() {
        return inner;
    }

    @Override
    public Optional<TimePartitions> timetable() {
        return Optional.of(this);
    }

    @Override
    public String describe() {
        return NAME + " (frame " + Time.text(frameNs) + ", inside " + inner.name() + ")";
    }

    @Override
    public boolean isTimed() {
        return true;
    }

    @Override
    public boolean isOpen(final int partition, final long nowNs) {
        return ownerAt(nowNs) == partition;
    }

    @Override
    public boolean lendsIdle(final long nowNs) {
        return lending && ownerAt(nowNs) != CLOSED;
    }

    @Override
    public long nextChangeNs(final long nowNs) {
        if (owner.length == 1) {
            return Time.NEVER;
        }
        final long at = inFrame(nowNs);
        return Time.addSaturating(nowNs, fromNs[pieceAt(at) + 1] - at);
    }

    @Override
    public int compare(final SegmentView a, final SegmentView b) {
        return inner.compare(a, b);
    }

    @Override
    public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
        return inner.mayRunBeside(leader, other);
    }

    @Override
    public boolean admitsBackground(final SegmentView leader) {
        return inner.admitsBackground(leader);
    }

    @Override
    public int pregrantCeiling(final SegmentView begun) {
        return Priority.MAX;
    }
}
