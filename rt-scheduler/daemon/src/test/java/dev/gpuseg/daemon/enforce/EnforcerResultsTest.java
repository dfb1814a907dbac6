/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.ContextRef;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EnforcerResultsTest {
    private static final int MORE_THAN_FIT = 10_000;

    private final EnforcerResults results = new EnforcerResults(() -> { });
    private final ContextRef context = new ContextRef(7, 0, 100, 1, "test");

    private List<String> take() {
        final List<String> taken = new ArrayList<>();
        int n = 1;
        while (n > 0) {
            n = results.poll((type, buffer, offset, length) -> taken.add(type == EnforcerResults.ERROR
                ? buffer.getStringWithoutLengthUtf8(offset, length) : "context " + buffer.getInt(offset)));
        }
        return taken;
    }

    @Test
    void shouldSayHowManyResultsWereDropped() {
        for (int i = 0; i < MORE_THAN_FIT; i++) {
            results.changed(context, true);
        }
        final int kept = take().size();
        assertTrue(kept > 0 && kept < MORE_THAN_FIT, kept + " results fit");
        results.changed(context, false);
        assertEquals(List.of((MORE_THAN_FIT - kept)
            + " results of the enforcer were dropped: the dispatcher did not take them in time", "context 7"), take());
        results.changed(context, true);
        assertEquals(List.of("context 7"), take(), "said once");
    }

    @Test
    void shouldCutALongErrorAndKeepAnEmptyOne() {
        results.error("x".repeat(2_000));
        results.error("");
        final List<String> taken = take();
        assertEquals(2, taken.size());
        assertEquals("x".repeat(512), taken.get(0));
    }
}
