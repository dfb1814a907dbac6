/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.policy.PolicySource;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.nio.file.Path;

/**
 * What a daemon is started with.
 *
 * @param directory        where it and its clients meet
 * @param policy           the order of the tasks
 * @param mechanism        name of the mechanism
 * @param gpus             number of GPUs, 1..16 (as many as the mechanism drives)
 * @param idle             what the dispatcher does when nothing waits
 * @param optimistic       whether tasks may be pre-granted
 * @param journal          the journal's directory
 * @param journalBytes     cap of the journal, at least 1 MiB
 * @param watchdogPeriodMs longest time that an application stays disabled; 0 = no watchdog
 * @param cpu              CPU that the dispatcher is pinned to, -1 = none
 * @param priority         SCHED_FIFO priority of the dispatcher, 1..99, 0 = none
 * @param queueBytes       size of one cycle of a client's queue, a power of two, 256 KiB..256 MiB
 * @param warmUpRecords    synthetic records before clients are accepted, 0 = none
 * @param site             what the administrator decides about users: admission, protection, quotas
 * @param settings         shares, caps and rules for tasks, beside the policy
 * @param policies         where the policy comes from, and those that it may be replaced with
 * @param holdLaunches     whether launches are held besides, where the mechanism preempts running work
 * @param space            how the GPU is divided among clients of an MPS server, null = not
 */
public record DaemonConfig(RuntimeDirectory directory, Policy policy, String mechanism, int gpus, IdleMode idle,
    boolean optimistic, Path journal, long journalBytes, int watchdogPeriodMs, int cpu, int priority,
    int queueBytes, int warmUpRecords, SiteRules site, PolicySettings settings, PolicySource policies,
    boolean holdLaunches, Space space) {

    /** Usual cap of the journal: 256 MiB, about 4 million events. */
    public static final long JOURNAL_BYTES = 256L << 20;
    /** Records of the usual warm-up. */
    public static final int WARM_UP_RECORDS = 240_000;
    /** Usual period of the watchdog, ms. */
    public static final int WATCHDOG_PERIOD_MS = 100;

    /**
     * Without shares, caps and rules for tasks.
     *
     * @param directory        as above
     * @param policy           as above
     * @param mechanism        as above
     * @param gpus             as above
     * @param idle             as above
     * @param optimistic       as above
     * @param journal          as above
     * @param journalBytes     as above
     * @param watchdogPeriodMs as above
     * @param cpu              as above
     * @param priority         as above
     * @param queueBytes       as above
     * @param warmUpRecords    as above
     * @param site             as above
     */
    public DaemonConfig(final RuntimeDirectory directory, final Policy policy, final String mechanism, final int gpus,
        final IdleMode idle, final boolean optimistic, final Path journal, final long journalBytes,
        final int watchdogPeriodMs, final int cpu, final int priority, final int queueBytes, final int warmUpRecords,
        final SiteRules site) {
        this(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes, watchdogPeriodMs, cpu,
            priority, queueBytes, warmUpRecords, site, PolicySettings.NONE, PolicySource.builtIn(), false, null);
    }

    /**
     * The same with shares, caps and rules for tasks.
     *
     * @param newSettings content of a policy file
     * @return a copy
     */
    public DaemonConfig withSettings(final PolicySettings newSettings) {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, site, newSettings, policies, holdLaunches,
            space);
    }

    /**
     * The same with policies from outside.
     *
     * @param source the policies; open as long as the daemon runs
     * @return a copy
     */
    public DaemonConfig withPolicies(final PolicySource source) {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, site, settings, source, holdLaunches, space);
    }

    /**
     * The usual settings.
     *
     * @param directory where it and its clients meet
     * @param policy    the order of the tasks
     * @param mechanism name of the mechanism
     * @return hybrid idling, optimistic begins, journal in the runtime directory, watchdog, warm-up
     */
    public static DaemonConfig defaults(final RuntimeDirectory directory, final Policy policy,
        final String mechanism) {
        return new DaemonConfig(directory, policy, mechanism, 1, IdleMode.HYBRID, true, directory.journal(),
            JOURNAL_BYTES, WATCHDOG_PERIOD_MS, -1, 0, ClientQueue.BYTES_DEFAULT, WARM_UP_RECORDS,
            SiteRules.DEFAULTS);
    }

    /**
     * The same, and launches may be held besides.
     *
     * @param hold whether they are, where the mechanism preempts running work
     * @return a copy
     */
    public DaemonConfig withHeldLaunches(final boolean hold) {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, site, settings, policies, hold, space);
    }

    /**
     * The same, with room for short loops.
     *
     * @param division how the GPU is divided, null = not
     * @return a copy
     */
    public DaemonConfig withSpace(final Space division) {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, site, settings, policies, holdLaunches,
            division);
    }

    /**
     * The same for a test: no warm-up.
     *
     * @return a copy
     */
    public DaemonConfig withoutWarmUp() {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, 0, site, settings, policies, holdLaunches, space);
    }

    /**
     * The same under other rules of the site.
     *
     * @param other the rules
     * @return a copy
     */
    public DaemonConfig withSite(final SiteRules other) {
        return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
            watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, other, settings, policies, holdLaunches,
            space);
    }
}
