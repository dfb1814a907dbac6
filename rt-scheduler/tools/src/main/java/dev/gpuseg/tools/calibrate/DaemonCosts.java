/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.bench.EnforcementCosts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/** What the driver calls of a daemon took, read from its journals, with or without processes that come and go. */
abstract class DaemonCosts implements CalibrationRig {
    /** Of a daemon and processes with contexts, s. */
    private static final int START_S = 5;
    /** From one timed kernel to the next, with its pause, ms; {@link SimCalibration} and gpuseg_bench_rt keep it. */
    static final int KERNEL_EVERY_MS = 40;
    /** Kernels before those that are timed with turns: a process takes part when it is known for two seconds. */
    static final int WARM = 80;
    private static final int MS_PER_S = 1_000;

    private final List<Long> calls = new ArrayList<>();
    private final List<Long> returns = new ArrayList<>();
    private Set<String> monitors = Set.of();
    private int turns;
    private double churnPerSecond;
    private int cameAndWent;

    /** Adds what the journal of a daemon that has ended says. Calls that give turns hold no begin back. */
    final void add(final Mode mode, final Path journal) throws IOException {
        if (mode == Mode.TURNS) {
            JournalReader.forEach(journal, event -> turns += event.kind() == EventKind.ENABLE ? 1 : 0);
            return;
        }
        JournalReader.forEach(journal, event -> {
            if (event.kind() == EventKind.DISABLE || event.kind() == EventKind.ENABLE) {
                calls.add(event.arg1());
            }
        });
        returns.addAll(EnforcementCosts.returns(journal));
    }

    /** Processes to be started in a second; 0 = none. */
    final double churnPerSecond() {
        return churnPerSecond;
    }

    /** Ends what disturbed a measurement, and counts the processes; null = nothing did. */
    final void end(final Disturbances disturbances) throws InterruptedException {
        if (disturbances != null) {
            cameAndWent += disturbances.stop();
            monitors = disturbances.monitors();
        }
    }

    /** A settings file of the sharing of best effort: by turns, or as enforcement by calls needs it. */
    static List<String> policy(final Path file, final Mode mode) throws IOException {
        Files.writeString(file, "version: 1\npolicy: fp\nsharing: " + (mode == Mode.TURNS ? "turns" : "timeslices")
            + "\n");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        return List.of("--policy-file", file.toString());
    }

    @Override
    public final List<String> monitors() {
        return List.copyOf(monitors);
    }

    @Override
    public final int turnsTaken() {
        return turns;
    }

    @Override
    public final int seconds(final int jobs) {
        return START_S + (int) ((long) jobs * KERNEL_EVERY_MS / MS_PER_S);
    }

    @Override
    public final void churn(final double perSecond) {
        churnPerSecond = perSecond;
        cameAndWent = 0;
        turns = 0;
        calls.clear();
        returns.clear();
    }

    @Override
    public final int cameAndWent() {
        return cameAndWent;
    }

    @Override
    public final long[] calls() {
        return calls.stream().mapToLong(Long::longValue).toArray();
    }

    @Override
    public final long[] returns() {
        return returns.stream().mapToLong(Long::longValue).toArray();
    }
}
