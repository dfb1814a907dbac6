/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.bench.EnforcementCosts;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What the driver calls of a daemon took, read from its journals, with or without processes that come and go. */
abstract class DaemonCosts implements CalibrationRig {
    /** Of a daemon and processes with contexts, s. */
    private static final int START_S = 5;
    /** From one timed kernel to the next, with its pause, ms; {@link SimCalibration} and gpuseg_bench_rt keep it. */
    static final int KERNEL_EVERY_MS = 40;
    private static final int MS_PER_S = 1_000;

    private final List<Long> calls = new ArrayList<>();
    private final List<Long> returns = new ArrayList<>();
    private double churnPerSecond;
    private int cameAndWent;

    /** Adds what the journal of a daemon that has ended says. */
    final void add(final Path journal) throws IOException {
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

    /** Ends processes that come and go, and counts them; null = there are none. */
    final void end(final Churn churn) throws InterruptedException {
        cameAndWent += churn == null ? 0 : churn.stop();
    }

    @Override
    public final int seconds(final int jobs) {
        return START_S + (int) ((long) jobs * KERNEL_EVERY_MS / MS_PER_S);
    }

    @Override
    public final void churn(final double perSecond) {
        churnPerSecond = perSecond;
        cameAndWent = 0;
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
