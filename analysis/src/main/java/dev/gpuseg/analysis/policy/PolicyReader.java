/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.policy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.analysis.io.NodeReader;
import dev.gpuseg.analysis.io.Schema;
import dev.gpuseg.analysis.io.Schema.Key;
import dev.gpuseg.analysis.io.Schema.Values;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.policy.PolicySettings.GroupRule;
import dev.gpuseg.analysis.policy.PolicySettings.Share;
import dev.gpuseg.analysis.policy.PolicySettings.TaskRule;
import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.PolicyParameter;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.core.TimePartitions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Reads policy files, requests that change the policy, and what journals say of policies. Which policies there are and
 * what parameters they have is the catalogue's business. Thread-safe.
 */
public final class PolicyReader {
    private static final long FILE_MAX_BYTES = 1 << 20;
    private static final int RULES_MAX = 100_000;
    private static final int PERCENT = 100;
    private static final String POLICY = "policy";
    private static final Key ANTICIPATE = Schema.choice("anticipate",
        Stream.of(Anticipate.values()).map(Anticipate::label).toArray(String[]::new));
    private static final Schema TASK = new Schema("{task: logger, weight: 400}", Schema.task("task").needed(),
        Schema.integer("weight", 1, SegmentScheduler.WEIGHT_MAX), Schema.word("cap"),
        Schema.choice("overrun", Stream.of(OverrunAction.values()).map(OverrunAction::label).toArray(String[]::new)),
        Schema.integer("partition", 0, TimePartitions.PARTITIONS_MAX), Schema.duration("budget", 0, Long.MAX_VALUE),
        ANTICIPATE);
    private static final Schema GROUP = new Schema("{group: 7, weight: 50}",
        Schema.integer("group", 0, PolicySettings.GROUP_MAX).needed(),
        Schema.integer("weight", 1, SegmentScheduler.WEIGHT_MAX), Schema.word("cap"));
    private static final Schema SETTINGS = new Schema("{policy: fp}", Schema.version(1), Schema.word(POLICY),
        Schema.choice("sharing", "turns", "timeslices"),
        Schema.duration("quantum", SegmentScheduler.QUANTUM_MIN_NS, SegmentScheduler.PERIOD_MAX_NS),
        ANTICIPATE, Schema.integer("anticipation_budget", 0, PERCENT),
        Schema.list("tasks", 0, RULES_MAX, "rule for task", TASK),
        Schema.list("groups", 0, RULES_MAX, "rule for group", GROUP));
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PolicyCatalog catalog;
    private final Schema schema;

    /**
     * A reader that knows some policies.
     *
     * @param catalog the policies
     * @throws IllegalArgumentException if a parameter of one is named like a key that settings have anyway
     */
    public PolicyReader(final PolicyCatalog catalog) {
        this.catalog = catalog;
        final List<Key> parameters = new ArrayList<>();
        for (final PolicyDescription row : catalog.all()) {
            for (final PolicyParameter p : row.parameters()) {
                if (isSetting(p.name())) {
                    throw new IllegalArgumentException("policy " + row.name() + ": parameter " + p.name()
                        + " is named like a key of every policy file; give it another name");
                }
                parameters.add(Schema.any(p.name()));   // its kind depends on the policy
            }
        }
        schema = SETTINGS.with(parameters);
    }

    /** Whether a key says something that holds whatever the policy, and so is no parameter of one. */
    public static boolean isSetting(final String key) {
        return SETTINGS.names().contains(key);
    }

    /**
     * The policies that it knows.
     *
     * @return the catalogue
     */
    public PolicyCatalog catalog() {
        return catalog;
    }

    /**
     * Reads a file without judging it, to be sent to a daemon.
     *
     * @param file YAML or JSON
     * @return its content
     * @throws IllegalArgumentException if it cannot be read
     */
    public static Node load(final Path file) {
        try {
            return new NodeReader("policy file", FILE_MAX_BYTES, "remove the rest").read(file);
        } catch (final InvalidFileException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        } catch (final IOException e) {
            throw new IllegalArgumentException(file + ": cannot be read (" + e.getClass().getSimpleName()
                + "); give a YAML or JSON file", e);
        }
    }

    /**
     * Reads a file.
     *
     * @param file YAML or JSON
     * @return what it says
     * @throws IllegalArgumentException if it cannot be used: {@code file:line:column: key, value, remedy}
     */
    public PolicySettings read(final Path file) {
        return read(load(file));
    }

    /**
     * Judges settings.
     *
     * @param root   the content, without places
     * @param source its name, for messages
     * @return what it says
     * @throws IllegalArgumentException if it cannot be used: {@code source: key, value, remedy}
     */
    public PolicySettings read(final JsonNode root, final String source) {
        return read(Node.of(root, source, "the policy"));
    }

    /**
     * Judges settings.
     *
     * @param root the content
     * @return what it says
     * @throws IllegalArgumentException if it cannot be used: {@code place: key, value, remedy}
     */
    public PolicySettings read(final Node root) {
        try {
            return settings(root);
        } catch (final InvalidFileException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private PolicySettings settings(final Node root) throws InvalidFileException {
        final Values given = schema.read(root);
        final Policy policy = policy(root, given.word(POLICY));
        final long quantumNs = given.durationNs("quantum", 0);
        final String sharing = given.word("sharing");
        return new PolicySettings(policy,
            sharing == null ? quantumNs > 0 ? Sharing.TURNS : null
                : sharing.equals("turns") ? Sharing.TURNS : Sharing.TIMESLICES,
            quantumNs, new PolicySettings.Ahead(anticipate(given), (int) given.number("anticipation_budget",
                PolicySettings.UNSAID)),
            tasks(given), groups(given), root.toJson().toString());
    }

    // ---- the policy and its parameters ----------------------------------------------------------------------------

    /**
     * Reads what {@link PolicySettings#policyText} wrote.
     *
     * @param policyText as in a POLICY event, without the word {@code policy}
     * @return the policy
     * @throws IllegalArgumentException if it is cut off, or says no policy that is known
     */
    public Policy policyOf(final String policyText) {
        final int blank = policyText.indexOf(' ');
        if (blank < 0) {
            return catalog.create(policyText);
        }
        final String name = policyText.substring(0, blank);
        try {
            return policy(Node.of(JSON.readTree(policyText.substring(blank + 1)), POLICY, "the policy"), name);
        } catch (final JsonProcessingException e) {
            throw new IllegalArgumentException("policy " + name + ": its parameters are no JSON; are they cut off?", e);
        } catch (final InvalidFileException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    private Policy policy(final Node root, final String name) throws InvalidFileException {
        final Set<String> left = new LinkedHashSet<>(root.keys());
        left.removeIf(PolicyReader::isSetting);
        if (name == null) {
            for (final String key : left) {
                throw root.get(key).refusal(key + " is given without policy; add policy: " + String.join(" or ",
                    catalog.all().stream().filter(row -> row.parameter(key).isPresent())
                        .map(PolicyDescription::name).toList()));
            }
            return null;
        }
        final Node place = root.get(POLICY) == null ? root : root.get(POLICY);
        try {
            final Map<String, Object> arguments = new HashMap<>();
            take(root, catalog.get(name), left, arguments);
            for (final String key : left) {
                throw root.get(key).refusal(key + " is no parameter of policy " + name + "; remove it");
            }
            return catalog.create(name, arguments);
        } catch (final IllegalArgumentException e) {
            throw place.refusal(e.getMessage());
        }
    }

    /** Takes what belongs to a policy, and to the one inside it. */
    private void take(final Node root, final PolicyDescription row, final Set<String> left,
        final Map<String, Object> arguments) throws InvalidFileException {
        for (final PolicyParameter p : row.parameters()) {
            final Node node = left.remove(p.name()) ? root.get(p.name()) : null;
            if (node != null) {
                arguments.put(p.name(), plain(Schema.value(key(p), node)));
            }
            if (p.kind() == PolicyParameter.Kind.POLICY) {
                final String inside = node == null ? (String) p.defaultValue() : node.text();
                if (node != null && catalog.find(inside).isEmpty()) {
                    throw node.refuse("is " + node.show() + "; use " + catalog.names());
                }
                take(root, catalog.get(inside), left, arguments);
            }
        }
    }

    private static Key key(final PolicyParameter p) {
        return switch (p.kind()) {
            case INTEGER -> Schema.integer(p.name(), p.min(), p.max());
            case DURATION -> Schema.duration(p.name(), p.min(), p.max());
            case BOOLEAN -> Schema.flag(p.name());
            case POLICY -> Schema.word(p.name());
            case LIST -> Schema.list(p.name(), p.min(), p.max(), "", new Schema("", p.fields().stream()
                .map(field -> field.isRequired() ? key(field).needed() : key(field)).toArray(Key[]::new)))
                .writtenAs(p.description());
        };
    }

    /** As the catalogue takes it. */
    private static Object plain(final Object value) {
        return value instanceof List<?> list ? list.stream().map(entry -> ((Values) entry).asMap()).toList() : value;
    }

    // ---- rules ----------------------------------------------------------------------------------------------------

    private static List<TaskRule> tasks(final Values given) throws InvalidFileException {
        final List<TaskRule> rules = new ArrayList<>();
        for (final Values rule : given.list("tasks")) {
            final String overrun = rule.word("overrun");
            rules.add(new TaskRule(rule.word("task"), share(rule), overrun == null ? null
                : OverrunAction.named(overrun), (int) rule.number("partition", PolicySettings.UNSAID),
                rule.durationNs("budget", PolicySettings.UNSAID), anticipate(rule)));
        }
        return List.copyOf(rules);
    }

    private static Anticipate anticipate(final Values given) throws InvalidFileException {
        final String label = given.word("anticipate");
        return label == null ? null : Anticipate.named(label);
    }

    private static List<GroupRule> groups(final Values given) throws InvalidFileException {
        final List<GroupRule> rules = new ArrayList<>();
        for (final Values rule : given.list("groups")) {
            rules.add(new GroupRule((int) rule.number("group", 0), share(rule)));
        }
        return List.copyOf(rules);
    }

    private static Share share(final Values rule) throws InvalidFileException {
        final int weight = (int) rule.number("weight", 0);
        final String cap = rule.word("cap");
        if (cap == null || cap.equals("none")) {
            return new Share(weight, cap == null ? PolicySettings.UNSAID : 0, 0);
        }
        final String[] parts = cap.split("/", -1);
        if (parts.length != 2) {
            throw rule.node("cap").refuse("is \"" + cap + "\"; write GPU time and period, like 25ms/100ms, or none");
        }
        final long quotaNs;
        final long periodNs;
        try {
            quotaNs = Durations.parse(parts[0]);
            periodNs = Durations.parse(parts[1]);
        } catch (final IllegalArgumentException e) {
            throw rule.node("cap").refuse(e.getMessage());
        }
        if (periodNs < SegmentScheduler.PERIOD_MIN_NS || periodNs > SegmentScheduler.PERIOD_MAX_NS || quotaNs < 1
            || quotaNs > periodNs) {
            throw rule.node("cap").refuse("is \"" + cap
                + "\"; the period must be 1ms..10s and the time positive and no longer than it");
        }
        return new Share(weight, quotaNs, periodNs);
    }
}
