/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.struct;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.udaf;
import static org.apache.spark.sql.functions.udf;
import static org.apache.spark.sql.functions.when;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.storage.StorageLevel;

/**
 * Computes the figures of a fleet from its tables. All sums are of integers and all quantiles come from histograms that
 * merge exactly, so the figures do not depend on partitions or on the order in which they are done.
 */
final class Statistics {
    private static final int WORST = 20;
    private static final String RECORDING = "recording";
    private static final String ROBOT = "robot";
    private static final String VERSION = "version";
    private static final String TASK = "task";
    private static final String TIMES = "times";

    private final SparkSession session;
    private final Path tables;

    /**
     * Statistics.
     *
     * @param session stays open
     * @param tables  directory with a folder for each table; receives a folder {@code tasks}
     */
    Statistics(final SparkSession session, final Path tables) {
        this.session = session;
        this.tables = tables;
    }

    Figures compute(final List<Outcome> outcomes, final String before, final String after) {
        if (outcomes.stream().noneMatch(Outcome::isOk)) {
            return new Figures(outcomes, List.of(), List.of(), List.of(), List.of(), null);
        }
        final Dataset<Row> jobs = session.read().parquet(tables.resolve(Tables.JOBS.name()).toString());
        final UserDefinedFunction times = udaf(new HistogramSums.OfTimes(), Encoders.LONG());
        final Dataset<Row> byRecording = jobs.groupBy(RECORDING, ROBOT, VERSION, TASK).agg(
            max("priority").as("priority"), max("deadline_ns").as("deadline_ns"), count(lit(1)).as("jobs"),
            sum(one(col("state").equalTo("complete"))).as("complete"), sum(one(col("late"))).as("late"),
            times.apply(col("response_ns")).as(TIMES)).persist(StorageLevel.MEMORY_AND_DISK());
        final List<Figures.OfRecording> recordings = recordings(byRecording);
        final List<Figures.Responses> responses = responses(byRecording);
        byRecording.unpersist();
        final List<String> versions = recordings.stream().map(Figures.OfRecording::version).distinct()
            .sorted(Versions.ORDER).toList();
        final Versions.Pair pair = Versions.choose(versions, before, after);
        return new Figures(outcomes, responses, recordings, chains(jobs, times), worst(jobs),
            pair == null ? null : Drift.of(recordings, pair.before(), pair.after()));
    }

    private static Column one(final Column when) {
        return when(when, lit(1L)).otherwise(lit(0L));
    }

    /** One row per recording and task, kept as a table, too. */
    private List<Figures.OfRecording> recordings(final Dataset<Row> byRecording) {
        final UDF2<byte[], Double, Long> quantile = (bytes, share) -> ResponseHistogram.of(bytes).quantileNs(share);
        final UserDefinedFunction at = udf(quantile, DataTypes.LongType);
        final Dataset<Row> rows = byRecording.select(col(RECORDING), col(ROBOT), col(VERSION), col(TASK),
            col("priority"), col("deadline_ns"), col("jobs"), col("complete"), col("late"),
            at.apply(col(TIMES), lit(0.5)).as("p50_ns"), at.apply(col(TIMES), lit(0.99)).as("p99_ns"),
            at.apply(col(TIMES), lit(1.0)).as("max_ns")).coalesce(1).sort(RECORDING, TASK);
        rows.write().mode(SaveMode.Overwrite).option("compression", "zstd").parquet(tables.resolve("tasks").toString());
        final List<Figures.OfRecording> all = new ArrayList<>();
        for (final Row r : rows.collectAsList()) {
            all.add(new Figures.OfRecording(r.getString(0), r.getString(1), r.getString(2), r.getString(3), r.getInt(4),
                r.getLong(5), r.getLong(6), r.getLong(7), r.getLong(8), r.getLong(9), r.getLong(10), r.getLong(11)));
        }
        all.sort(Comparator.comparing(Figures.OfRecording::recording).thenComparing(Figures.OfRecording::task));
        return all;
    }

    /** Of each robot, and of all robots of a version. */
    private static List<Figures.Responses> responses(final Dataset<Row> byRecording) {
        final UserDefinedFunction merged = udaf(new HistogramSums.OfHistograms(), Encoders.BINARY());
        final List<Figures.Responses> all = new ArrayList<>();
        final Map<List<String>, Figures.Responses> sums = new TreeMap<>(Comparator.comparing(
            (List<String> key) -> key.get(0)).thenComparing(key -> key.get(1), Versions.ORDER));
        for (final Row r : byRecording.groupBy(TASK, VERSION, ROBOT).agg(max("priority"), max("deadline_ns"),
            count(lit(1)), sum("jobs"), sum("late"), merged.apply(col(TIMES))).collectAsList()) {
            final Figures.Responses one = new Figures.Responses(r.getString(0), r.getString(1), r.getString(2),
                r.getInt(3), r.getLong(4), r.getLong(5), r.getLong(6), r.getLong(7),
                ResponseHistogram.of(r.getAs(8)));
            all.add(one);
            final ResponseHistogram copy = new ResponseHistogram();
            copy.add(one.complete());
            sums.merge(List.of(one.task(), one.version()), new Figures.Responses(one.task(), one.version(), "",
                one.priority(), one.deadlineNs(), one.recordings(), one.jobs(), one.late(), copy), Statistics::add);
        }
        all.addAll(sums.values());
        all.sort(Comparator.comparing(Figures.Responses::task).thenComparing(Figures.Responses::version, Versions.ORDER)
            .thenComparing(Figures.Responses::robot));
        return all;
    }

    private static Figures.Responses add(final Figures.Responses a, final Figures.Responses b) {
        a.complete().add(b.complete());
        return new Figures.Responses(a.task(), a.version(), "", Math.max(a.priority(), b.priority()),
            Math.max(a.deadlineNs(), b.deadlineNs()), a.recordings() + b.recordings(), a.jobs() + b.jobs(),
            a.late() + b.late(), a.complete());
    }

    private static List<Figures.ChainAge> chains(final Dataset<Row> jobs, final UserDefinedFunction times) {
        final List<Figures.ChainAge> all = new ArrayList<>();
        for (final Row r : jobs.where(col("age_ns").isNotNull().and(col("source").notEqual(col(TASK))))
            .groupBy(col("source"), col(TASK), col(VERSION), col(ROBOT)).agg(times.apply(col("age_ns")),
                max(struct(col("age_ns"), col(RECORDING)))).collectAsList()) {
            all.add(new Figures.ChainAge(r.getString(0), r.getString(1), r.getString(2), r.getString(3),
                ResponseHistogram.of(r.getAs(4)), r.getStruct(5).getString(1)));
        }
        all.sort(Comparator.comparingLong((Figures.ChainAge c) -> -c.ages().maxNs())
            .thenComparing(Figures.ChainAge::source).thenComparing(Figures.ChainAge::task)
            .thenComparing(Figures.ChainAge::version).thenComparing(Figures.ChainAge::robot));
        return all;
    }

    /** Of each task, version and robot one job, since the worst task alone could fill the list; of equals the last. */
    private static List<Figures.WorstJob> worst(final Dataset<Row> jobs) {
        final Column ratio = col("response_ns").divide(col("deadline_ns"));
        final List<Figures.WorstJob> all = new ArrayList<>();
        for (final Row r : jobs.where(col("priority").gt(0).and(col("deadline_ns").gt(0))
            .and(col("response_ns").isNotNull())).groupBy(TASK, VERSION, ROBOT).agg(max(struct(ratio.as("ratio"),
                col(RECORDING), col("number"), col("response_ns"), col("deadline_ns"), col("wait_ns"),
                col("preemptions"))).as("job")).select(col("job.recording"), col(ROBOT), col(VERSION), col(TASK),
                    col("job.number"), col("job.response_ns"), col("job.deadline_ns"), col("job.wait_ns"),
                    col("job.preemptions"), col("job.ratio")).orderBy(col("ratio").desc(), col(RECORDING).asc(),
                        col(TASK).asc()).limit(WORST).collectAsList()) {
            all.add(new Figures.WorstJob(r.getString(0), r.getString(1), r.getString(2), r.getString(3), r.getInt(4),
                r.getLong(5), r.getLong(6), r.getLong(7), r.getInt(8)));
        }
        return all;
    }
}
