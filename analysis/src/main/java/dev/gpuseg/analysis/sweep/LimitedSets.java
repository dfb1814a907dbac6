/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * The sets of {@link CampaignSets}, two of three on a platform that states limits: a clock, new contexts, stops by
 * others, in sizes that leave many sets schedulable. Every third set stays as it is. Set k of a seed is a function of
 * both.
 */
public final class LimitedSets {
    private static final int POINT = 1_300;
    private static final int PLAIN_OF = 3;

    private LimitedSets() {
    }

    /**
     * A set of a campaign.
     *
     * @param seed of the campaign
     * @param k    number of the set
     * @return set k of {@link CampaignSets#mixed}, with limits if k leaves a remainder by three
     */
    public static TaskSet mixed(final long seed, final long k) {
        final TaskSet set = CampaignSets.mixed(seed, k);
        return k % PLAIN_OF == 0 ? set : withLimits(set, seed, k);
    }

    /** The same set where times hold within limits only. */
    static TaskSet withLimits(final TaskSet set, final long seed, final long k) {
        final SplittableRandom random = Seeds.random(seed, POINT, k);
        long shortest = Long.MAX_VALUE;
        for (final Task task : set.tasks()) {
            shortest = task.bestEffort() ? shortest : Math.min(shortest, task.periodNs());
        }
        if (shortest == Long.MAX_VALUE) {
            return set;
        }
        final int kind = random.nextInt(4);
        final boolean slow = kind == 0 || random.nextBoolean();
        final boolean newcomers = kind == 1 || kind == 2 && random.nextBoolean();
        final int clock = PlatformLimits.CLOCK_MIN
            + (slow ? 1 + random.nextInt(random.nextBoolean() ? 200 : PlatformLimits.CLOCK_MIN) : 0);
        final long delayNs = newcomers ? lengthNs(random, shortest) : 0;
        final long periodNs = newcomers ? periodNs(random, shortest) : 0;
        final boolean withoutUpdates = random.nextInt(3) == 0;   // where they take no time, a stop counts once
        final List<Gpu> gpus = new ArrayList<>();
        for (final Gpu gpu : set.platform().gpus()) {
            final Gpu same = withoutUpdates ? gpu.withEpsilonNs(0) : gpu;
            gpus.add(kind == 3 || kind == 2 ? same.withStalls(lengthNs(random, shortest), periodNs(random, shortest))
                : same);
        }
        return set.withPlatform(set.platform().withGpus(gpus).withLimits(new PlatformLimits(clock, !newcomers, delayNs,
            periodNs, 0, 0)));
    }

    /** A hundredth to an eighth of the shortest period of a task. */
    private static long lengthNs(final SplittableRandom random, final long shortest) {
        return Math.max(1, shortest / (8 + random.nextInt(93)));
    }

    /** Half of it to ten times: more than two lengths. */
    private static long periodNs(final SplittableRandom random, final long shortest) {
        return shortest / 2 + random.nextLong(random.nextBoolean() ? shortest : 10 * shortest) + 2;
    }

    /** Whether a set states limits that change a bound. */
    static boolean isLimited(final TaskSet set) {
        return set.platform().limits().clockPermille() > PlatformLimits.CLOCK_MIN || stops(set);
    }

    /** Whether something stops a GPU that no scheduler causes. */
    static boolean stops(final TaskSet set) {
        return set.platform().limits().newcomerNs() > 0
            || set.platform().gpus().stream().anyMatch(gpu -> gpu.stallNs() > 0);
    }
}
