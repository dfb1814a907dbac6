/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.engine;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
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

    /**
     * A cluster of this machine: a master and workers, each a process of its own, as {@code fleet/gpuseg-fleet master}
     * and {@code worker} start them. Every worker has one core.
     */
    public static final class Cluster implements AutoCloseable {
        private final Path directory;
        private final int port;
        private final List<Process> workers = new ArrayList<>();
        private final Process master;

        /** Starts a master and so many workers, whose files are below a directory. */
        public Cluster(final Path directory, final int count) throws IOException, InterruptedException {
            this.directory = Files.createDirectories(directory);
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = free.getLocalPort();
            }
            master = start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port",
                Integer.toString(port), "--webui-port", "0");
            await(master, () -> {
                try (Socket socket = new Socket()) {
                    socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1000);
                    return true;
                } catch (final IOException e) {
                    return false;
                }
            });
            for (int i = 0; i < count; i++) {
                workers.add(start("worker" + i, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
                    "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir",
                    directory.resolve("work" + i).toString(), url()));
            }
        }

        private Process start(final String name, final String... command) throws IOException {
            final List<String> line = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java"),
                "-Xmx256m", "-Dspark.authenticate=true", "-Dspark.network.crypto.enabled=true"));
            // the packages that Spark needs opened are given to this process, too
            ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> argument.startsWith("--add-opens")).forEach(line::add);
            line.addAll(List.of("-cp", System.getenv("SPARK_HOME") + "/jars/*"));
            line.addAll(List.of(command));
            return new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(directory.resolve(name + ".log")
                .toFile()).start();
        }

        private static void await(final Process process, final BooleanSupplier condition) throws InterruptedException {
            for (int i = 0; i < 600 && process.isAlive(); i++) {
                if (condition.getAsBoolean()) {
                    return;
                }
                Thread.sleep(100);
            }
            throw new AssertionError("the master does not answer");
        }

        /** For {@code --master}. */
        public String url() {
            return "spark://127.0.0.1:" + port;
        }

        /** Kills the process of a worker; its executor ends with it. */
        public boolean kill(final int worker) {
            return workers.get(worker).isAlive() && workers.get(worker).toHandle().destroyForcibly();
        }

        @Override
        public void close() {
            for (final Process worker : workers) {
                worker.descendants().forEach(ProcessHandle::destroyForcibly);
                worker.destroyForcibly().onExit().join();
            }
            master.destroyForcibly().onExit().join();
        }
    }

    /** Kills a process when the first task has ended, and counts what happens. */
    public static final class Killer extends SparkListener {
        private final AtomicInteger killed = new AtomicInteger();
        private final AtomicInteger removed = new AtomicInteger();
        private final BooleanSupplier victim;

        /** Kills one executor of this process's own. */
        public Killer() {
            this(() -> ProcessHandle.current().descendants().filter(process -> process.info()
                .command().orElse("").endsWith("java")).findFirst()   // nothing else starts one here
                .map(ProcessHandle::destroyForcibly).orElse(false));
        }

        /** Kills what it is told; true if there was something to kill. */
        public Killer(final BooleanSupplier victim) {
            this.victim = victim;
        }

        @Override
        public void onTaskEnd(final SparkListenerTaskEnd end) {
            if (killed.compareAndSet(0, 1)) {
                killed.set(victim.getAsBoolean() ? 2 : 1);
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
