/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.certificate.Certificate;
import dev.gpuseg.analysis.certificate.CoqCheck;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.command.ExitCode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Has Coq check what {@code analyze --certificate} wrote. */
@Command(name = "verify", mixinStandardHelpOptions = true,
    description = "Check a certificate of `gpuseg analyze --certificate` with the Coq checker of analysis/coq.",
    footer = "%nExit status: 0 accepted, 3 rejected (each reason is printed), 2 the file is not a certificate, 1 coqc "
        + "is missing or failed.")
final class VerifyCommand implements Callable<Integer> {
    /** The Coq compiler, 8.16 or later. */
    private final String coqc;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "FILE", description = "Certificate.")
    private Path file;

    /** With the compiler of this machine. */
    VerifyCommand() {
        this("coqc");
    }

    VerifyCommand(final String coqc) {
        this.coqc = coqc;
    }

    @Override
    public Integer call() {
        try {
            final Certificate certificate = Certificate.read(file);
            final List<String> failures = new CoqCheck(coqc).failures(certificate);
            for (final String failure : failures) {
                spec.commandLine().getOut().println("rejected: " + failure);
            }
            if (failures.isEmpty()) {
                spec.commandLine().getOut().println("accepted: " + certificate.tasks().size()
                    + " tasks, every R at or above its right-hand side and at most the deadline");
            }
            spec.commandLine().getOut().flush();
            return failures.isEmpty() ? ExitCode.OK : ExitCode.NO;
        } catch (final InvalidFileException e) {
            return refuse(e.getMessage(), ExitCode.USAGE);
        } catch (final IOException e) {
            return refuse(e.getMessage(), ExitCode.FAILURE);
        }
    }

    private int refuse(final String message, final int status) {
        spec.commandLine().getErr().println("gpuseg verify: " + message);
        spec.commandLine().getErr().flush();
        return status;
    }
}
