/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The parameters of one policy with their values: checked for kind and range, defaults filled in. A getter of another
 * kind than the parameter's, or of a name that is none, throws {@link ClassCastException} or
 * {@link NullPointerException}: that is an error of the row, not of the user.
 */
public final class PolicyArguments {
    private final Map<String, Object> values = new HashMap<>();

    private PolicyArguments() {
    }

    /** Takes what belongs to a policy out of what was given, and leaves the rest. */
    static PolicyArguments take(final PolicyCatalog catalog, final PolicyDescription row,
        final Map<String, Object> given) {
        final PolicyArguments arguments = new PolicyArguments();
        final String what = "policy " + row.name();
        for (final PolicyParameter p : row.parameters()) {
            if (p.kind() != PolicyParameter.Kind.POLICY) {
                arguments.values.put(p.name(), value(what, p, given.remove(p.name())));
            }
        }
        for (final PolicyParameter p : row.parameters()) {
            if (p.kind() == PolicyParameter.Kind.POLICY) {
                final Object inner = given.remove(p.name());
                if (inner != null && !(inner instanceof String)) {
                    throw wrong(what, p, inner, "it must be the name of a policy");
                }
                arguments.values.put(p.name(),
                    catalog.take(inner == null ? (String) p.defaultValue() : (String) inner, given));
            }
        }
        return arguments;
    }

    private static Object value(final String what, final PolicyParameter p, final Object given) {
        if (given == null) {
            if (p.isRequired()) {
                throw new IllegalArgumentException(what + ": " + p.name() + " is missing (" + p.description() + ")");
            }
            return p.defaultValue();
        }
        return switch (p.kind()) {
            case INTEGER, DURATION -> number(what, p, given);
            case BOOLEAN -> {
                if (!(given instanceof Boolean)) {
                    throw wrong(what, p, given, "it must be true or false");
                }
                yield given;
            }
            case LIST -> entries(what, p, given);
            default -> throw new IllegalStateException(p.kind() + " inside a list");
        };
    }

    private static Long number(final String what, final PolicyParameter p, final Object given) {
        final boolean whole = given instanceof Long || given instanceof Integer || given instanceof Short
            || given instanceof Byte;
        final String unit = p.unit().isEmpty() ? "" : " " + p.unit();
        if (!whole || ((Number) given).longValue() < p.min() || ((Number) given).longValue() > p.max()) {
            throw wrong(what, p, given + (whole ? unit : ""), "it must be " + p.min() + ".." + p.max() + unit);
        }
        return ((Number) given).longValue();
    }

    private static List<PolicyArguments> entries(final String what, final PolicyParameter p, final Object given) {
        if (!(given instanceof List<?> list) || list.size() < p.min() || list.size() > p.max()) {
            throw wrong(what, p, given instanceof List<?> list ? "a list of " + list.size() : given,
                "it must be a list of " + p.min() + ".." + p.max() + " entries");
        }
        final List<PolicyArguments> entries = new ArrayList<>();
        for (int i = 0; i < list.size(); i++) {
            final String entry = what + ": " + p.name() + "[" + i + "]";
            if (!(list.get(i) instanceof Map<?, ?> fields)) {
                throw new IllegalArgumentException(entry + " is " + list.get(i) + "; it must have fields");
            }
            final PolicyArguments of = new PolicyArguments();
            final Set<Object> left = new HashSet<>(fields.keySet());
            for (final PolicyParameter field : p.fields()) {
                left.remove(field.name());
                of.values.put(field.name(), value(entry, field, fields.get(field.name())));
            }
            if (!left.isEmpty()) {
                throw new IllegalArgumentException(entry + ": \"" + left.iterator().next() + "\" is unknown");
            }
            entries.add(of);
        }
        return entries;
    }

    private static IllegalArgumentException wrong(final String what, final PolicyParameter p, final Object given,
        final String must) {
        return new IllegalArgumentException(what + ": " + p.name() + " is " + given + "; " + must);
    }

    /**
     * A whole number.
     *
     * @param name parameter of kind INTEGER
     * @return its value
     */
    public long number(final String name) {
        return (Long) values.get(name);
    }

    /**
     * A duration.
     *
     * @param name parameter of kind DURATION
     * @return ns
     */
    public long durationNs(final String name) {
        return (Long) values.get(name);
    }

    /**
     * Yes or no.
     *
     * @param name parameter of kind BOOLEAN
     * @return its value
     */
    public boolean flag(final String name) {
        return (Boolean) values.get(name);
    }

    /**
     * Another policy.
     *
     * @param name parameter of kind POLICY
     * @return the policy with the parameters that were given beside its name
     */
    public Policy policy(final String name) {
        return (Policy) values.get(name);
    }

    /**
     * A list.
     *
     * @param name parameter of kind LIST
     * @return its entries, in order
     */
    @SuppressWarnings("unchecked")   // take put it there
    public List<PolicyArguments> list(final String name) {
        return (List<PolicyArguments>) values.get(name);
    }
}
