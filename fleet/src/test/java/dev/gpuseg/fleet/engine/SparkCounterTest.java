/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.sweep.AcceptanceSweep;
import dev.gpuseg.analysis.sweep.CampaignSweep;
import dev.gpuseg.analysis.sweep.FigureSweep;
import dev.gpuseg.analysis.sweep.Progress;
import dev.gpuseg.analysis.sweep.SetCounter;
import dev.gpuseg.analysis.sweep.ThreadCounter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The figures of one machine, whatever the number of parts, also when an executor is lost. */
@Timeout(600)
class SparkCounterTest {
    private static final long SEED = 5;
    private static final Progress SILENT = new Progress(null, "sets", 1);
    @TempDir
    private Path directory;

    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    private void sweeps(final String name, final SetCounter counter) throws IOException, InterruptedException {
        final Path out = Files.createDirectories(directory.resolve(name));
        new FigureSweep(SEED, 6, Variant.AS_CODED, out, counter).run(List.of("8b", "9c"), SILENT);
        new AcceptanceSweep(SEED, 2, out, counter).run(SILENT);
        campaign(out, 20, counter);
        new CampaignSweep(SEED, 1, out, counter, 0).gap(2, Variant.AS_PUBLISHED, SILENT);
    }

    private static CampaignSweep.Totals campaign(final Path out, final int sets, final SetCounter counter)
        throws IOException, InterruptedException {
        return new CampaignSweep(SEED, 2, Files.createDirectories(out), counter, 0).soundness(sets, false,
            List.of("gcaps-suspend", "gcaps-window-suspend", "tsg-rr-suspend"), SILENT);
    }

    private Map<String, String> files(final String name) throws IOException {
        final Map<String, String> all = new TreeMap<>();
        final Path root = directory.resolve(name);
        try (Stream<Path> found = Files.walk(root)) {
            for (final Path file : found.filter(Files::isRegularFile).toList()) {
                all.put(root.relativize(file).toString(), Files.readString(file));
            }
        }
        return all;
    }

    @Test
    void shouldWriteTheSameFilesAsOneMachineWhateverTheNumberOfParts() throws Exception {
        try (SetCounter threads = new ThreadCounter(2)) {
            sweeps("threads", threads);
        }
        final Map<String, String> expected = files("threads");
        assertTrue(expected.containsKey("figure-8b.svg") && expected.containsKey("soundness.csv")
            && expected.containsKey("gap.csv") && expected.containsKey("accepted.csv"), () -> "" + expected.keySet());
        assertTrue(expected.get("soundness.csv").contains("gcaps-suspend,fp/fp/window,false,20,"),
            expected.get("soundness.csv"));
        for (final int partitions : new int[] {1, 4, 16}) {
            try (Engine engine = TestEngine.local(partitions); SetCounter counter = new SparkCounter(engine)) {
                sweeps("spark" + partitions, counter);
            }
            assertEquals(expected, files("spark" + partitions), partitions + " parts");
        }
    }

    @Test
    void shouldCountAgainWhatALostExecutorCounted() throws Exception {
        final CampaignSweep.Totals expected;
        try (SetCounter threads = new ThreadCounter(2)) {
            expected = campaign(directory.resolve("threads"), 300, threads);
            figure(directory.resolve("threads/figure"), threads);
        }
        assertTrue(expected.runs() > 100, expected::toString);
        try (Engine engine = Engine.start("test", "local-cluster[2,1,1024]", 24);
            SetCounter counter = new SparkCounter(engine)) {
            withoutAnExecutor(engine, () -> assertEquals(expected, campaign(directory.resolve("cluster"), 300,
                counter)));
            withoutAnExecutor(engine, () -> figure(directory.resolve("cluster/figure"), counter));
        }
        assertEquals(files("threads").get("soundness.csv"), files("cluster").get("soundness.csv"));
        assertEquals(files("threads/figure"), files("cluster/figure"));
    }

    private static void figure(final Path out, final SetCounter counter) throws IOException, InterruptedException {
        new FigureSweep(SEED, 24, Variant.AS_CODED, Files.createDirectories(out), counter).run(List.of("8b"), SILENT);
    }

    /** Kills an executor when the first part of the work is done. */
    private static void withoutAnExecutor(final Engine engine, final Work work) throws Exception {
        final TestEngine.Killer killer = new TestEngine.Killer();
        engine.context().sc().addSparkListener(killer);
        work.run();
        engine.context().sc().removeSparkListener(killer);
        assertTrue(killer.hasKilled(), "no executor was killed");
        assertTrue(killer.removed() >= 1, "Spark did not see that an executor was lost");
    }

    /** A master and two workers, each a process of its own. */
    @Test
    void shouldCountAgainOnAnotherWorkerWhatALostOneCounted() throws Exception {
        final CampaignSweep.Totals expected;
        try (SetCounter threads = new ThreadCounter(2)) {
            expected = campaign(directory.resolve("alone"), 300, threads);
        }
        final String before = System.setProperty("spark.driver.host", "127.0.0.1");
        try (TestEngine.Cluster cluster = new TestEngine.Cluster(directory.resolve("logs"), 2)) {
            final TestEngine.Killer killer = new TestEngine.Killer(() -> cluster.kill(0));
            try (Engine engine = Engine.start("test", cluster.url(), 24);
                SetCounter counter = new SparkCounter(engine)) {
                engine.context().sc().addSparkListener(killer);
                // both workers must be there before one is killed
                for (int i = 0; i < 3000 && engine.context().sc().getExecutorMemoryStatus().size() < 3; i++) {
                    Thread.sleep(100);
                }
                assertEquals(3, engine.context().sc().getExecutorMemoryStatus().size(), "the driver and two executors");
                assertEquals(expected, campaign(directory.resolve("workers"), 300, counter));
            }
            assertTrue(killer.hasKilled(), "no worker was killed");
            assertTrue(killer.removed() >= 1, "Spark did not see that an executor was lost");
        } finally {
            if (before == null) {
                System.clearProperty("spark.driver.host");
            } else {
                System.setProperty("spark.driver.host", before);
            }
        }
        assertEquals(files("alone").get("soundness.csv"), files("workers").get("soundness.csv"));
    }

    /** Spark gives up after three attempts of 20 s. */
    @Test
    void shouldRunNothingForAProgramThatDoesNotKnowTheSecret() throws Exception {
        try (TestEngine.Cluster cluster = new TestEngine.Cluster(directory.resolve("logs"), 1)) {
            for (final SparkConf stranger : List.of(new SparkConf(), new SparkConf().set("spark.authenticate", "true")
                .set("spark.authenticate.secret", "guessed").set("spark.network.crypto.enabled", "true"))) {
                stranger.setAppName("stranger").setMaster(cluster.url()).set("spark.ui.enabled", "false")
                    .set("spark.driver.host", "127.0.0.1");
                assertThrows(Exception.class, () -> {
                    try (JavaSparkContext context = new JavaSparkContext(stranger)) {
                        context.parallelize(List.of(1), 1).count();
                    }
                });
            }
        }
    }

    @Test
    void shouldDivideAllSetsAmongTheParts() {
        assertEquals("[Part[from=5, to=7], Part[from=7, to=9], Part[from=9, to=12]]",
            SparkCounter.parts(5, 12, 3).toString());
        assertEquals(2, SparkCounter.parts(0, 2, 50).size());
        assertFalse(SparkCounter.parts(0, 1, 1).isEmpty());
    }
}
