/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.conformance.ConformanceReport;
import dev.gpuseg.analysis.conformance.Effort;
import dev.gpuseg.analysis.conformance.PolicyConformance;
import dev.gpuseg.analysis.conformance.PropertyResult;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.daemon.policy.PolicySource;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Whether the policies of a jar may decide about a GPU. */
@Command(name = "verify", mixinStandardHelpOptions = true,
    description = "Check the policies of a jar against the laws of a policy, harder than `gpuseg run --policy-jar` "
        + "does, and show a counterexample to each law that one breaks. The code of the jar runs in this program.",
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:all policies of the jar hold all laws", "2:the jar offers no policy that can be made",
        "3:a policy breaks a law, or could not be checked"})
final class PolicyVerifyCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "JAR", description = "Jar with policies.")
    private Path jar;

    @Option(names = "--policy-file", paramLabel = "FILE",
        description = "Parameters of a policy that has some without defaults.")
    private Path policyFile;

    @Override
    public Integer call() throws IOException, InterruptedException {
        final PrintWriter out = spec.commandLine().getOut();
        boolean conforms = true;
        try (PolicySource policies = PolicySource.open(jar)) {
            final Policy given = policyFile == null ? null : policies.reader().read(policyFile).policy();
            if (given != null && policies.offered().stream().noneMatch(row -> row.name().equals(given.name()))) {
                throw new IllegalArgumentException("--policy-file " + policyFile + " names policy " + given.name()
                    + ", which is none of " + jar);
            }
            for (final PolicyDescription row : policies.offered()) {
                if (given != null && given.name().equals(row.name())) {
                    conforms &= verify(given, out);
                } else if (row.hasDefaults()) {
                    conforms &= verify(policies.catalog().create(row.name()), out);
                } else {
                    conforms = false;
                    say(out, "policy " + row.name() + " is not checked: it has parameters to be given; name a file "
                        + "with --policy-file");
                }
            }
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        out.flush();
        return conforms ? ExitCode.OK : ExitCode.NO;
    }

    private boolean verify(final Policy policy, final PrintWriter out)
        throws InterruptedException {
        final ConformanceReport report = PolicyConformance.verify(policy, Effort.FULL);
        for (final PropertyResult law : report.properties()) {
            say(out, law.toString());
        }
        say(out, report.summary());
        return report.passed();
    }

    private void say(final PrintWriter out, final String text) {
        out.println(text);
        out.flush();   // a check takes some seconds
    }
}
