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
     * One with the usual settings, to be changed: one GPU, hybrid idling, optimistic begins, a journal in the runtime
     * directory, a watchdog, a warm-up, nothing held, no space.
     *
     * @param directory where it and its clients meet
     * @param policy    the order of the tasks
     * @param mechanism name of the mechanism
     * @return the builder
     */
    public static Builder of(final RuntimeDirectory directory, final Policy policy, final String mechanism) {
        return new Builder(directory, policy, mechanism);
    }

    /**
     * The same, to be changed.
     *
     * @return a builder with these values
     */
    public Builder but() {
        return new Builder(this);
    }

    /** Values for {@link DaemonConfig}, each as its parameter of the same name says. One thread. */
    public static final class Builder {
        private final RuntimeDirectory directory;
        private final Policy policy;
        private final String mechanism;
        private int gpus = 1;
        private IdleMode idle = IdleMode.HYBRID;
        private boolean optimistic = true;
        private Path journal;
        private long journalBytes = JOURNAL_BYTES;
        private int watchdogPeriodMs = WATCHDOG_PERIOD_MS;
        private int cpu = -1;
        private int priority;
        private int queueBytes = ClientQueue.BYTES_DEFAULT;
        private int warmUpRecords = WARM_UP_RECORDS;
        private SiteRules site = SiteRules.DEFAULTS;
        private PolicySettings settings = PolicySettings.NONE;
        private PolicySource policies = PolicySource.builtIn();
        private boolean holdLaunches;
        private Space space;

        private Builder(final RuntimeDirectory directory, final Policy policy, final String mechanism) {
            this.directory = directory;
            this.policy = policy;
            this.mechanism = mechanism;
            journal = directory.journal();
        }

        private Builder(final DaemonConfig from) {
            this(from.directory, from.policy, from.mechanism);
            gpus = from.gpus;
            idle = from.idle;
            optimistic = from.optimistic;
            journal = from.journal;
            journalBytes = from.journalBytes;
            watchdogPeriodMs = from.watchdogPeriodMs;
            cpu = from.cpu;
            priority = from.priority;
            queueBytes = from.queueBytes;
            warmUpRecords = from.warmUpRecords;
            site = from.site;
            settings = from.settings;
            policies = from.policies;
            holdLaunches = from.holdLaunches;
            space = from.space;
        }

        public Builder gpus(final int value) {
            gpus = value;
            return this;
        }

        public Builder idle(final IdleMode value) {
            idle = value;
            return this;
        }

        public Builder optimistic(final boolean value) {
            optimistic = value;
            return this;
        }

        public Builder journal(final Path value) {
            journal = value;
            return this;
        }

        public Builder journalBytes(final long value) {
            journalBytes = value;
            return this;
        }

        public Builder watchdogPeriodMs(final int value) {
            watchdogPeriodMs = value;
            return this;
        }

        public Builder cpu(final int value) {
            cpu = value;
            return this;
        }

        public Builder priority(final int value) {
            priority = value;
            return this;
        }

        public Builder queueBytes(final int value) {
            queueBytes = value;
            return this;
        }

        public Builder warmUpRecords(final int value) {
            warmUpRecords = value;
            return this;
        }

        public Builder site(final SiteRules value) {
            site = value;
            return this;
        }

        public Builder settings(final PolicySettings value) {
            settings = value;
            return this;
        }

        public Builder policies(final PolicySource value) {
            policies = value;
            return this;
        }

        public Builder holdLaunches(final boolean value) {
            holdLaunches = value;
            return this;
        }

        public Builder space(final Space value) {
            space = value;
            return this;
        }

        public DaemonConfig build() {
            return new DaemonConfig(directory, policy, mechanism, gpus, idle, optimistic, journal, journalBytes,
                watchdogPeriodMs, cpu, priority, queueBytes, warmUpRecords, site, settings, policies, holdLaunches,
                space);
        }
    }
}
