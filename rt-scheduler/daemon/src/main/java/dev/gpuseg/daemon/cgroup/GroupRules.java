/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import dev.gpuseg.analysis.model.Durations;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The administrator's rules, the first that matches counts:
 * <pre>
 * version: 1
 * groups:
 *   - {path: /system.slice/display-manager.service, protect: true}
 *   - {path: /robot.slice/**, weight: 400}
 *   - {path: "/user.slice/user-*.slice/**", weight: 50, cap: {quota: 20ms, period: 100ms}}
 * </pre>
 */
public final class GroupRules {
    /** No rules: all groups alike. */
    public static final GroupRules NONE = new GroupRules(List.of());

    private static final long BYTES_MAX = 1L << 20;
    private static final int RULES_MAX = 1000;
    private static final Set<String> ROOT_KEYS = Set.of("version", "groups", "description");
    private static final Set<String> RULE_KEYS = Set.of("path", "weight", "cap", "protect", "description");
    private static final Set<String> CAP_KEYS = Set.of("quota", "period");

    private final List<GroupRule> rules;
    private final List<Pattern> patterns = new ArrayList<>();

    /**
     * Rules in the order in which they are tried.
     *
     * @param rules any number
     */
    public GroupRules(final List<GroupRule> rules) {
        this.rules = List.copyOf(rules);
        for (final GroupRule rule : rules) {
            patterns.add(rule.compile());
        }
    }

    /**
     * Reads a file.
     *
     * @param path YAML or JSON
     * @return the rules
     * @throws IllegalArgumentException if it is refused, with one line of why
     */
    public static GroupRules read(final Path path) {
        final JsonNode root;
        try {
            if (!Files.isRegularFile(path) || Files.size(path) > BYTES_MAX) {
                throw new IllegalArgumentException(path + ": there is no such file of at most 1 MiB; check the name");
            }
            root = new ObjectMapper(new YAMLFactory()).readTree(path.toFile());
        } catch (final JsonProcessingException e) {
            throw new IllegalArgumentException(path + ": not readable as YAML: "
                + e.getOriginalMessage().lines().findFirst().orElse(""), e);
        } catch (final IOException e) {
            throw new IllegalArgumentException(path + ": cannot be read: " + e.getMessage(), e);
        }
        try {
            return of(root);
        } catch (final IllegalArgumentException e) {
            throw new IllegalArgumentException(path + ": " + e.getMessage(), e);
        }
    }

    private static GroupRules of(final JsonNode root) {
        keys("the file", root, ROOT_KEYS);
        if (root.path("version").asInt(1) != 1 || !root.path("groups").isArray()
            || root.path("groups").size() > RULES_MAX) {
            throw new IllegalArgumentException("write version: 1 and under groups a list of at most " + RULES_MAX
                + " rules like {path: /robot.slice/**, weight: 400}");
        }
        final List<GroupRule> rules = new ArrayList<>();
        for (final JsonNode node : root.path("groups")) {
            rules.add(rule(node));
        }
        return new GroupRules(rules);
    }

    private static GroupRule rule(final JsonNode node) {
        final String pattern = node.path("path").asText("");
        final String who = "rule for \"" + pattern + "\"";
        keys(who, node, RULE_KEYS);
        final JsonNode weight = node.path("weight");
        if (!weight.isMissingNode() && !weight.canConvertToInt()) {
            throw new IllegalArgumentException(who + ": weight is " + weight + "; use 1.." + GroupRule.WEIGHT_MAX);
        }
        final JsonNode protect = node.path("protect");
        if (!protect.isMissingNode() && !protect.isBoolean()) {
            throw new IllegalArgumentException(who + ": protect is " + protect + "; write true or false");
        }
        final JsonNode cap = node.path("cap");
        long quotaNs = 0;
        long periodNs = 0;
        if (!cap.isMissingNode()) {
            keys(who + ": cap", cap, CAP_KEYS);
            quotaNs = duration(who + ": cap: quota", cap.path("quota"));
            periodNs = duration(who + ": cap: period", cap.path("period"));
            if (quotaNs == 0) {
                throw new IllegalArgumentException(who + ": cap: quota is 0; a cap leaves some time, stop the "
                    + "processes instead");
            }
        }
        return new GroupRule(pattern, weight.asInt(GroupRule.DEFAULT_WEIGHT), quotaNs, periodNs,
            protect.asBoolean(false));
    }

    private static long duration(final String what, final JsonNode value) {
        try {
            return Durations.parse(value.asText(""));
        } catch (final IllegalArgumentException e) {
            throw new IllegalArgumentException(what + " " + e.getMessage(), e);
        }
    }

    private static void keys(final String what, final JsonNode node, final Set<String> known) {
        if (!node.isObject()) {
            throw new IllegalArgumentException(what + " is not a mapping");
        }
        for (final Iterator<String> names = node.fieldNames(); names.hasNext();) {
            final String name = names.next();
            if (!known.contains(name)) {
                throw new IllegalArgumentException(what + ": unknown key '" + name + "'; known are "
                    + String.join(", ", known.stream().sorted().toList()));
            }
        }
    }

    /**
     * The rule of a group.
     *
     * @param path of the group
     * @return the first that matches, else {@link GroupRule#DEFAULT}
     */
    public GroupRule of(final String path) {
        for (int i = 0; i < rules.size(); i++) {
            if (patterns.get(i).matcher(path).matches()) {
                return rules.get(i);
            }
        }
        return GroupRule.DEFAULT;
    }

    /**
     * Whether some rule divides GPU time: a weight other than the default, or a cap.
     *
     * @return true if so
     */
    public boolean divideTime() {
        return rules.stream().anyMatch(rule -> rule.weight() != GroupRule.DEFAULT_WEIGHT || rule.quotaNs() > 0);
    }
}
