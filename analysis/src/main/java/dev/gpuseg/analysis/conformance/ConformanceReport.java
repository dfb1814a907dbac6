/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import java.util.List;
import java.util.stream.Collectors;

/**
 * What the kit found out about one policy.
 *
 * @param policy     its name
 * @param effort     how hard the kit looked
 * @param properties one result each, always in the same order
 */
public record ConformanceReport(String policy, Effort effort, List<PropertyResult> properties) {
    /** Copies the list. */
    public ConformanceReport {
        properties = List.copyOf(properties);
    }

    /** Whether it has every property, so that it may be used. */
    public boolean passed() {
        return properties.stream().allMatch(PropertyResult::passed);
    }

    /** The properties that it lacks. */
    public List<PropertyResult> failures() {
        return properties.stream().filter(p -> !p.passed()).toList();
    }

    /**
     * The verdict in one line, for refusals.
     *
     * @return such as {@code policy lifo: 2 of 16 properties fail: transitive, pure}
     */
    public String summary() {
        return "policy " + policy + ": " + (passed() ? "all " + properties.size() + " properties hold"
            : failures().size() + " of " + properties.size() + " properties fail: " + failures().stream()
            .map(PropertyResult::name).collect(Collectors.joining(", ")));
    }
}
