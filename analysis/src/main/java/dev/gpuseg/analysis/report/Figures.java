/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.rta.Terms;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;

/** Formats numbers for reports. Bounds are rounded up, never down. */
final class Figures {
    static final String[] TERM_KEYS = {"own", "jitter", "preemption", "interference", "interleaving", "blocking",
        "overhead"};
    static final String[] TERM_NAMES = {"own work (C + G)", "release jitter", "preemption on the core",
        "GPU interference", "time slices of others", "blocking", "updates of own segments"};
    static final int[] TERM_COLOURS = {0x2f6fb5, 0x8e7cc3, 0x1b9e8a, 0xe07b1a, 0x8d6e63, 0xc0392b, 0x5f6b7a};

    private Figures() {
    }

    static long[] values(final Terms terms) {
        return new long[] {terms.ownNs(), terms.jitterNs(), terms.preemptionNs(), terms.interferenceNs(),
            terms.interleavingNs(), terms.blockingNs(), terms.overheadNs()};
    }

    /** Milliseconds with three decimals, rounded up. */
    static String ms(final long ns) {
        return BigDecimal.valueOf(ns, 6).setScale(3, RoundingMode.CEILING).toPlainString();
    }

    /** Milliseconds with three decimals, rounded down: for slack. */
    static String msDown(final long ns) {
        return BigDecimal.valueOf(ns, 6).setScale(3, RoundingMode.FLOOR).toPlainString();
    }

    static String share(final long part, final long whole) {
        return String.format(Locale.ROOT, "%.1f %%", 100.0 * part / whole);
    }

    /** A factor in thousandths as a change in percent. */
    static String growth(final long permille) {
        if (permille == Sensitivity.NONE) {
            return "\u2013";
        }
        if (permille == Sensitivity.NEVER) {
            return "none helps";
        }
        if (permille >= Sensitivity.UNBOUNDED) {
            return "no limit";
        }
        return String.format(Locale.ROOT, "%+.1f %%", (permille - 1000) / 10.0).replace('-', '\u2212');
    }

    static String duration(final long ns) {
        return Durations.format(ns);
    }
}
