/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * A rig on a small file system of its own, for rounds that fill it. Its daemon lives over some of them, and is replaced
 * after a number of rounds and after each that found something. One thread.
 */
final class SmallDisk implements AutoCloseable {
    private static final String SIZE = "24m";
    /** The journal is on it, too: it must not be what fills the space. */
    private static final int ROUNDS = 20;

    private final Stage stage;
    private FaultRig rig;
    private int made;
    private int rounds;

    SmallDisk(final Stage stage) {
        this.stage = stage;
    }

    /** The rig, with a daemon and no client. */
    FaultRig rig() throws IOException, InterruptedException {
        if (rig == null) {
            made++;
            rounds = 0;
            rig = new FaultRig(Files.createDirectory(stage.base().resolve("small-" + made)), null, stage.out(), SIZE,
                stage.periodMs());
            try {
                rig.startDaemon();
            } catch (final InterruptedException | IllegalStateException e) {
                close();
                throw e;
            }
        }
        rig.operations().read();
        rig.operations().startAnew();
        rig.ledger().read();
        rig.ledger().startAnew();
        return rig;
    }

    int daemonsStarted() {
        return made;
    }

    /** A round was played on it. Returns what was not as it must be at the end of the rig, if that came. */
    List<String> played(final boolean survived) throws InterruptedException, TimeoutException {
        rounds++;
        return survived && rounds < ROUNDS ? List.of() : end();
    }

    /** Ends it in order; what was not as it must be. */
    List<String> end() throws InterruptedException, TimeoutException {
        final List<String> problems = new ArrayList<>();
        if (rig == null) {
            return problems;
        }
        try {
            if (rig.stopDaemon() != 0 || rig.held() != 0) {
                problems.add("on the small file system: the daemon did not stop cleanly: " + rig.daemon().said());
            }
            rig.stopGpu();
        } finally {
            close();
        }
        return problems;
    }

    @Override
    public void close() {
        if (rig != null) {
            rig.close();
            rig = null;
        }
    }
}
