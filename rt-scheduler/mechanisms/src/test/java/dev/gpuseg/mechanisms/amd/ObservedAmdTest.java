/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.observer.Observer;
import dev.gpuseg.mechanisms.observer.RealObserver;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Mechanism amd with a real gpuseg-observer, on the stand-in: applications repeat on a device that it watches what they
 * do. No scan is due for an hour, so whatever is noticed was reported.
 */
@Timeout(300)
class ObservedAmdTest {
    private static final String SCAN_PROPERTY = "gpuseg.scan.observed";
    private static final int HOUR_MS = 3_600_000;
    private static final int PROCESSES = 10;
    private static final int WATCHDOG_MS = 60_000;

    @TempDir
    private Path directory;
    private AmdRig rig;
    private Observer observer;
    private AmdMechanism mechanism;
    private final Set<Integer> found = ConcurrentHashMap.newKeySet();

    @BeforeEach
    void start() throws Exception {
        rig = new AmdRig(directory);
        observer = RealObserver.start("kfd:1:7:any");
        System.setProperty(SCAN_PROPERTY, Integer.toString(HOUR_MS));
        mechanism = new AmdMechanism(0, Protection.DEFAULTS, observer, rig.sysfs(), ControlInterface.KFD,
            WATCHDOG_MS);
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
    }

    @AfterEach
    void stop() throws Exception {
        System.clearProperty(SCAN_PROPERTY);
        if (mechanism != null) {
            mechanism.close();
        }
        if (observer != null) {
            observer.close();
        }
        rig.close();
    }

    @Test
    void shouldAnnounceProcessesWhenTheirWorkIsReported() throws Exception {
        for (int i = 0; i < PROCESSES; i++) {
            final AmdRig.App app = rig.start(1);
            AmdRig.await("pid " + app.pid() + " is announced", () -> found.contains(app.pid()));
        }
    }

    @Test
    void shouldScanOnceTheObserverIsGone() throws Exception {
        observer.close();
        final AmdRig.App later = rig.start(1);
        AmdRig.await("pid " + later.pid() + " is announced", () -> found.contains(later.pid()));
    }
}
