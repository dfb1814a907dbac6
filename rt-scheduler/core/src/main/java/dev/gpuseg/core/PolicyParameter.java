/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.List;
import java.util.Objects;

/**
 * One parameter of a policy, as written in policy files and shown in help texts.
 *
 * @param name         key in a policy file, such as {@code class_width}
 * @param kind         what its value is
 * @param min          least value of a number or duration (ns), fewest entries of a list; ignored for other kinds
 * @param max          greatest value, most entries
 * @param defaultValue what it is if it is left out: a {@link Long}, {@link Boolean} or {@link String} by its kind;
 *                     null if it must be given
 * @param description  one line in plain English
 * @param fields       what an entry of a list consists of; empty for other kinds
 */
public record PolicyParameter(String name, Kind kind, long min, long max, Object defaultValue, String description,
    List<PolicyParameter> fields) {
    /** What a value is. */
    public enum Kind {
        /** A whole number. */
        INTEGER,
        /** A duration: with a unit in files ({@code 2ms}), in nanoseconds in the program. */
        DURATION,
        /** Yes or no. */
        BOOLEAN,
        /** The name of another policy of the catalogue, whose own parameters stand beside this one. */
        POLICY,
        /** A list of entries with fields of their own. */
        LIST
    }

    /** Checks that a name, a kind and a description are given. */
    public PolicyParameter {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(kind, "kind");
        Objects.requireNonNull(description, "description");
        fields = List.copyOf(fields);
    }

    /**
     * A whole number.
     *
     * @param name         key
     * @param min          least value
     * @param max          greatest value
     * @param defaultValue null if it must be given
     * @param description  one line
     * @return the parameter
     */
    public static PolicyParameter integer(final String name, final long min, final long max, final Long defaultValue,
        final String description) {
        return new PolicyParameter(name, Kind.INTEGER, min, max, defaultValue, description, List.of());
    }

    /**
     * A duration.
     *
     * @param name         key
     * @param minNs        least value, ns
     * @param maxNs        greatest value, ns
     * @param defaultValue ns; null if it must be given
     * @param description  one line
     * @return the parameter
     */
    public static PolicyParameter duration(final String name, final long minNs, final long maxNs,
        final Long defaultValue, final String description) {
        return new PolicyParameter(name, Kind.DURATION, minNs, maxNs, defaultValue, description, List.of());
    }

    /**
     * Yes or no.
     *
     * @param name         key
     * @param defaultValue what it is if it is left out
     * @param description  one line
     * @return the parameter
     */
    public static PolicyParameter flag(final String name, final boolean defaultValue, final String description) {
        return new PolicyParameter(name, Kind.BOOLEAN, 0, 1, defaultValue, description, List.of());
    }

    /**
     * The name of another policy.
     *
     * @param name         key
     * @param defaultValue its name if it is left out
     * @param description  one line
     * @return the parameter
     */
    public static PolicyParameter policy(final String name, final String defaultValue, final String description) {
        return new PolicyParameter(name, Kind.POLICY, 0, 0, defaultValue, description, List.of());
    }

    /**
     * A list that must be given.
     *
     * @param name        key
     * @param min         fewest entries
     * @param max         most entries
     * @param description one line
     * @param fields      of an entry
     * @return the parameter
     */
    public static PolicyParameter list(final String name, final long min, final long max, final String description,
        final PolicyParameter... fields) {
        return new PolicyParameter(name, Kind.LIST, min, max, null, description, List.of(fields));
    }

    /** Whether it must be given; true if it has no default. */
    public boolean isRequired() {
        return defaultValue == null;
    }

    /** The unit of its values inside the program; {@code ns} for durations, empty for the others. */
    public String unit() {
        return kind == Kind.DURATION ? "ns" : "";
    }
}
