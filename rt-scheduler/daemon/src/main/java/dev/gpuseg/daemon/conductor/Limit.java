/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.core.Priority;
import dev.gpuseg.ipc.Abi;

/** What of a user is limited. Each has a word, as the files of {@link UserLimits} write it, and a unit. */
public enum Limit {
    /** Highest priority of a task, 0..99. */
    PRIORITY("priority", Unit.NUMBER, Priority.MAX),
    /** Highest priority of a task that declares no budget, 0..99. */
    UNBUDGETED("unbudgeted", Unit.NUMBER, Priority.MAX),
    /** Longest budget, ns. A real-time task that declares none gets this one. */
    BUDGET("budget", Unit.DURATION, Limit.HOUR_NS),
    /** Sum of budget / period over the open real-time tasks, percent of one GPU. */
    UTILIZATION("utilization", Unit.PERCENT, 100 * Abi.GPUS_MAX),
    /** What real-time segments together may use of each GPU in the long run, percent. */
    SHARE("share", Unit.PERCENT, 100),
    /** Open tasks. */
    TASKS("tasks", Unit.NUMBER, Abi.CLIENTS_MAX * Abi.SLOTS_MAX),
    /** Registered processes. */
    CLIENTS("clients", Unit.NUMBER, Abi.CLIENTS_MAX),
    /** Processes with a GPU context, registered or not; those beyond it are ended. */
    CONTEXTS("contexts", Unit.NUMBER, 1_000_000),
    /** Records of all its processes that the dispatcher takes in a second. */
    RECORDS("records", Unit.NUMBER, 999_999),
    /** How far ahead of a begin a hint may be given, ns. */
    HINT_LEAD("hint_lead", Unit.DURATION, Limit.HOUR_NS);

    /** In a file: no limit. */
    static final String UNLIMITED = "unlimited";

    private static final long HOUR_NS = 3_600_000_000_000L;
    private static final long NS_PER_US = 1_000;
    private static final long NS_PER_MS = 1_000_000;

    private enum Unit {
        NUMBER,
        PERCENT,
        DURATION
    }

    private final String word;
    private final Unit unit;
    private final long max;

    Limit(final String word, final Unit unit, final long max) {
        this.word = word;
        this.unit = unit;
        this.max = max;
    }

    /** Its name in files and messages: for instance {@code hint_lead}. */
    public String word() {
        return word;
    }

    /** The most that a line can say, besides {@link #UNLIMITED}. */
    long max() {
        return max;
    }

    /**
     * Reads a value.
     *
     * @param text a number, a percentage, a duration, or {@code unlimited}
     * @return the value, {@link Long#MAX_VALUE} if unlimited
     * @throws IllegalArgumentException if it is none, or out of range; the message begins after the limit's name
     */
    long parse(final String text) {
        if (text.equals(UNLIMITED)) {
            return Long.MAX_VALUE;
        }
        long value = -1;
        if (unit == Unit.DURATION) {
            value = Durations.parse(text);
        } else if (text.matches("[0-9]{1,6}%?") && text.endsWith("%") == (unit == Unit.PERCENT)) {
            value = Long.parseLong(text.replace("%", ""));
        }
        if (value < 0 || value > max) {
            throw new IllegalArgumentException("is " + text + "; use " + show(0) + ".." + show(max) + ", or "
                + UNLIMITED);
        }
        return value;
    }

    /** A value with its unit, as {@link #parse} takes it. */
    String show(final long value) {
        if (value == Long.MAX_VALUE) {
            return UNLIMITED;
        }
        return switch (unit) {
            case NUMBER -> Long.toString(value);
            case PERCENT -> value + "%";
            case DURATION -> duration(value);
        };
    }

    private static String duration(final long ns) {
        if (ns % NS_PER_MS == 0) {
            return ns / NS_PER_MS + "ms";
        }
        return ns % NS_PER_US == 0 ? ns / NS_PER_US + "us" : ns + "ns";
    }
}
