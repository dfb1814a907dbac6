/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.PolicyParameter;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;

/**
 * Lists the rows of the {@link PolicyCatalog} with their parameters at the end of a command's help, and offers the
 * names of those that need no parameter.
 */
public final class PolicyHelp implements IModelTransformer, Iterable<String> {
    /** For picocli. */
    public PolicyHelp() {
        // nothing to set up
    }

    @Override
    public CommandSpec transform(final CommandSpec spec) {
        append(spec, lines(true));
        return spec;
    }

    /**
     * For {@code run}: its options in groups, then mechanisms and policies, without the parameters of the latter: they
     * go into a policy file.
     */
    static final class OfRun implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec spec) {
            new HelpGroups().with("Everyday", "--mechanism", "--virtual-gpu", "--space", "--gpus", "--policy",
                "--policy-file", "--policy-jar", "--dir", "--config", "--metrics", "--journal")
                .with("Latency", "--cpu", "--priority", "--idle", "--anticipate")
                .with("Admission and rights", "--admission", "--taskset", "--platform", "--cgroup-rules")
                .ofOptions(spec);
            append(new MechanismHelp().transform(spec), lines(false));
            return spec;
        }
    }

    private static void append(final CommandSpec spec, final List<String> lines) {
        spec.usageMessage().footer(Stream.concat(Stream.of(spec.usageMessage().footer()), lines.stream())
            .toArray(String[]::new));
    }

    @Override
    public Iterator<String> iterator() {
        return PolicyCatalog.builtIn().all().stream().filter(PolicyDescription::hasDefaults)
            .map(PolicyDescription::name).iterator();
    }

    private static List<String> lines(final boolean parameters) {
        final List<String> lines = new ArrayList<>(List.of("", parameters
            ? "Policies and their parameters, which are keys of a policy file:"
            : "Policies; `gpuseg policy --help` lists their parameters, which stand in a policy file:"));
        for (final PolicyDescription row : PolicyCatalog.builtIn().all()) {
            lines.add("  " + row.name() + ": " + row.summary());
            for (final PolicyParameter p : parameters ? row.parameters() : List.<PolicyParameter>of()) {
                lines.add("    " + line(p));
            }
        }
        return lines;
    }

    /** Such as {@code class_width, 1..99, default 1: number of neighbouring priorities that form one class}. */
    private static String line(final PolicyParameter p) {
        final String range = switch (p.kind()) {
            case INTEGER -> ", " + p.min() + ".." + p.max();
            case DURATION -> ", " + Durations.format(p.min()) + ".." + Durations.format(p.max());
            case BOOLEAN -> ", true or false";
            case POLICY -> ", a policy";
            case LIST -> ", " + p.min() + ".." + p.max() + " entries of "
                + p.fields().stream().map(PolicyHelp::line).collect(Collectors.joining("; "));
        };
        final Object usual = p.defaultValue();
        return p.name() + range + (usual == null ? "" : ", default " + (p.kind() == PolicyParameter.Kind.DURATION
            ? Durations.format((Long) usual) : usual)) + ": " + p.description();
    }
}
