/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

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
 * Mechanism tegra with a real gpuseg-observer, on the stand-in: applications repeat on a device that it watches what
 * they do. No scan is due for an hour, so whatever is noticed was reported.
 */
@Timeout(300)
class ObservedTegraTest {
    private static final String SCAN_PROPERTY = "gpuseg.scan.observed";
    private static final int HOUR_MS = 3_600_000;
    private static final int PROCESSES = 10;

    @TempDir
    private Path directory;
    private TegraRig rig;
    private Observer observer;
    private TegraMechanism mechanism;
    private final Set<Integer> found = ConcurrentHashMap.newKeySet();

    @BeforeEach
    void start() throws Exception {
        rig = new TegraRig(directory);
        observer = RealObserver.start("nvgpu:1:7:any");
        System.setProperty(SCAN_PROPERTY, Integer.toString(HOUR_MS));
        mechanism = new TegraMechanism(Protection.DEFAULTS, observer);
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
            final TegraRig.App app = rig.start(1);
            TegraRig.await("pid " + app.pid() + " is announced", () -> found.contains(app.pid()));
        }
    }

    @Test
    void shouldTellTheEnforcerOfWorkThatAnAttachedProcessMakesLater() throws Exception {
        final TegraRig.App app = rig.start(1);
        mechanism.attach(app.context(1));
        TegraRig.await("its first work is known", () -> mechanism.changed());
        app.page.putInt(12, 1);
        TegraRig.await("its second work is known", mechanism::changed);
    }

    @Test
    void shouldScanOnceTheObserverIsGone() throws Exception {
        observer.close();
        final TegraRig.App later = rig.start(1);
        TegraRig.await("pid " + later.pid() + " is announced", () -> found.contains(later.pid()));
    }
}
