/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.JavaCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;

/** What somebody does to the daemon with intent, and how the honest client beside fares. */
final class HostileRounds {
    private static final int LEAST_MIB = 48;
    /** So long a daemon may try to start with too little memory. */
    private static final int POOR_S = 60;
    private static final int MIB = 128;

    private final Stage stage;
    private final FaultRig rig;
    private final Attacks attacks;
    private int exhausted;

    HostileRounds(final Stage stage, final Attacks attacks) {
        this.stage = stage;
        this.attacks = attacks;
        rig = stage.rig();
    }

    /** Makes the round's attack. */
    void strike() throws IOException, InterruptedException, TimeoutException {
        switch (stage.round().fault()) {
            case KILL_BOTH -> killBoth();
            case HOLD_LOCKS -> holdLocks();
            case READ_ONLY -> readOnly();
            case OUT_OF_MEMORY -> outOfMemory();
            default -> attack();
        }
    }

    private void attack() throws IOException, InterruptedException, TimeoutException {
        stage.struck();
        stage.skip(attacks.play(stage.round()));
        stage.over();
        if (!rig.daemon().isAlive()) {
            exhausted++;
            stage.problem("the daemon ended: " + rig.daemon().said());
            stage.daemonWent();
        }
    }

    private void killBoth() throws InterruptedException, TimeoutException {
        if (stage.strikeWatchdog() == 0) {
            return;
        }
        rig.killDaemon();
        rig.release();   // what ExecStopPost= of the service does
        stage.over();
        stage.daemonWent();
    }

    /** The hostile user has the locks as soon as the kernel frees them: the next daemon must start all the same. */
    private void holdLocks() throws IOException, InterruptedException, TimeoutException {
        try (Child waiting = attacks.waitForLocks(stage.round())) {
            if (waiting == null) {
                stage.skip(attacks.refusal());
                return;
            }
            stage.struck();
            rig.killDaemon();
            stage.daemonWent();
        }
    }

    /** Beside the daemon that runs: another one, which must say in one line why it does not start. */
    private void readOnly() throws IOException, InterruptedException, TimeoutException {
        if (!stage.isRoot()) {
            stage.skip("mounting a file system needs root");
            return;
        }
        final Path own = Files.createDirectory(stage.base().resolve("read-only-" + stage.round().number()));
        stage.struck();
        final List<String> command = new ArrayList<>(List.of("unshare", "--mount", "sh", "-c",
            "mount -t tmpfs -o ro gpuseg-faults \"$0\" && exec \"$@\"", own.toString()));
        final List<String> java = JavaCommand.daemon("--dir", own.toString(), "--mechanism", "gate");
        java.addAll(DaemonSettings.write(stage.base().resolve("read-only.yaml"), "warm-up: false"));
        java.add(1, FaultRig.QUICK_COMPILER);
        command.addAll(java);
        try (Child refused = Child.start("read-only", command, stage.out().resolve("read-only.err"))) {
            final int status = refused.awaitExit(FaultRig.HANG_S);
            if (status != ExitCode.FAILURE || !refused.said().contains(own.toString())) {
                stage.problem("on a read-only file system the daemon ends with status " + status + ": "
                    + refused.said());
            }
        }
        stage.over();
    }

    /** The next daemon is killed by the kernel at its start, or later, or has just enough; its successor serves. */
    private void outOfMemory() throws IOException, InterruptedException, TimeoutException {
        final Optional<MemoryGroup> made = stage.isRoot() ? MemoryGroup.create("gpuseg-faults-" + ProcessStatus.pid(),
            LEAST_MIB + stage.round().variant() % MIB) : Optional.empty();
        if (made.isEmpty()) {
            stage.skip("no control group with a limit of memory can be made");
            return;
        }
        try (MemoryGroup group = made.get()) {
            if (stage.round().step() == Step.HELD) {
                stage.awaitHeld();
            }
            stage.struck();
            rig.killDaemon();
            stage.awaitNotice();
            final Child poor = rig.launchDaemon(group.prefix());
            if (becomesReady(poor)) {
                attacks.play(stage.round());
            }
            if (poor.isAlive()) {
                ProcessStatus.signal((int) poor.pid(), FaultRig.KILL);
            }
            poor.awaitExit(FaultRig.HANG_S);
            stage.daemonWent();
        }
    }

    private static boolean becomesReady(final Child poor) throws InterruptedException {
        try {
            poor.await("ready", POOR_S);
            return true;
        } catch (final IllegalStateException e) {
            return false;   // it has ended, as most do, or the kernel gives it no memory to go on
        }
    }

    /**
     * How the honest client fared, and how many daemons ended under attack.
     *
     * @param to receives {@code daemons_exhausted} and what {@link Responses#describe} says
     * @return whether no daemon ended and the honest client kept its response times
     */
    boolean describe(final ObjectNode to) {
        to.put("daemons_exhausted", exhausted);
        return attacks.responses().describe(to) && exhausted == 0;
    }
}
