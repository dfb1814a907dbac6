/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.policy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TimePartitions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/**
 * What a policy file or a {@code gpuseg policy} command says. What it leaves out stays as it is. Immutable.
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
 * sharing: turns              # unequal weights by turns or by timeslices (default turns)
 * quantum: 10ms               # longest turn; with timeslices: the slice of a process of weight 100
 * resume_holdoff: 500us       # best-effort work resumes this long after the last real-time segment (default 0)
 * keep_ready: false           # also disable the contexts of idle higher tasks while a segment runs (default true)
 * tasks: [{task: logger, weight: 400, cap: 25ms/100ms, overrun: suspend}]
 * groups: [{group: 7, weight: 50, cap: none}]
 * </pre>
 *
 * <p>Weight and cap of a task are those of its process. Rules for tasks hold for the tasks of that name that are open
 * and for those that open later.
 *
 * @param policy     null = as it is
 * @param sharing    null = as it is
 * @param quantumNs  0 = the usual one of the sharing
 * @param holdoffNs  -1 = as it is
 * @param keepReady  null = as it is
 * @param taskRules  by name, in order
 * @param groupRules by number, in order
 * @param text       one line for the journal
 */
public record PolicySettings(Policy policy, Sharing sharing, long quantumNs, long holdoffNs,
    Boolean keepReady, List<TaskRule> taskRules, List<GroupRule> groupRules, String text) {

    /** The longest turn that is usual: 10 ms. */
    public static final long QUANTUM_NS = 10_000_000;
    /** The usual slice of a process of weight 100: 2 ms. */
    public static final long TIMESLICE_NS = 2_000_000;
    /** Nothing is said. */
    public static final PolicySettings NONE =
        new PolicySettings(null, null, 0, -1, null, List.of(), List.of(), "");

    private static final int UNSAID = -1;
    private static final long BYTES_MAX = 1 << 20;
    private static final Set<String> KEYS = Set.of("version", "policy", "class_width", "frame", "phase", "guard",
        "inside", "lend_idle", "windows", "sharing", "quantum", "resume_holdoff", "keep_ready",
        "tasks", "groups");
    /** What belongs to a policy, and goes with it. */
    static final List<String> POLICY_KEYS =
        List.of("class_width", "frame", "phase", "guard", "inside", "lend_idle", "windows");
    private static final Set<String> WINDOW_KEYS = Set.of("partition", "offset", "length");
    private static final Set<String> TASK_KEYS = Set.of("task", "weight", "cap", "overrun", "partition",
        "budget");
    private static final Set<String> GROUP_KEYS = Set.of("group", "weight", "cap");
    private static final ObjectMapper YAML = new ObjectMapper(new YAMLFactory());

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
     */
    public record TaskRule(String task, Share share, OverrunAction overrun, int partition,
        long budgetNs) {
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
     * Reads a file.
     *
     * @param file YAML or JSON
     * @return what it says
     * @throws IllegalArgumentException if it cannot be used: {@code file: key, value, remedy}
     */
    public static PolicySettings read(final Path file) {
        return parse(tree(file), file.toString());
    }

    /**
     * Reads a file without judging it, to be sent to a daemon.
     *
     * @param file YAML or JSON
     * @return its content
     * @throws IllegalArgumentException if it cannot be read
     */
    public static JsonNode tree(final Path file) {
        try {
            if (Files.isRegularFile(file) && Files.size(file) > BYTES_MAX) {
                throw refuse(file.toString(), "the file has " + Files.size(file) + " bytes; at most " + BYTES_MAX
                    + " are read");
            }
            return YAML.readTree(Files.readString(file));
        } catch (final IOException e) {
            throw new IllegalArgumentException(file + ": cannot be read (" + e.getClass().getSimpleName() + ": "
                + String.valueOf(e.getMessage()).lines().findFirst().orElse("") + "); give a YAML or JSON file", e);
        }
    }

    /**
     * Judges settings.
     *
     * @param root   the content
     * @param source its name, for messages
     * @return what it says
     * @throws IllegalArgumentException if it cannot be used: {@code source: key, value, remedy}
     */
    public static PolicySettings parse(final JsonNode root, final String source) {
        requireKeys(root, source, "the policy", KEYS);
        if (root.has("version") && root.path("version").asInt(0) != 1) {
            throw refuse(source, "version is " + root.path("version") + "; this reader knows version: 1");
        }
        final Policy policy = policy(root, source);
        Sharing sharing = null;
        if (root.has("sharing")) {
            sharing = switch (root.path("sharing").asText()) {
                case "turns" -> Sharing.TURNS;
                case "timeslices" -> Sharing.TIMESLICES;
                default -> throw refuse(source, "sharing is " + root.path("sharing") + "; use turns or timeslices");
            };
        }
        long quantumNs = 0;
        if (root.has("quantum")) {
            quantumNs = duration(root, source, "quantum", "quantum");
            if (quantumNs < SegmentScheduler.QUANTUM_MIN_NS || quantumNs > SegmentScheduler.PERIOD_MAX_NS) {
                throw refuse(source, "quantum is " + root.path("quantum") + "; use 100us..10s");
            }
            sharing = sharing == null ? Sharing.TURNS : sharing;
        }
        final long holdoffNs = root.has("resume_holdoff")
            ? duration(root, source, "resume_holdoff", "resume_holdoff") : UNSAID;
        if (holdoffNs > SegmentScheduler.HOLDOFF_MAX_NS) {
            throw refuse(source, "resume_holdoff is " + root.path("resume_holdoff") + "; use 0ms..10ms");
        }
        if (root.has("keep_ready") && !root.path("keep_ready").isBoolean()) {
            throw refuse(source, "keep_ready is " + root.path("keep_ready") + "; use true or false");
        }
        return new PolicySettings(policy, sharing, quantumNs, holdoffNs,
            root.has("keep_ready") ? Boolean.valueOf(root.path("keep_ready").asBoolean()) : null,
            tasks(root, source), groups(root, source), root.toString());
    }

    /**
     * What here makes response-time bounds impossible.
     *
     * @return one line, empty if nothing does
     */
    public String unproven() {
        return holdoffNs > 0 ? "a resume hold-off is in none of the proofs; use 0" : "";
    }

    /**
     * The policy with its parameters, as {@link #policyOf} reads it.
     *
     * @return its name, and the keys of the file that belong to it as JSON where it has parameters; empty if no policy
     *     is said
     */
    public String policyText() {
        if (policy == null) {
            return "";
        }
        try {
            final ObjectNode keys = (ObjectNode) YAML.readTree(text);
            keys.retain(POLICY_KEYS);
            return policy.name() + (keys.isEmpty() ? "" : " " + keys.put("policy", policy.name()));
        } catch (final IOException e) {
            throw new IllegalStateException("settings are no JSON: " + text, e);
        }
    }

    /**
     * Reads what {@link #policyText} wrote.
     *
     * @param policyText as in a POLICY event, without the word {@code policy}
     * @return the policy
     * @throws IllegalArgumentException if it is cut off, or says no policy
     */
    public static Policy policyOf(final String policyText) {
        final int blank = policyText.indexOf(' ');
        if (blank < 0) {
            return Policy.named(policyText);
        }
        try {
            return policy(YAML.readTree(policyText.substring(blank + 1)), "policy");
        } catch (final IOException e) {
            throw new IllegalArgumentException("policy " + policyText.substring(0, blank)
                + ": its parameters are no JSON; are they cut off?", e);
        }
    }

    private static Policy policy(final JsonNode root, final String source) {
        if (!root.has("policy")) {
            for (final String key : POLICY_KEYS) {
                if (root.has(key)) {
                    throw refuse(source, key + " is given without policy; add policy: "
                        + ("class_width".equals(key) ? "classes" : "partitions"));
                }
            }
            return null;
        }
        final String name = root.path("policy").asText();
        try {
            return switch (name) {
                case HighestClassFirst.NAME -> new HighestClassFirst(root.path("class_width").asInt(1));
                case TimePartitions.NAME -> partitions(root, source);
                default -> Policy.named(name);
            };
        } catch (final IllegalArgumentException e) {
            throw e.getMessage().startsWith(source + ": ") ? e : new IllegalArgumentException(source + ": "
                + e.getMessage().replace("fp, edf, classes or rr", "fp, edf, classes, rr or partitions"), e);
        }
    }

    private static Policy partitions(final JsonNode root, final String source) {
        final JsonNode list = root.path("windows");
        if (!list.isArray()) {
            throw refuse(source, "windows is missing; give a list like [{partition: 1, offset: 0ms, length: 40ms}]");
        }
        final TimePartitions.Window[] windows = new TimePartitions.Window[list.size()];
        for (int i = 0; i < windows.length; i++) {
            final JsonNode node = list.get(i);
            final String what = "windows[" + i + "]";
            requireKeys(node, source, what, WINDOW_KEYS);
            windows[i] = new TimePartitions.Window(number(node, source, what, "partition", 1,
                TimePartitions.PARTITIONS_MAX), duration(node, source, what + ".offset", "offset"),
                duration(node, source, what + ".length", "length"));
        }
        final String inside = root.path("inside").asText("fp");
        return new TimePartitions(inside.equals(HighestClassFirst.NAME)
            ? new HighestClassFirst(root.path("class_width").asInt(1)) : Policy.named(inside),
            duration(root, source, "frame", "frame"),
            root.has("phase") ? duration(root, source, "phase", "phase") : 0,
            duration(root, source, "guard", "guard"), root.path("lend_idle").asBoolean(false), windows);
    }

    private static List<TaskRule> tasks(final JsonNode root, final String source) {
        final List<TaskRule> rules = new ArrayList<>();
        for (int i = 0; i < list(root, source, "tasks").size(); i++) {
            final JsonNode node = root.path("tasks").get(i);
            final String what = "tasks[" + i + "]";
            requireKeys(node, source, what, TASK_KEYS);
            final String name = node.path("task").asText("");
            if (name.isBlank()) {
                throw refuse(source, what + ".task is missing; name a task");
            }
            OverrunAction overrun = null;
            if (node.has("overrun")) {
                try {
                    overrun = OverrunAction.named(node.path("overrun").asText());
                } catch (final IllegalArgumentException e) {
                    throw refuse(source, what + ": " + e.getMessage());
                }
            }
            rules.add(new TaskRule(name, share(node, source, what), overrun,
                node.has("partition") ? number(node, source, what, "partition", 0, TimePartitions.PARTITIONS_MAX)
                    : UNSAID, node.has("budget") ? duration(node, source, what + ".budget", "budget") : UNSAID));
        }
        return List.copyOf(rules);
    }

    private static List<GroupRule> groups(final JsonNode root, final String source) {
        final List<GroupRule> rules = new ArrayList<>();
        for (int i = 0; i < list(root, source, "groups").size(); i++) {
            final JsonNode node = root.path("groups").get(i);
            final String what = "groups[" + i + "]";
            requireKeys(node, source, what, GROUP_KEYS);
            rules.add(new GroupRule(number(node, source, what, "group", 0, GROUP_MAX), share(node, source, what)));
        }
        return List.copyOf(rules);
    }

    /** The highest number of a group. */
    public static final int GROUP_MAX = 1024;

    private static Share share(final JsonNode node, final String source, final String what) {
        final int weight = node.has("weight") ? number(node, source, what, "weight", 1, SegmentScheduler.WEIGHT_MAX)
            : 0;
        if (!node.has("cap")) {
            return new Share(weight, UNSAID, 0);
        }
        final String text = node.path("cap").asText();
        if (text.equals("none")) {
            return new Share(weight, 0, 0);
        }
        final String[] parts = text.split("/", -1);
        if (parts.length != 2) {
            throw refuse(source, what + ".cap is \"" + text
                + "\"; write GPU time and period, like 25ms/100ms, or none");
        }
        final long quotaNs = duration(parts[0], source, what + ".cap");
        final long periodNs = duration(parts[1], source, what + ".cap");
        if (periodNs < SegmentScheduler.PERIOD_MIN_NS || periodNs > SegmentScheduler.PERIOD_MAX_NS || quotaNs < 1
            || quotaNs > periodNs) {
            throw refuse(source, what + ".cap is \"" + text
                + "\"; the period must be 1ms..10s and the time positive and no longer than it");
        }
        return new Share(weight, quotaNs, periodNs);
    }

    private static JsonNode list(final JsonNode root, final String source, final String key) {
        final JsonNode node = root.path(key);
        if (!node.isArray() && !node.isMissingNode()) {
            throw refuse(source, key + " is " + node + "; write a list");
        }
        return node;
    }

    private static int number(final JsonNode node, final String source, final String what, final String key,
        final int min, final int max) {
        final JsonNode value = node.path(key);
        if (!value.isInt() || value.asInt() < min || value.asInt() > max) {
            throw refuse(source, what + "." + key + " is " + (value.isMissingNode() ? "missing" : value)
                + "; give a whole number of " + min + ".." + max);
        }
        return value.asInt();
    }

    private static long duration(final JsonNode node, final String source, final String what, final String key) {
        final JsonNode value = node.path(key);
        if (!value.isTextual()) {
            throw refuse(source, what + " is " + (value.isMissingNode() ? "missing" : value)
                + "; give a number and a unit, like 10ms");
        }
        return duration(value.asText(), source, what);
    }

    private static long duration(final String text, final String source, final String what) {
        try {
            return Durations.parse(text);
        } catch (final IllegalArgumentException e) {
            throw refuse(source, what + " " + e.getMessage());
        }
    }

    private static void requireKeys(final JsonNode node, final String source, final String what,
        final Set<String> known) {
        if (!node.isObject()) {
            throw refuse(source, what + " is " + node + "; write a mapping with some of "
                + String.join(", ", known.stream().sorted().toList()));
        }
        for (final Iterator<String> names = node.fieldNames(); names.hasNext();) {
            final String name = names.next();
            if (!known.contains(name)) {
                throw refuse(source, what + ": key \"" + name + "\" is unknown; use "
                    + String.join(", ", known.stream().sorted().toList()));
            }
        }
    }

    private static IllegalArgumentException refuse(final String source, final String text) {
        return new IllegalArgumentException(source + ": " + text);
    }
}
