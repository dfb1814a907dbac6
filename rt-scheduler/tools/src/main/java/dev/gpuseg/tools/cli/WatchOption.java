/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.function.IntSupplier;
import picocli.CommandLine.Option;

/** Shows something again and again. */
final class WatchOption {
    private static final Duration MIN = Duration.ofMillis(100);
    private static final String CLEAR = "\u001b[H\u001b[2J";

    @Option(names = "--watch", paramLabel = "DURATION", arity = "0..1", fallbackValue = "1s",
        converter = DurationConverter.class,
        description = "Show it again after this time (1s if none is given), until Ctrl-C or the end of the daemon. "
            + "With --json each time is one line.")
    private Duration every;

    boolean isGiven() {
        return every != null;
    }

    /**
     * Shows once, or until the answer is not OK.
     *
     * @param out   what is shown on
     * @param plain no screen is cleared: JSON, or no terminal
     * @param show  shows once; returns an exit status
     * @return the last status
     */
    int run(final PrintWriter out, final boolean plain, final IntSupplier show) {
        if (every != null && every.compareTo(MIN) < 0) {
            throw new IllegalArgumentException("--watch is " + every.toMillis() + "ms; use 100ms or more");
        }
        while (true) {
            if (every != null && !plain && System.console() != null) {
                out.print(CLEAR);
            }
            final int status = show.getAsInt();
            if (out.checkError() || every == null || status != ExitCode.OK) {
                return status;
            }
            try {
                Thread.sleep(every.toMillis());
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
                return status;
            }
        }
    }
}
