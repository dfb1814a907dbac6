/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class EvidenceTest {
    /** As JDK 17 and 25 write them. */
    private static final List<String> ENDS = List.of(
        "GC(0) Garbage Collection (Warmup) 8M(12%)->8M(12%)",
        "GC(3) Major Collection (System.gc()) 24M(38%)->4M(6%) 0.045s",
        "GC(0) Pause Young (Allocation Failure) 18M->4M(61M) 11.070ms",
        "GC(1) Pause Young (Normal) (G1 Evacuation Pause) 7M->4M(64M) 5.834ms",
        "GC(0) Pause Full (System.gc()) 13M->2M(61M) 14.758ms");

    @Test
    void shouldCountEachCollectionOfEveryCollectorOnce() {
        for (final String line : ENDS) {
            assertTrue(Evidence.endsCollection(line), line);
        }
        assertFalse(Evidence.endsCollection("GC(3) Major Collection (System.gc())"), "it begins");
        assertFalse(Evidence.endsCollection("Using The Z Garbage Collector"));
        assertFalse(Evidence.endsCollection("dev.gpuseg.core.Core::decide (120 bytes)"));
    }
}
