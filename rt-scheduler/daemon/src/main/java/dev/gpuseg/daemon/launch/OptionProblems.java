/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.daemon.process.StartUpException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/** What is refused of the options of {@code run}: each is looked at once, and all mistakes are said. */
final class OptionProblems {
    private final List<StartUpException> all = new ArrayList<>();

    /**
     * Takes what an option says.
     *
     * @param option to blame if it is refused
     * @param value  throws {@link IllegalArgumentException} with one line of why if it is refused
     * @return the value; null if it was refused
     */
    <T> T in(final String option, final Supplier<T> value) {
        try {
            return value.get();
        } catch (final IllegalArgumentException e) {
            all.add(new StartUpException(option, e.getMessage(), e));
            return null;
        }
    }

    void add(final String option, final String message) {
        all.add(new StartUpException(option, message, null));
    }

    void add(final StartUpException refused) {
        all.add(refused);
    }

    /** Whether a number is in a range, both ends included; it is refused if not. */
    boolean isIn(final String option, final int value, final int min, final int max) {
        if (value >= min && value <= max) {
            return true;
        }
        add(option, option + " is " + value + "; use " + min + ".." + max);
        return false;
    }

    boolean none() {
        return all.isEmpty();
    }

    List<StartUpException> all() {
        return List.copyOf(all);
    }
}
