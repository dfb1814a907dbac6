/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import dev.gpuseg.core.Priority;
import java.util.regex.Pattern;

/**
 * What the administrator says of the groups whose path matches. Each matching group gets the weight and the cap for
 * itself; groups do not share them.
 *
 * @param pattern  of paths: {@code *} and {@code ?} match within one name, {@code **} across names; {@code /a/**}
 *                 matches {@code /a} too
 * @param weight   share among best-effort groups, 1..10000
 * @param quotaNs  GPU time per period, 0 = no cap
 * @param periodNs period of the cap, 0 = no cap
 * @param protect  its contexts are never disabled
 * @param priority the highest priority of its tasks, 0..99, in place of what the limits of their users say;
 *                 {@link #NOT_SAID} leaves it to those
 */
public record GroupRule(String pattern, int weight, long quotaNs, long periodNs, boolean protect, int priority) {
    /** A priority that the rule leaves to the limits of users. */
    public static final int NOT_SAID = -1;
    /** Weight of groups that no rule names. */
    public static final int DEFAULT_WEIGHT = 100;
    /** Largest weight. */
    public static final int WEIGHT_MAX = 10_000;
    /** Of groups that no other rule names. */
    public static final GroupRule DEFAULT = new GroupRule("/**", DEFAULT_WEIGHT, 0, 0, false, NOT_SAID);

    /** Shortest and longest period of a cap. */
    static final long PERIOD_MIN_NS = 1_000_000L;
    static final long PERIOD_MAX_NS = 10_000_000_000L;

    /** Refuses values out of range. */
    public GroupRule {
        final String who = "rule for \"" + pattern + "\": ";
        if (!pattern.startsWith("/") || pattern.chars().anyMatch(Character::isISOControl)) {
            throw new IllegalArgumentException(who + "the path must begin with a slash, as in /proc/PID/cgroup");
        }
        if (weight < 1 || weight > WEIGHT_MAX) {
            throw new IllegalArgumentException(who + "weight is " + weight + "; use 1.." + WEIGHT_MAX + " (default "
                + DEFAULT_WEIGHT + ")");
        }
        if (priority < NOT_SAID || priority > Priority.MAX) {
            throw new IllegalArgumentException(who + "priority is " + priority + "; use 0.." + Priority.MAX
                + ", 0 for best effort only");
        }
        if (quotaNs < 0 || quotaNs > periodNs
            || quotaNs > 0 && (periodNs < PERIOD_MIN_NS || periodNs > PERIOD_MAX_NS)) {
            throw new IllegalArgumentException(who + "cap is " + quotaNs + " ns per " + periodNs
                + " ns; use a quota of more than 0 and at most the period, and a period of 1ms..10s");
        }
    }

    /**
     * A rule that says nothing of priorities.
     *
     * @param pattern  of paths
     * @param weight   share among best-effort groups
     * @param quotaNs  GPU time per period
     * @param periodNs period of the cap
     * @param protect  its contexts are never disabled
     */
    public GroupRule(final String pattern, final int weight, final long quotaNs, final long periodNs,
        final boolean protect) {
        this(pattern, weight, quotaNs, periodNs, protect, NOT_SAID);
    }

    /** Whether it says which priorities tasks may have. */
    public boolean limitsPriority() {
        return priority != NOT_SAID;
    }

    /** A matcher for the pattern. */
    Pattern compile() {
        final StringBuilder regex = new StringBuilder();
        final String body = pattern.endsWith("/**") ? pattern.substring(0, pattern.length() - 3) : pattern;
        for (int i = 0; i < body.length(); i++) {
            final char c = body.charAt(i);
            if (c == '*' && i + 1 < body.length() && body.charAt(i + 1) == '*') {
                regex.append(".*");
                i++;
            } else if (c == '*') {
                regex.append("[^/]*");
            } else if (c == '?') {
                regex.append("[^/]");
            } else {
                regex.append(Pattern.quote(String.valueOf(c)));
            }
        }
        return Pattern.compile(regex + (pattern.equals(body) ? "" : "(/.*)?"), Pattern.DOTALL);
    }
}
