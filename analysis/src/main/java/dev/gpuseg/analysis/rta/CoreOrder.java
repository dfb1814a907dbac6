/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import java.util.Locale;

/** How the kernel orders the threads of a core. The daemon does not decide this; the analysis must know it. */
public enum CoreOrder {
    /** SCHED_FIFO by the tasks' priorities. */
    FP,
    /** SCHED_DEADLINE by the tasks' deadlines. */
    EDF;

    /**
     * The order of a word.
     *
     * @param word fp or edf
     * @return the order
     * @throws IllegalArgumentException if it is another word
     */
    public static CoreOrder named(final String word) {
        for (final CoreOrder order : values()) {
            if (order.word().equals(word)) {
                return order;
            }
        }
        throw new IllegalArgumentException("core order \"" + word + "\" is unknown; use fp or edf");
    }

    /** The word on the command line and in the status, in lower case. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
