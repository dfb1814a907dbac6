/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.engine;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/** Engines for tests. */
public final class TestEngine {
    private TestEngine() {
    }

    /** Two threads of this process. */
    public static Engine local(final int partitions) {
        return Engine.start("test", "local[2]", partitions);
    }

    /** Kills the process of one executor when the first task has ended, and counts what happens. */
    public static final class Killer extends SparkListener {
        private final AtomicInteger killed = new AtomicInteger();
        private final AtomicInteger removed = new AtomicInteger();

        @Override
        public void onTaskEnd(final SparkListenerTaskEnd end) {
            if (killed.compareAndSet(0, 1)) {
                final boolean found = ProcessHandle.current().descendants().filter(process -> process.info()
                    .command().orElse("").endsWith("java")).findFirst()   // nothing else starts one here
                    .map(ProcessHandle::destroyForcibly).orElse(false);
                killed.set(found ? 2 : 1);
            }
        }

        @Override
        public void onExecutorRemoved(final SparkListenerExecutorRemoved executor) {
            removed.incrementAndGet();
        }

        /** Whether a process was killed. */
        public boolean hasKilled() {
            return killed.get() == 2;
        }

        /** Executors that Spark lost. */
        public int removed() {
            return removed.get();
        }
    }
}
