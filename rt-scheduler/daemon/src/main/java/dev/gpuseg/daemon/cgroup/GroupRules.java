/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.NodeReader;
import dev.gpuseg.analysis.io.Schema;
import dev.gpuseg.analysis.io.Schema.Values;
import dev.gpuseg.core.Priority;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The administrator's rules, the first that matches counts:
 * <pre>
 * version: 1
 * groups:
 *   - {path: /system.slice/display-manager.service, protect: true}
 *   - {path: /robot.slice/**, weight: 400}
 *   - {path: "/user.slice/user-*.slice/**", weight: 50, cap: {quota: 20ms, period: 100ms}}
 *   - {path: "/machine.slice/**", priority: 0}
 * </pre>
 */
public final class GroupRules {
    /** No rules: all groups alike. */
    public static final GroupRules NONE = new GroupRules(List.of());

    private static final GroupRule UNKNOWN = new GroupRule("/(unknown)", GroupRule.DEFAULT_WEIGHT, 0, 0, false, 0);
    private static final long FILE_MAX_BYTES = 1L << 20;
    private static final int RULES_MAX = 1000;
    private static final Schema CAP = new Schema("{quota: 20ms, period: 100ms}",
        Schema.duration("quota", 1, GroupRule.PERIOD_MAX_NS).needed(),
        Schema.duration("period", GroupRule.PERIOD_MIN_NS, GroupRule.PERIOD_MAX_NS).needed());
    private static final Schema RULE = new Schema("{path: /robot.slice/**, weight: 400}",
        Schema.word("path").needed(), Schema.integer("weight", 1, GroupRule.WEIGHT_MAX), Schema.mapping("cap", CAP),
        Schema.flag("protect"), Schema.integer("priority", 0, Priority.MAX), Schema.any("description"));
    private static final Schema FILE = new Schema("", Schema.version(1),
        Schema.list("groups", 0, RULES_MAX, "rule", RULE).needed(), Schema.any("description"));

    private final List<GroupRule> rules;
    private final List<Pattern> patterns = new ArrayList<>();

    /** Rules in the order in which they are tried. */
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
        try {
            final List<GroupRule> rules = new ArrayList<>();
            for (final Values rule : FILE.read(new NodeReader("file of group rules", FILE_MAX_BYTES, "remove the rest")
                .read(path)).list("groups")) {
                rules.add(rule(rule));
            }
            return new GroupRules(rules);
        } catch (final InvalidFileException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        } catch (final IOException e) {
            throw new IllegalArgumentException(path + ": cannot be read: " + e.getMessage(), e);
        }
    }

    private static GroupRule rule(final Values rule) throws InvalidFileException {
        final Values cap = rule.mapping("cap");
        try {
            return new GroupRule(rule.word("path"), (int) rule.number("weight", GroupRule.DEFAULT_WEIGHT),
                cap == null ? 0 : cap.durationNs("quota", 0), cap == null ? 0 : cap.durationNs("period", 0),
                rule.flag("protect", false), (int) rule.number("priority", GroupRule.NOT_SAID));
        } catch (final IllegalArgumentException e) {
            throw rule.node().refusal(e.getMessage());
        }
    }

    /** The rule of a group: the first that matches its path, else {@link GroupRule#DEFAULT}. */
    public GroupRule of(final String path) {
        for (int i = 0; i < rules.size(); i++) {
            if (patterns.get(i).matcher(path).matches()) {
                return rules.get(i);
            }
        }
        return GroupRule.DEFAULT;
    }

    /**
     * The rule of a process that asks for something. If its group is not known, it gets no priority where rules speak
     * of priorities: a process that has ended, and left its connection to another one, would otherwise have rights that
     * its group has not.
     *
     * @param path of its group, empty if not known
     * @return the rule
     */
    public GroupRule ofProcess(final String path) {
        if (path.isEmpty()) {
            return rules.stream().anyMatch(GroupRule::limitsPriority) ? UNKNOWN : GroupRule.DEFAULT;
        }
        return of(path);
    }
}
