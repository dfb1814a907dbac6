/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.List;

/**
 * Where a task set runs.
 *
 * @param cpus       number of CPU cores, 1..{@link #MAX_CPUS}; tasks name them 1..cpus
 * @param gpus       the GPUs in the order of their indices (from 0); possibly empty if no task uses one
 * @param optimistic true if begin returns at once where nothing could outrank the task (the daemon's default); it
 *                   changes where epsilon is paid, see {@code analysis/docs/window.md}
 * @param profile    name of the measured profile that the constants came from, or null
 * @param simulated  true if times or constants were measured on the virtual GPU: every report says so
 * @param space      what runs beside a GPU segment; {@link SpaceLimits#NONE} = nothing. See {@link TaskSet#slowed}
 * @param limits     within which the constants hold
 */
public record Platform(int cpus, List<Gpu> gpus, boolean optimistic, String profile, boolean simulated,
    SpaceLimits space, PlatformLimits limits) {
    /** Most cores that a platform may have. */
    public static final int MAX_CPUS = 1024;

    /** Most GPUs that a platform may have. */
    public static final int MAX_GPUS = 64;

    /** Validates the ranges and copies the list. */
    public Platform {
        gpus = List.copyOf(gpus);
        if (cpus < 1 || cpus > MAX_CPUS) {
            throw new InvalidModelException("platform: cpus is " + cpus + "; it must be 1.." + MAX_CPUS);
        }
        if (gpus.size() > MAX_GPUS) {
            throw new InvalidModelException("platform: there are " + gpus.size() + " GPUs; at most " + MAX_GPUS
                + " are allowed");
        }
        if (!space.isNone() && gpus.size() != 1) {
            throw new InvalidModelException("platform: space is given for " + gpus.size() + " GPUs; a daemon with "
                + "--space has one, write epsilon once, or leave space out");
        }
    }

    /**
     * A platform that states no limits.
     *
     * @param cpus       as above
     * @param gpus       as above
     * @param optimistic as above
     * @param profile    as above
     * @param simulated  as above
     * @param space      as above
     */
    public Platform(final int cpus, final List<Gpu> gpus, final boolean optimistic, final String profile,
        final boolean simulated, final SpaceLimits space) {
        this(cpus, gpus, optimistic, profile, simulated, space, PlatformLimits.NONE);
    }

    /**
     * A platform on which nothing runs beside a segment.
     *
     * @param cpus       as above
     * @param gpus       as above
     * @param optimistic as above
     * @param profile    as above
     * @param simulated  as above
     */
    public Platform(final int cpus, final List<Gpu> gpus, final boolean optimistic, final String profile,
        final boolean simulated) {
        this(cpus, gpus, optimistic, profile, simulated, SpaceLimits.NONE);
    }

    /**
     * A platform with nothing of the virtual GPU in it.
     *
     * @param cpus       as above
     * @param gpus       as above
     * @param optimistic as above
     * @param profile    as above
     */
    public Platform(final int cpus, final List<Gpu> gpus, final boolean optimistic, final String profile) {
        this(cpus, gpus, optimistic, profile, false);
    }

    /** The caveats to show behind its name, such as ", SIMULATED GPU", or empty. */
    public String caveat() {
        return (simulated ? ", SIMULATED GPU" : "") + (space.isNone() ? "" : ", " + space.text())
            + (limits.slowsDevice() ? ", " + clockText() : "");
    }

    /** What {@link PlatformLimits#clockPermille} does to the bounds; without a full stop; empty if nothing. */
    public String clockText() {
        return limits.slowsDevice()
            ? "clock " + limits.clock() + ": every device time counts so many times as declared" : "";
    }

    /** A copy with other work beside a segment. */
    public Platform withSpace(final SpaceLimits newSpace) {
        return new Platform(cpus, gpus, optimistic, profile, simulated, newSpace, limits);
    }

    /** A copy with other limits. */
    public Platform withLimits(final PlatformLimits newLimits) {
        return new Platform(cpus, gpus, optimistic, profile, simulated, space, newLimits);
    }

    /** A copy under the name of a profile; null = of none. */
    public Platform withProfile(final String name) {
        return new Platform(cpus, gpus, optimistic, name, simulated, space, limits);
    }

    /** A copy with other GPUs. */
    public Platform withGpus(final List<Gpu> newGpus) {
        return new Platform(cpus, newGpus, optimistic, profile, simulated, space, limits);
    }

    /** What bounds and simulations count: new contexts are stops of the GPUs, nothing is slower any more. */
    Platform counted() {
        return new Platform(cpus, gpus.stream().map(limits::disturbed).toList(), optimistic, profile, simulated,
            SpaceLimits.NONE, limits.counted());
    }

    /**
     * One GPU, no profile, begins that wait.
     *
     * @param cpus number of cores
     * @param gpu  its constants
     * @return the platform
     */
    public static Platform of(final int cpus, final Gpu gpu) {
        return new Platform(cpus, List.of(gpu), false, null);
    }

    /** A copy with one epsilon (runlist update delay) for all GPUs. */
    public Platform withEpsilonNs(final long epsilonNs) {
        return withGpus(gpus.stream().map(g -> g.withEpsilonNs(epsilonNs)).toList());
    }
}
