/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.ThreadControl;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class CompilerTimeTest {
    private static final long LOOK = CompilerTime.LOOK_NS;
    private static final int SECONDS = 20;

    @Test
    void shouldBoundTheTimeAsARealTimeThreadInEveryWindow() {
        final SplittableRandom random = new SplittableRandom(1);
        for (int play = 0; play < 200; play++) {
            final CompilerTime.Allowance allowance = new CompilerTime.Allowance();
            final long[] realTime = new long[SECONDS * 10];
            for (int i = 0; i < realTime.length; i++) {
                final long used = random.nextInt(3) == 0 ? random.nextLong(LOOK) : random.nextInt(2) * LOOK;
                realTime[i] = allowance.isOrdinary() ? 0 : used;
                allowance.passed(LOOK, used);
            }
            for (int from = 0; from < realTime.length; from++) {
                long sum = 0;
                for (int to = from; to < realTime.length; to++) {
                    sum += realTime[to];
                    final long share = (to - from + 1) * LOOK * CompilerTime.PERCENT / 100;
                    assertTrue(sum <= share + CompilerTime.BURST_NS + LOOK, sum + " of " + (to - from + 1) + " looks");
                }
            }
        }
    }

    @Test
    void shouldStayARealTimeThreadThatComputesLittle() {
        final CompilerTime.Allowance allowance = new CompilerTime.Allowance();
        for (int i = 0; i < 1000; i++) {
            assertFalse(allowance.passed(LOOK, LOOK * CompilerTime.PERCENT / 100));
        }
        assertFalse(allowance.isOrdinary());
    }

    @Test
    void shouldBeARealTimeThreadAgainWhenItHasAnAllowance() {
        final CompilerTime.Allowance allowance = new CompilerTime.Allowance();
        int looks = 0;
        for (; !allowance.isOrdinary(); looks++) {
            allowance.passed(LOOK, LOOK);
        }
        assertEquals(2, looks);
        for (looks = 0; allowance.isOrdinary(); looks++) {
            allowance.passed(LOOK, LOOK);   // what it computes as an ordinary thread is not charged
        }
        assertEquals(3, looks);
    }

    @Test
    void shouldKnowTheCompilersOfThisJvm() {
        assertTrue(RuntimeThreads.compilers().length > 0);
        assertTrue(RuntimeThreads.compiles("C2 CompilerThre") && !RuntimeThreads.compiles("VM Thread"));
    }

    @Test
    void shouldMakeAThreadThatComputesAnOrdinaryOneAndBack() throws Exception {
        assumeTrue(mayBeRealTime(), "SCHED_FIFO is not permitted");
        final AtomicInteger ordinary = new AtomicInteger();
        final AtomicInteger tid = new AtomicInteger();
        final CountDownLatch known = new CountDownLatch(1);
        final long untilNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
        final Thread busy = new Thread(() -> {
            tid.set(ThreadControl.tid());
            ThreadControl.realTime(RuntimeThreads.LOWEST);
            known.countDown();
            while (ordinary.get() == 0 && System.nanoTime() - untilNs < 0) {
                Thread.onSpinWait();
            }
            while (!isRealTime(tid.get()) && System.nanoTime() - untilNs < 0) {
                try {
                    TimeUnit.MILLISECONDS.sleep(10);
                } catch (final InterruptedException e) {
                    return;
                }
            }
        });
        busy.start();
        known.await();
        try (CompilerTime looks = new CompilerTime(new int[] {tid.get()}, RuntimeThreads.LOWEST,
            ordinary::incrementAndGet)) {
            looks.start();
            busy.join();
            assertEquals(1, ordinary.get(), "it was made an ordinary thread once");
            assertTrue(System.nanoTime() - untilNs < 0, "and a real-time one again");
        }
    }

    private static boolean isRealTime(final int tid) {
        try {
            final String stat = Files.readString(Path.of("/proc/self/task/" + tid + "/stat"));
            return stat.substring(stat.lastIndexOf(')') + 2).split(" ")[38].equals("1");
        } catch (final java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static boolean mayBeRealTime() throws InterruptedException {
        final boolean[] permitted = new boolean[1];
        final Thread thread = new Thread(() -> {
            try {
                ThreadControl.realTime(1);
                permitted[0] = true;
            } catch (final dev.gpuseg.ipc.platform.SystemCallException e) {
                permitted[0] = false;
            }
        });
        thread.start();
        thread.join();
        return permitted[0];
    }
}
