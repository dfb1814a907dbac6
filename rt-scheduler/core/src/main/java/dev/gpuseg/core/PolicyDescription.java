/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

/**
 * One row of the {@link PolicyCatalog}: everything that commands, help texts, policy files, the simulator and admission
 * need to know of a policy beside its class.
 *
 * @param name       as {@link Policy#name()} returns it
 * @param summary    what it does, one line in plain English
 * @param parameters in the order of help texts; empty if it has none
 * @param needs      what its tasks must declare; for a policy that contains another one, without the needs of that one
 * @param enforces   whether it ever disables a context or holds a begin back
 * @param analyses   those whose bounds hold for it; empty if none does
 * @param factory    makes the policy of checked arguments; throws {@link IllegalArgumentException} if they contradict
 *                   each other
 */
public record PolicyDescription(String name, String summary, List<PolicyParameter> parameters, Set<TaskNeed> needs,
    boolean enforces, List<PolicyAnalysis> analyses, Function<PolicyArguments, Policy> factory) {

    /**
     * Checks the row.
     *
     * @throws IllegalArgumentException if the name cannot be written on a command line or in a journal, or the summary
     *     is not one line
     */
    public PolicyDescription {
        Objects.requireNonNull(factory, "factory");
        parameters = List.copyOf(parameters);
        needs = Set.copyOf(needs);
        analyses = List.copyOf(analyses);
        if (!name.matches("[a-z][a-z0-9-]{0,30}")) {
            throw new IllegalArgumentException("policy \"" + name + "\": a name is 1..31 lower-case letters, digits "
                + "and hyphens, and begins with a letter");
        }
        if (summary.isBlank() || summary.indexOf('\n') >= 0) {
            throw new IllegalArgumentException("policy " + name + ": its summary must be one line of text");
        }
    }

    /**
     * A policy without parameters and without an analysis: all that is known is what its class says.
     *
     * @param policy  an instance, which serves for every use: policies have no state
     * @param summary one line
     * @return the row
     */
    public static PolicyDescription of(final Policy policy, final String summary) {
        return new PolicyDescription(policy.name(), summary, List.of(), policy.needs(), policy.enforces(), List.of(),
            arguments -> policy);
    }

    /** Whether every parameter has a default, so that it can be made without arguments. */
    public boolean hasDefaults() {
        return parameters.stream().noneMatch(PolicyParameter::isRequired);
    }

    /**
     * A parameter.
     *
     * @param key its name
     * @return the parameter, empty if there is none of that name
     */
    public Optional<PolicyParameter> parameter(final String key) {
        return parameters.stream().filter(p -> p.name().equals(key)).findAny();
    }

    /**
     * The analysis that holds under given conditions.
     *
     * @param level     what the mechanism can do
     * @param cores     how the kernel orders the threads of a core
     * @param waiting   what a thread does while the GPU works for it
     * @param boosted   whether threads run at a CPU ceiling inside their windows
     * @return its name, empty if there is none
     */
    public Optional<String> analysis(final PolicyAnalysis.Level level, final PolicyAnalysis.Cores cores,
        final PolicyAnalysis.Waiting waiting, final boolean boosted) {
        return analyses.stream().filter(a -> a.level() == level && a.cores() == cores
            && a.waiting() == waiting && a.boosted() == boosted).map(PolicyAnalysis::name).findFirst();
    }

    List<String> parameterNames() {
        final List<String> names = new ArrayList<>();
        for (final PolicyParameter p : parameters) {
            names.add(p.name());
        }
        return names;
    }
}
