/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import dev.gpuseg.fleet.engine.Engine;
import java.io.IOException;
import java.io.Serializable;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.Function;

/**
 * From many recordings to tables, figures and a report. Each part of the files is one task of the engine and writes
 * files of its own; those of a task that was lost are never taken. A part reads its recordings one after the other and
 * event by event.
 */
public final class FleetRecordings {
    private static final String PARTS = ".parts";

    private final Engine engine;
    private final Path out;

    /**
     * Where to.
     *
     * @param engine stays open
     * @param out    new directory; every executor must see it
     */
    public FleetRecordings(final Engine engine, final Path out) {
        this.engine = engine;
        this.out = out.toAbsolutePath();
    }

    /** What a task did. */
    private record Converted(String folder, ArrayList<Outcome> outcomes) implements Serializable {
    }

    /** What an executor does with its files. */
    private record Convert(String parts) implements Function<ArrayList<RecordingFile>, Converted> {
        @Override
        public Converted call(final ArrayList<RecordingFile> files) throws IOException {
            final TaskContext task = TaskContext.get();
            // a task that is repeated writes elsewhere
            final String folder = task.partitionId() + "-" + task.taskAttemptId();
            return new Converted(folder, Conversion.run(files, Path.of(parts, folder)));
        }
    }

    /**
     * Writes the tables {@code recordings}, {@code jobs}, {@code segments} and {@code decisions}.
     *
     * @param directory of the recordings; every executor must see it
     * @return what became of each file, by name
     * @throws IOException              if the output exists or cannot be written
     * @throws IllegalArgumentException if there is no recording
     */
    public List<Outcome> convert(final Path directory) throws IOException {
        if (Files.exists(out)) {
            throw new FileAlreadyExistsException(out + ": exists; name a new directory with --out");
        }
        final List<RecordingFile> files = RecordingFile.below(directory);
        if (files.isEmpty()) {
            throw new IllegalArgumentException(directory + ": no *.gpuseg below it; name the directory that contains "
                + "the recordings");
        }
        final Path parts = Files.createDirectories(out.resolve(PARTS));
        final List<ArrayList<RecordingFile>> divided = RecordingFile.divide(files, engine.partitions());
        final List<Converted> converted = engine.context().parallelize(divided, divided.size())
            .map(new Convert(parts.toString())).collect();
        final List<Outcome> outcomes = new ArrayList<>();
        for (int i = 0; i < converted.size(); i++) {
            outcomes.addAll(converted.get(i).outcomes());
            for (final Table<?> table : List.of(Tables.JOBS, Tables.SEGMENTS, Tables.DECISIONS)) {
                Files.move(parts.resolve(converted.get(i).folder()).resolve(table.name() + ".parquet"),
                    Files.createDirectories(out.resolve(table.name())).resolve(String.format("part-%05d.parquet", i)));
            }
        }
        outcomes.sort(Comparator.comparing(Outcome::name));
        delete(parts);
        try (ParquetWriter<Outcome> writer = Tables.RECORDINGS.create(Files.createDirectories(
            out.resolve(Tables.RECORDINGS.name())).resolve("part-00000.parquet"))) {
            for (final Outcome outcome : outcomes) {
                writer.write(outcome);
            }
        }
        return outcomes;
    }

    /** Also what tasks left that were lost. */
    private static void delete(final Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (final Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /**
     * Computes the figures from the tables and writes {@code report.html}, {@code report.json} and the table
     * {@code tasks}.
     *
     * @param outcomes of {@link #convert}
     * @param before   version to compare; null = the last but one
     * @param after    version to compare; null = the last
     * @return the figures
     * @throws IOException              if a file cannot be written
     * @throws IllegalArgumentException if no recording has one of the versions
     */
    public Figures report(final List<Outcome> outcomes, final String before, final String after) throws IOException {
        final Figures figures = new Statistics(engine.session(), out).compute(outcomes, before, after);
        final String json = FleetJson.render(figures);
        Files.writeString(out.resolve("report.json"), json);
        Files.writeString(out.resolve("report.html"), FleetReport.render(figures));
        return figures;
    }
}
