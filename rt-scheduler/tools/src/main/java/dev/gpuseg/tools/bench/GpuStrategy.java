/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.util.List;

/** One way of protecting the real-time kernel in {@code gpuseg bench gpu}. */
public enum GpuStrategy {
    /** Nothing but the driver's time slicing. */
    NONE("default", "none", null),
    /** Long slice for the real-time context, no cost per segment. */
    SLICE("slice: RT 1 s", "none", null, "--slice-us", "1000000"),
    /** Long slice, and short ones for the others. */
    SLICES("slices: RT 1 s, others 500 us", "none", null, "--slice-us", "1000000", "--other-slice-us", "500"),
    /** The setting of GPreempt: starves the others if there are two or more. */
    GPREEMPT("GPreempt: RT 1 s, others 1 us", "none", null, "--slice-us", "1000000", "--other-slice-us", "1"),
    /** The bare driver calls, disable first. */
    BARE_BLOCKING("bare calls, blocking", "off-then-launch", null),
    /** The bare driver calls, launch first. */
    BARE_OPTIMISTIC("bare calls, optimistic", "launch-then-off", null),
    /** Through the daemon, begin waits. */
    BLOCKING("interrupt, blocking", "wait", List.of()),
    /** Through the daemon, begin does not wait. */
    OPTIMISTIC("interrupt, optimistic", "segment", List.of()),
    /** The same with a long slice that the process sets itself. */
    OPTIMISTIC_SLICE("interrupt+slice, optimistic", "segment", List.of(), "--slice-us", "1000000"),
    /** A hint 2 ms ahead of the begin. */
    HINT("interrupt, hint 2 ms ahead", "segment", List.of(), "--hint-ms", "2"),
    /** The program knows nothing of gpuseg: {@code gpuseg exec} finds its segments. */
    EXEC("under exec", "none", List.of()),
    /** The same where the launches of the others are held, who are under {@code exec} too: scenarios of PyTorch. */
    HELD("launches held", "none", List.of("--mechanism", "launch"));

    private final String title;
    private final String mode;
    private final List<String> daemonOptions;
    private final List<String> options;

    GpuStrategy(final String title, final String mode, final List<String> daemonOptions, final String... options) {
        this.title = title;
        this.mode = mode;
        this.daemonOptions = daemonOptions;
        this.options = List.of(options);
    }

    String title() {
        return title;
    }

    /** What gpuseg-bench-rt is told. */
    String mode() {
        return mode;
    }

    /** More for gpuseg-bench-rt. */
    List<String> options() {
        return options;
    }

    boolean needsDaemon() {
        return daemonOptions != null;
    }

    /** What {@code gpuseg run} needs for it; null without a daemon. */
    List<String> daemonOptions() {
        return daemonOptions;
    }

    /** The process acts on the others by itself, so it must know them. */
    boolean namesOthers() {
        return mode.startsWith("off") || mode.startsWith("launch") || options.contains("--other-slice-us");
    }
}
