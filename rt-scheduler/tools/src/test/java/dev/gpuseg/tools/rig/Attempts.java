/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import java.util.ArrayList;
import java.util.List;

/**
 * For what a machine spoils that does not let a process run for a second: it must come out right in one of a few
 * attempts. What must hold in each is asserted inside.
 */
public final class Attempts {
    /** Returns null if it came out right, else what did not. */
    @FunctionalInterface
    public interface Attempt {
        String go() throws Exception;
    }

    private Attempts() {
    }

    public static void of(final int most, final Attempt attempt) throws Exception {
        final List<String> wrong = new ArrayList<>();
        while (wrong.size() < most) {
            final String text = attempt.go();
            if (text == null) {
                return;
            }
            wrong.add(text);
        }
        throw new AssertionError("in none of " + most + " attempts: " + wrong);
    }
}
