/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class DesiredStateTest {
    private static final int LIMIT_S = 60;
    private static final int PRIORITY = 50;
    private static final int NOT_PERMITTED = 7;
    private static final int HALF = 8;
    private static final int CHANGES = 200;

    /** Another JVM on one processor: dispatcher and enforcer have the same real-time priority, as in a daemon. */
    static final class OneProcessor {
        private OneProcessor() {
        }

        public static void main(final String[] arguments) throws InterruptedException {
            final DesiredState state = new DesiredState(3);
            final Thread enforcer = new Thread(() -> follow(state), "enforcer");
            try {
                ThreadControl.realTime(PRIORITY);
            } catch (final SystemCallException e) {
                System.exit(NOT_PERMITTED);
            }
            enforcer.start();
            for (int i = 0; i < CHANGES; i++) {
                state.set(1, i % 2 == 0);
                TimeUnit.MILLISECONDS.sleep(1);   // as a stop of the JVM between two stores: the enforcer runs
                state.set(2, i % 2 == 0);
                state.commit();
            }
            enforcer.join();
        }

        private static void follow(final DesiredState state) {
            ThreadControl.realTime(PRIORITY);
            final boolean[] off = new boolean[3];
            while (state.snapshot(off) < 2L * CHANGES) {
                if (off[1] != off[2]) {
                    Runtime.getRuntime().halt(HALF);
                }
                LockSupport.parkNanos(10_000);   // as an enforcer that has applied it
            }
        }
    }

    @Test
    void shouldLetTheDispatcherFinishADecisionOnTheOnlyProcessor() throws Exception {
        final List<String> command = new ArrayList<>(List.of("taskset", "--cpu-list", "0",
            Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), OneProcessor.class.getName()));
        final Process jvm = new ProcessBuilder(command).inheritIO().start();
        try {
            assertTrue(jvm.waitFor(LIMIT_S, TimeUnit.SECONDS), "neither thread goes on");
            assumeTrue(jvm.exitValue() != NOT_PERMITTED, "SCHED_FIFO is not permitted");
            assertEquals(0, jvm.exitValue(), HALF + " = half of a decision was seen");
        } finally {
            jvm.destroyForcibly();
        }
    }

    @Test
    void shouldPollBesideOthersOnlyWhereTheyHaveAProcessor() {
        assertEquals(IdleMode.SLEEP, IdleMode.HYBRID.ofDispatcher(1));
        assertEquals(IdleMode.HYBRID, IdleMode.HYBRID.ofDispatcher(2));
        assertEquals(IdleMode.SPIN, IdleMode.SPIN.ofDispatcher(1), "it was asked for");
    }
}
