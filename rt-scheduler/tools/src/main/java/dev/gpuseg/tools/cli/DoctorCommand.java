/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.daemon.launch.DirectoryOption;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.daemon.launch.RunSettings;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.doctor.DoctorCheck;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import dev.gpuseg.tools.doctor.RealTimeHygiene;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Says what works on this machine and why, without starting anything. */
@Command(name = "doctor", mixinStandardHelpOptions = true,
    description = "Say what works on this machine, what does not, and what to do. "
        + "Exit status 3: the daemon cannot run.")
final class DoctorCommand implements Callable<Integer> {
    private static final long SPACE_WANTED = 64L << 20;
    private static final List<String> PROGRAMS =
        List.of("gpuseg-watchdog", "gpuseg-vgpu", "gpuseg-demo-task", "gpuseg-bench-ipc");

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--cpu", paramLabel = "N", description = "look at this CPU for the dispatcher (default: the key "
        + "cpu of the settings file, where gpuseg is installed)")
    private Integer cpu;

    @Option(names = "--json", description = "as JSON")
    private boolean json;

    private final List<DoctorCheck> checks = new ArrayList<>();

    @Override
    public Integer call() throws InterruptedException {
        final RuntimeDirectory where = directory.resolve();
        machine();
        sharedMemory(where);
        schedulerPermission();
        checks.addAll(new RealTimeHygiene(Path.of("/"), dispatcherCpu()).checks());
        programs();
        daemon(where);
        final List<MechanismCatalog.Surveyed> mechanisms = MechanismCatalog.survey(where);
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(asJson(mechanisms));
        } else {
            print(mechanisms, out);
        }
        out.flush();
        return checks.stream().anyMatch(c -> c.verdict() == Verdict.FAULT) ? ExitCode.NO : ExitCode.OK;
    }

    private void add(final String name, final Verdict verdict, final String found, final String remedy) {
        checks.add(new DoctorCheck(name, verdict, found, verdict == Verdict.OK ? "" : remedy));
    }

    private void machine() {
        final String arch = System.getProperty("os.arch");
        final boolean known = arch.equals("amd64") || arch.equals("aarch64");
        add("kernel", System.getProperty("os.name").equals("Linux") && known ? Verdict.OK : Verdict.FAULT,
            System.getProperty("os.name") + " " + System.getProperty("os.version") + " " + arch,
            "use Linux on x86-64 or arm64");
        add("java", Verdict.OK, System.getProperty("java.runtime.version"), "");
        final int cpus = Runtime.getRuntime().availableProcessors();
        add("cpus", cpus >= 3 ? Verdict.OK : Verdict.ADVICE, cpus + " CPUs",
            "3 or more keep the dispatcher apart from applications and from the JVM's own threads");
    }

    private void sharedMemory(final RuntimeDirectory where) {
        Path at = where.root();
        while (at != null && !Files.exists(at)) {
            at = at.getParent();
        }
        if (at == null || !Files.isWritable(at)) {
            add("runtime directory", Verdict.FAULT, where.root() + " cannot be created", "choose another --dir");
            return;
        }
        try {
            final String type = Files.getFileStore(at).type();
            final long free = FileAccess.freeBytes(at);
            add("runtime directory", type.equals("tmpfs") ? Verdict.OK : Verdict.ADVICE, where.root() + " on " + type,
                "a directory in memory (/dev/shm) keeps disks out of the way");
            add("shared memory", free >= SPACE_WANTED ? Verdict.OK : Verdict.FAULT, (free >> 20) + " MiB free",
                "free " + (SPACE_WANTED >> 20) + " MiB there or choose another --dir");
        } catch (final IOException | SystemCallException e) {
            add("shared memory", Verdict.FAULT, e.getMessage(), "choose another --dir");
        }
    }

    private void schedulerPermission() throws InterruptedException {
        final String refusal = RealTime.refusal();
        add("SCHED_FIFO", refusal.isEmpty() ? Verdict.OK : Verdict.ADVICE,
            refusal.isEmpty() ? "permitted" : "not permitted: " + refusal,
            "grant CAP_SYS_NICE or a rtprio limit to use `run --priority`");
    }

    private void programs() {
        for (final String program : PROGRAMS) {
            try {
                add(program, Verdict.OK, NativePrograms.named(program).toString(), "");
            } catch (final IllegalStateException e) {
                final boolean needed = program.equals("gpuseg-watchdog");
                add(program, needed ? Verdict.FAULT : Verdict.ADVICE, "missing", e.getMessage());
            }
        }
    }

    private void daemon(final RuntimeDirectory where) {
        try {
            final long pid = AdminClient.ask(where, AdminClient.command("status")).path("daemon").path("pid").asLong();
            add("daemon", Verdict.OK, "runs as pid " + pid + " in " + where.root(), "");
        } catch (final AdminClient.NoDaemonException e) {
            add("daemon", Verdict.OK, "none runs in " + where.root(), "");
        } catch (final IllegalStateException e) {
            add("daemon", Verdict.ADVICE, e.getMessage(), "stop it and start it again");
        }
    }

    /** Of the option, else of the settings file of an installed daemon; -1 = not chosen. */
    private int dispatcherCpu() {
        if (cpu != null) {
            return cpu;
        }
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

    private static MechanismCatalog.Surveyed best(final List<MechanismCatalog.Surveyed> mechanisms) {
        return mechanisms.stream().filter(m -> m.verdict().usable()).findFirst().orElseThrow();
    }

    private ObjectNode asJson(final List<MechanismCatalog.Surveyed> mechanisms) {
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
        root.put("best", best(mechanisms).mechanism().name());
        root.put("can_run", checks.stream().noneMatch(c -> c.verdict() == Verdict.FAULT));
        return root;
    }

    private void print(final List<MechanismCatalog.Surveyed> mechanisms, final PrintWriter out) {
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
        out.println("the daemon would start here with: --mechanism " + best(mechanisms).mechanism().name());
    }
}
