/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.launch.RunSettings;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.tools.doctor.DoctorCheck;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import dev.gpuseg.tools.doctor.MachineChecks;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Says what works on this machine and why, without starting anything. */
@Command(name = "doctor", mixinStandardHelpOptions = true,
    description = "Check this machine: say what works, what does not, and how to fix it. Exit status 3: the daemon "
        + "cannot run.")
final class DoctorCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() throws InterruptedException {
        final RuntimeDirectory where = directory.find();
        final List<DoctorCheck> checks = new MachineChecks(where, dispatcherCpu()).all();
        final List<MechanismCatalog.Surveyed> mechanisms = MechanismCatalog.survey(where);
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(asJson(checks, mechanisms));
        } else {
            print(checks, mechanisms, out);
        }
        out.flush();
        return checks.stream().anyMatch(c -> c.verdict() == Verdict.FAULT) ? ExitCode.NO : ExitCode.OK;
    }

    /** Of the option, else of the settings file of an installed daemon; -1 = not chosen. */
    private int dispatcherCpu() {
        final Path settings = RunSettings.defaultFile();
        if (settings != null) {
            for (final ConfigEntry entry : ConfigFile.read(settings, new RunSettings()).entries()) {
                if (entry.key().equals("cpu") && entry.text().matches("[0-9]{1,5}")) {
                    return Integer.parseInt(entry.text());
                }
            }
        }
        return -1;
    }

    private static ObjectNode asJson(final List<DoctorCheck> checks,
        final List<MechanismCatalog.Surveyed> mechanisms) {
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        for (final DoctorCheck check : checks) {
            root.withArray("checks").addObject().put("name", check.name())
                .put("verdict", check.verdict().name().toLowerCase(java.util.Locale.ROOT)).put("found", check.found())
                .put("remedy", check.remedy());
        }
        for (final MechanismCatalog.Surveyed m : mechanisms) {
            root.withArray("mechanisms").addObject().put("name", m.mechanism().name()).put("level", m.verdict().level())
                .put("usable", m.verdict().usable()).put("reason", m.verdict().reason())
                .put("consequence", m.mechanism().consequence()).put("experimental", m.mechanism().experimental())
                .put("tested_on", m.mechanism().testedOn()).put("simulated", m.mechanism().simulated());
        }
        root.put("best", MechanismCatalog.best(mechanisms).mechanism().name());
        root.put("can_run", checks.stream().noneMatch(c -> c.verdict() == Verdict.FAULT));
        return root;
    }

    private static void print(final List<DoctorCheck> checks, final List<MechanismCatalog.Surveyed> mechanisms,
        final PrintWriter out) {
        for (final DoctorCheck check : checks) {
            out.printf("%-7s %-22s %s%n", check.verdict() == Verdict.OK ? "ok" : check.verdict() == Verdict.ADVICE
                ? "could" : "FAULT", check.name(), check.found());
            if (!check.remedy().isEmpty()) {
                out.printf("%-30s -> %s%n", "", check.remedy());
            }
        }
        out.println();
        out.println("mechanisms, best first:");
        for (final MechanismCatalog.Surveyed m : mechanisms) {
            out.printf("%-7s %-8s level %d  %s%s%n", m.verdict().usable() ? "yes" : "no", m.mechanism().name(),
                m.verdict().level(), m.mechanism().experimental() ? "experimental (tested against "
                + m.mechanism().testedOn() + "): " : "", m.verdict().reason());
        }
        out.println();
        final MechanismCatalog.Surveyed best = MechanismCatalog.best(mechanisms);
        out.println("the daemon starts here with " + best.mechanism().name() + " (--mechanism auto, the default): "
            + best.mechanism().consequence());
        mechanisms.stream().filter(m -> m.verdict().usable() && m.mechanism().experimental())
            .forEach(m -> out.println("experimental: --mechanism " + m.mechanism().name()));
    }
}
