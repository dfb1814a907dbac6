/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What this machine offers to a daemon. Changes nothing; loads a BPF program for a moment. */
public final class MachineChecks {
    private static final long SPACE_WANTED = 64L << 20;
    /** A container has 64 MiB of shared memory, a little of it in use; the warm-up needs 48 to 60 MiB. */
    private static final long SPACE_NEEDED = 60L << 20;
    private static final List<String> PROGRAMS =
        List.of("gpuseg-watchdog", "gpuseg-vgpu", "gpuseg-demo-task", "gpuseg-bench-ipc");

    private final RuntimeDirectory where;
    private final int dispatcherCpu;
    private final List<DoctorCheck> checks = new ArrayList<>();

    /**
     * Looks at nothing yet.
     *
     * @param where         runtime directory of the daemon
     * @param dispatcherCpu the dispatcher's CPU, -1 = not chosen
     */
    public MachineChecks(final RuntimeDirectory where, final int dispatcherCpu) {
        this.where = where;
        this.dispatcherCpu = dispatcherCpu;
    }

    /** Looks at everything: the findings, in the order of the report. */
    public List<DoctorCheck> all() throws InterruptedException {
        checks.clear();
        machine();
        sharedMemory();
        schedulerPermission();
        checks.addAll(new RealTimeHygiene(MachineFiles.root(), dispatcherCpu).checks());
        programs();
        checks.addAll(new NvidiaChecks().checks());
        checks.addAll(SelftestCheck.ofBoard());
        checks.add(ObserverCheck.run());
        daemon();
        return List.copyOf(checks);
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

    private void sharedMemory() {
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
            add("shared memory", free >= SPACE_WANTED ? Verdict.OK : free >= SPACE_NEEDED ? Verdict.ADVICE
                : Verdict.FAULT, (free >> 20) + " MiB free",
                "free " + (SPACE_WANTED >> 20) + " MiB there (a container: --shm-size) or choose another --dir");
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

    private void daemon() {
        try {
            final long pid = AdminClient.ask(where, AdminClient.command("status")).path("daemon").path("pid").asLong();
            add("daemon", Verdict.OK, "runs as pid " + pid + " in " + where.root(), "");
        } catch (final AdminClient.NoDaemonException e) {
            add("daemon", Verdict.OK, "none runs in " + where.root(), "");
        } catch (final AdminClient.NotServedException e) {
            add("daemon", Verdict.ADVICE, "runs in " + where.root() + ", and this user may not ask it", e.remedy());
        } catch (final IllegalStateException e) {
            add("daemon", Verdict.ADVICE, e.getMessage(), "stop it and start it again");
        }
    }
}
