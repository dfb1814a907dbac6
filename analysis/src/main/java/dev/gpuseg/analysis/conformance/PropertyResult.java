/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

/**
 * Whether a policy has a property.
 *
 * @param name           short and constant, such as {@code transitive}
 * @param statement      the property, one line
 * @param counterexample what contradicts it, in one line that says how to see it again; empty if nothing was found
 */
public record PropertyResult(String name, String statement, String counterexample) {
    /** Whether no counterexample contradicts the property. */
    public boolean passed() {
        return counterexample.isEmpty();
    }

    @Override
    public String toString() {
        return (passed() ? "pass  " : "FAIL  ") + name + ": " + statement
            + (passed() ? "" : System.lineSeparator() + "      " + counterexample);
    }
}
