/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Sharing;
import java.util.List;

/**
 * What a policy file or a {@code gpuseg policy} command says. What it leaves out stays as it is. Immutable. Read by
 * {@link PolicyReader}; the keys that belong to a policy are those of its row in {@link dev.gpuseg.core.PolicyCatalog}.
 *
 * <pre>
 * version: 1
 * policy: partitions          # fp, edf, classes, rr or partitions
 * class_width: 10             # classes: how many neighbouring priorities are one class (default 1)
 * frame: 100ms                # partitions: the major frame ...
 * phase: 0ms                  # ... some frame's start on CLOCK_MONOTONIC (default 0)
 * guard: 2ms                  # ... longest tail that cannot be preempted plus epsilon
 * inside: fp                  # ... who comes first inside a window: fp, edf or classes (default fp)
 * lend_idle: false            # ... whether others may use an idle window (default no)
 * windows: [{partition: 1, offset: 0ms, length: 40ms}, {partition: 2, offset: 50ms, length: 30ms}]
 * sharing: turns              # unequal weights by turns or by timeslices (default turns); with timeslices best effort
 *                             # takes no turns beside real-time tasks either
 * quantum: 10ms               # longest turn; with timeslices: the slice of a process of weight 100
 * anticipate: declared        # disable lower work ahead of expected begins: off, declared (default) or learned
 * anticipation_budget: 5      # ... and for how much of its time best-effort work may stand still for it, percent
 * tasks: [{task: logger, weight: 400, cap: 25ms/100ms, overrun: suspend, anticipate: off}]
 * groups: [{group: 7, weight: 50, cap: none}]
 * </pre>
 *
 * <p>Weight and cap of a task are those of its process. Rules for tasks hold for the tasks of that name that are open
 * and for those that open later.
 *
 * @param policy     null = as it is
 * @param sharing    null = as it is
 * @param quantumNs  0 = the usual one of the sharing
 * @param ahead      about expected begins
 * @param taskRules  by name, in order
 * @param groupRules by number, in order
 * @param text       one line for the journal
 */
public record PolicySettings(Policy policy, Sharing sharing, long quantumNs, Ahead ahead,
    List<TaskRule> taskRules, List<GroupRule> groupRules, String text) {

    /** The longest turn that is usual: 10 ms. */
    public static final long QUANTUM_NS = 10_000_000;
    /** The usual slice of a process of weight 100: 2 ms. */
    public static final long TIMESLICE_NS = 2_000_000;
    /** The highest number of a group. */
    public static final int GROUP_MAX = 1024;
    /** Nothing is said. */
    public static final PolicySettings NONE =
        new PolicySettings(null, null, 0, Ahead.UNSAID, List.of(), List.of(), "");

    static final int UNSAID = -1;
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * About expected begins.
     *
     * @param mode          for which tasks lower work is disabled ahead of time; null = as it is
     * @param budgetPercent of the time of best-effort work, 0..100; -1 = as it is
     */
    public record Ahead(Anticipate mode, int budgetPercent) {
        /** Nothing is said. */
        public static final Ahead UNSAID = new Ahead(null, PolicySettings.UNSAID);
    }

    /**
     * Settings that say nothing about expected begins.
     *
     * @param policy     null = as it is
     * @param sharing    null = as it is
     * @param quantumNs  0 = the usual one of the sharing
     * @param taskRules  by name, in order
     * @param groupRules by number, in order
     * @param text       one line for the journal
     */
    public PolicySettings(final Policy policy, final Sharing sharing, final long quantumNs,
        final List<TaskRule> taskRules, final List<GroupRule> groupRules, final String text) {
        this(policy, sharing, quantumNs, Ahead.UNSAID, taskRules, groupRules, text);
    }

    /**
     * Weight and cap.
     *
     * @param weight   0 = as it is
     * @param quotaNs  -1 = as it is, 0 = no cap
     * @param periodNs of the cap
     */
    public record Share(int weight, long quotaNs, long periodNs) {
        /** Whether a cap was said, be it that there is none. */
        public boolean hasCap() {
            return quotaNs != UNSAID;
        }
    }

    /**
     * What is said about tasks of one name.
     *
     * @param task      the name
     * @param share     of its process
     * @param overrun   null = as it is
     * @param partition for the simulator, which has no clients that say it; -1 = not said
     * @param budgetNs  for the simulator; -1 = not said
     * @param anticipate whether its begins are anticipated; null = as it is
     */
    public record TaskRule(String task, Share share, OverrunAction overrun, int partition,
        long budgetNs, Anticipate anticipate) {
        /**
         * A rule that says nothing about expected begins.
         *
         * @param task      the name
         * @param share     of its process
         * @param overrun   null = as it is
         * @param partition -1 = not said
         * @param budgetNs  -1 = not said
         */
        public TaskRule(final String task, final Share share, final OverrunAction overrun, final int partition,
            final long budgetNs) {
            this(task, share, overrun, partition, budgetNs, null);
        }
    }

    /**
     * What is said about a group.
     *
     * @param group its number
     * @param share of all its processes together
     */
    public record GroupRule(int group, Share share) {
    }

    /**
     * The policy with its parameters, as {@link PolicyReader#policyOf} reads it.
     *
     * @return its name, and the keys of the file that belong to it as JSON where it has parameters; empty if no policy
     *     is said
     */
    public String policyText() {
        if (policy == null) {
            return "";
        }
        try {
            final ObjectNode keys = (ObjectNode) JSON.readTree(text);
            keys.properties().removeIf(field -> PolicyReader.isSetting(field.getKey()));
            return policy.name() + (keys.isEmpty() ? "" : " " + keys.put("policy", policy.name()));
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("settings are no JSON: " + text, e);
        }
    }

}
