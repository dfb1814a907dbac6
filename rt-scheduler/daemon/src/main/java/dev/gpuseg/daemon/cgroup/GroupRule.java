/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

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
 */
public record GroupRule(String pattern, int weight, long quotaNs, long periodNs, boolean protect) {
    /** Weight of groups that no rule names. */
    public static final int DEFAULT_WEIGHT = 100;
    /** Largest weight. */
    public static final int WEIGHT_MAX = 10_000;
    /** Of groups that no other rule names. */
    public static final GroupRule DEFAULT = new GroupRule("/**", DEFAULT_WEIGHT, 0, 0, false);

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
        if (quotaNs < 0 || quotaNs > periodNs
            || quotaNs > 0 && (periodNs < PERIOD_MIN_NS || periodNs > PERIOD_MAX_NS)) {
            throw new IllegalArgumentException(who + "cap is " + quotaNs + " ns per " + periodNs
                + " ns; use a quota of more than 0 and at most the period, and a period of 1ms..10s");
        }
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
