/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * A running Spark application: in this process ({@code local[*]}), or on a cluster ({@code spark://HOST:PORT}). It has
 * no web page and listens beyond this machine only if the master is elsewhere. One at a time in a process.
 */
public final class Engine implements AutoCloseable {
    /** Parts for each core where the user names no number: a slow part then costs little. */
    private static final int PARTS_PER_CORE = 4;
    private static final String OWN = "(gpuseg-|agrona-|jna-|picocli-|json-schema-validator-|jackson-|snakeyaml-)"
        + ".*\\.jar";

    /** Where Spark's own processes look for the secret of a cluster. */
    private static final String SECRET = "_SPARK_AUTH_SECRET";

    private final SparkSession session;
    private final JavaSparkContext context;
    private final int partitions;

    private Engine(final SparkSession session, final int partitions) {
        this.session = session;
        context = JavaSparkContext.fromSparkContext(session.sparkContext());
        this.partitions = partitions > 0 ? partitions : PARTS_PER_CORE * context.defaultParallelism();
    }

    /**
     * Starts it.
     *
     * @param name       of the application
     * @param master     as Spark names masters
     * @param partitions how many parts the work is divided into; 0 = four for each core
     * @return the engine
     */
    public static Engine start(final String name, final String master, final int partitions) {
        final SparkConf conf = new SparkConf().setAppName(name).setMaster(master)
            .set("spark.ui.enabled", "false")
            .set("spark.sql.session.timeZone", "UTC")
            // Agrona's buffers; Spark adds what it needs itself
            .set("spark.executor.extraJavaOptions", "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED")
            .set("spark.sql.objectHashAggregate.sortBased.fallbackThreshold", "100000")
            // figures do not depend on it, and small groups need no more
            .set("spark.sql.shuffle.partitions", partitions > 0 ? Integer.toString(partitions) : "16");
        if (master.startsWith("local")) {
            conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1");
        } else {
            conf.set("spark.jars", String.join(",", ownJars()));
        }
        final String secret = System.getenv(SECRET);
        if (master.startsWith("spark:") && secret != null) {
            // fleet/gpuseg-fleet demands it; a Spark of other origin may have been told otherwise
            conf.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
                .set("spark.network.crypto.enabled", "true");
        }
        return new Engine(SparkSession.builder().config(conf).getOrCreate(), partitions);
    }

    /** The jars of this distribution that a Spark of other origin does not have. */
    private static List<String> ownJars() {
        final String home = System.getProperty("gpuseg.fleet.home", "");
        if (home.isEmpty()) {
            return List.of();
        }
        try (Stream<Path> jars = Files.list(Path.of(home, "jars"))) {
            return jars.filter(jar -> jar.getFileName().toString().matches(OWN))
                .map(Path::toString).sorted().toList();
        } catch (final IOException e) {
            throw new IllegalStateException(home + "/jars cannot be read; build the distribution again", e);
        }
    }

    /** The session for queries. */
    public SparkSession session() {
        return session;
    }

    /** The context for work that is no query. */
    public JavaSparkContext context() {
        return context;
    }

    /** How many parts the work is divided into: 1 or more. */
    public int partitions() {
        return partitions;
    }

    @Override
    public void close() {
        session.stop();
    }
}
