/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.WatchdogPage;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class WatchdogKeeperTest {
    private static final class FakeWatchdog implements Watchdog {
        private final long pid;
        private boolean alive = true;
        private boolean closed;

        FakeWatchdog(final long pid) {
            this.pid = pid;
        }

        @Override
        public boolean isAlive() {
            return alive;
        }

        @Override
        public long pid() {
            return pid;
        }

        @Override
        public WatchdogPage page() {
            return null;
        }

        @Override
        public void close() {
            closed = true;
        }
    }

    private final List<WatchdogPage> told = new ArrayList<>();
    private final FakeWatchdog first = new FakeWatchdog(1);
    private final FakeWatchdog second = new FakeWatchdog(2);

    @Test
    void shouldStartNoneInADaemonWithoutOne() {
        final WatchdogKeeper none = new WatchdogKeeper(null, () -> {
            throw new AssertionError("none was asked for");
        }, told::add);
        none.keep();
        none.close();
        assertEquals(0, none.pid());
        assertNull(none.page());
    }

    @Test
    void shouldLeaveALivingOneAlone() {
        final WatchdogKeeper keeper = new WatchdogKeeper(first, () -> second, told::add);
        keeper.keep();
        assertEquals(1, keeper.pid());
        assertEquals(0, keeper.restarts());
        assertEquals(0, told.size());
    }

    @Test
    void shouldReplaceADeadOneAndTellWhereTheNewOneCounts() {
        final WatchdogKeeper keeper = new WatchdogKeeper(first, () -> second, told::add);
        first.alive = false;
        keeper.keep();
        assertEquals(2, keeper.pid());
        assertEquals(1, keeper.restarts());
        assertEquals(1, told.size());
        keeper.keep();
        assertEquals(1, keeper.restarts(), "it lives");
        keeper.close();
        assertTrue(second.closed);
        assertFalse(first.closed);
    }

    @Test
    void shouldSayWhyThereIsNoneAndTryAgain() {
        final List<Integer> attempts = new ArrayList<>();
        final WatchdogKeeper keeper = new WatchdogKeeper(first, () -> {
            attempts.add(attempts.size());
            if (attempts.size() < 3) {
                throw new StartUpException("no such program");
            }
            return second;
        }, told::add);
        first.alive = false;
        keeper.keep();
        assertEquals("no such program", keeper.failure());
        assertEquals(0, keeper.restarts());
        keeper.keep();
        keeper.keep();
        assertEquals("", keeper.failure());
        assertEquals(2, keeper.pid());
    }
}
