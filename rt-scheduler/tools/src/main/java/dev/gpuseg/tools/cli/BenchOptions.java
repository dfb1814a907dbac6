/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.DurationConverter;
import java.time.Duration;
import picocli.CommandLine.Option;

/** How long a bench measures, and in which form it answers. */
final class BenchOptions {
    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "10s",
        description = "Length of each measurement, at least 1s (default: ${DEFAULT-VALUE}).")
    private Duration duration;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    long durationMs() {
        return duration.toMillis();
    }

    boolean json() {
        return json;
    }
}
