/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** For which begins of a task lower work is disabled ahead of time, beside those of which its program gives a hint. */
public enum Anticipate {
    /** None. */
    OFF("off"),
    /** Those of a task that declares its period. */
    DECLARED("declared"),
    /** Also those of a task that declares none, as soon as its begins show one. */
    LEARNED("learned");

    private final String label;

    Anticipate(final String label) {
        this.label = label;
    }

    /** The name in files and on the command line; off, declared or learned. */
    public String label() {
        return label;
    }

    /**
     * The value of a name.
     *
     * @param label as {@link #label}
     * @return the value
     * @throws IllegalArgumentException if there is none of that name
     */
    public static Anticipate named(final String label) {
        for (final Anticipate value : values()) {
            if (value.label.equals(label)) {
                return value;
            }
        }
        throw new IllegalArgumentException("anticipate is \"" + label + "\"; use off, declared or learned");
    }
}
