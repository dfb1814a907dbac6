/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/** The first counterexample of each law. Thread-safe: a run that does not end is read by another thread. */
final class Findings {
    private final Map<Law, String> found = new EnumMap<>(Law.class);

    synchronized boolean has(final Law law) {
        return found.containsKey(law);
    }

    /** Keeps the first counterexample. */
    synchronized void add(final Law law, final String counterexample) {
        found.putIfAbsent(law, counterexample.replaceAll("\\s*\\R\\s*", " "));
    }

    /** The law holds here, or this contradicts it. */
    void require(final Law law, final boolean holds, final Supplier<String> counterexample) {
        if (!holds && !has(law)) {
            add(law, counterexample.get());
        }
    }

    synchronized List<PropertyResult> results() {
        final List<PropertyResult> all = new ArrayList<>();
        for (final Law law : Law.values()) {
            all.add(new PropertyResult(law.word(), law.statement(), found.getOrDefault(law, "")));
        }
        return all;
    }
}
