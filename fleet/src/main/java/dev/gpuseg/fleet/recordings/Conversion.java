/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.tools.trace.RecordingRows;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.parquet.hadoop.ParquetWriter;

/**
 * Turns some recordings into one Parquet file per table. Every recording is checked first (its ZIP directory, its
 * SHA-256, every event), so that no row of a damaged one is written; then it is read again, event by event. If one
 * proves to be damaged only then, the files are written anew without it. One thread.
 */
final class Conversion {
    private final Path directory;
    private final List<Outcome> outcomes = new ArrayList<>();

    /** The output failed; the recording is not to blame. */
    private static final class OutputFailure extends IOException {
        private static final long serialVersionUID = 1;

        OutputFailure(final IOException cause) {
            super(cause);
        }
    }

    private Conversion(final Path directory) {
        this.directory = directory;
    }

    /**
     * Converts.
     *
     * @param files     recordings, or what should be ones
     * @param directory new; receives {@code jobs.parquet}, {@code segments.parquet} and {@code decisions.parquet}
     * @return one outcome for each file, in the same order
     * @throws IOException if the output cannot be written; never because of a recording
     */
    static ArrayList<Outcome> run(final List<RecordingFile> files, final Path directory) throws IOException {
        Files.createDirectories(directory);
        final Conversion conversion = new Conversion(directory);
        final List<RecordingFile> usable = new ArrayList<>();
        for (final RecordingFile file : files) {
            final Outcome bad = conversion.check(file);
            if (bad == null) {
                usable.add(file);
            } else {
                conversion.outcomes.add(bad);
            }
        }
        RecordingFile culprit;
        do {
            culprit = conversion.write(usable);
            usable.remove(culprit);
        } while (culprit != null);
        final ArrayList<Outcome> all = new ArrayList<>(conversion.outcomes);
        all.sort(Comparator.comparing(Outcome::name));
        return all;
    }

    /** Why a file cannot be used; null if it can. */
    private Outcome check(final RecordingFile file) {
        try {
            Source.open(Path.of(file.path())).forEach(event -> {
                // to the end, for the SHA-256
            });
            return null;
        } catch (final IOException | RuntimeException e) {
            return unusable(file, e);
        }
    }

    private static Outcome unusable(final RecordingFile file, final Exception e) {
        final String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("")
            .replace(file.path() + ": ", "").replaceFirst("^damaged: ", "").replaceFirst("; record again$", "");
        try {
            if (file.bytes() == 0) {
                return Outcome.unusable(file, Outcome.TRUNCATED, "the file is empty");
            }
            if (e instanceof IllegalArgumentException && message.startsWith("not a recording")) {
                return startsAsZip(Path.of(file.path())) ? Outcome.unusable(file, Outcome.TRUNCATED, "it begins as a "
                    + "recording, and its end is missing after " + file.bytes() + " bytes")
                    : Outcome.unusable(file, Outcome.FOREIGN, message);
            }
        } catch (final IOException cannotBeRead) {
            return Outcome.unusable(file, Outcome.DAMAGED, "it cannot be read: " + cannotBeRead.getMessage());
        }
        return Outcome.unusable(file, Outcome.DAMAGED, e instanceof IOException
            || e instanceof IllegalArgumentException ? message : e.getClass().getSimpleName() + ": " + message);
    }

    private static boolean startsAsZip(final Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            final byte[] first = in.readNBytes(4);
            return first.length == 4 && first[0] == 'P' && first[1] == 'K' && first[2] == 3 && first[3] == 4;
        }
    }

    /** Writes all; returns the recording that cannot be understood, null if there is none. */
    private RecordingFile write(final List<RecordingFile> files) throws IOException {
        for (final Table<?> table : List.of(Tables.JOBS, Tables.SEGMENTS, Tables.DECISIONS)) {
            Files.deleteIfExists(file(table));
        }
        final List<Outcome> done = new ArrayList<>();
        try (ParquetWriter<Tables.Of<RecordingRows.Job>> jobs = Tables.JOBS.create(file(Tables.JOBS));
            ParquetWriter<Tables.Of<RecordingRows.Segment>> segments = Tables.SEGMENTS.create(file(Tables.SEGMENTS));
            ParquetWriter<Tables.Of<RecordingRows.Decision>> decisions = Tables.DECISIONS.create(
                file(Tables.DECISIONS))) {
            for (final RecordingFile file : files) {
                try {
                    done.add(new Rows(file, jobs, segments, decisions).read());
                } catch (final OutputFailure e) {
                    throw e;
                } catch (final IOException | RuntimeException e) {
                    outcomes.add(unusable(file, e));
                    return file;
                }
            }
        }
        outcomes.addAll(done);
        return null;
    }

    private Path file(final Table<?> table) {
        return directory.resolve(table.name() + ".parquet");
    }

    /** The rows of one recording. */
    private static final class Rows implements RecordingRows.Sink {
        private final RecordingFile file;
        private final Source source;
        private final String robot;
        private final String version;
        private final ParquetWriter<Tables.Of<RecordingRows.Job>> jobs;
        private final ParquetWriter<Tables.Of<RecordingRows.Segment>> segments;
        private final ParquetWriter<Tables.Of<RecordingRows.Decision>> decisions;
        private long jobCount;
        private long segmentCount;
        private long decisionCount;

        Rows(final RecordingFile file, final ParquetWriter<Tables.Of<RecordingRows.Job>> jobs,
            final ParquetWriter<Tables.Of<RecordingRows.Segment>> segments,
            final ParquetWriter<Tables.Of<RecordingRows.Decision>> decisions) throws IOException {
            this.file = file;
            this.jobs = jobs;
            this.segments = segments;
            this.decisions = decisions;
            source = Source.open(Path.of(file.path()));
            final JsonNode labels = source.manifest().path("labels");
            robot = Outcome.name(file.robot() != null ? file.robot() : labels.path("robot").asText());
            version = Outcome.name(file.version() != null ? file.version() : labels.path("version").asText());
        }

        Outcome read() throws IOException {
            final RecordingRows.Summary summary = RecordingRows.read(source, this);
            final JsonNode manifest = source.manifest();
            return new Outcome(file.name(), robot, version, Outcome.OK, "", file.bytes(), summary.events(),
                summary.lostEvents(), summary.durationNs(), summary.mechanism(), summary.simulated(),
                manifest.path("created_utc").asText(), manifest.path("commit").asText(),
                manifest.path("events_sha256").asText(), jobCount, segmentCount, decisionCount);
        }

        private <T> void put(final ParquetWriter<Tables.Of<T>> to, final T row) throws OutputFailure {
            try {
                to.write(new Tables.Of<>(file.name(), robot, version, row));
            } catch (final IOException e) {
                throw new OutputFailure(e);
            }
        }

        @Override
        public void job(final RecordingRows.Job job) throws IOException {
            put(jobs, job);
            jobCount++;
        }

        @Override
        public void segment(final RecordingRows.Segment segment) throws IOException {
            put(segments, segment);
            segmentCount++;
        }

        @Override
        public void decision(final RecordingRows.Decision decision) throws IOException {
            put(decisions, decision);
            decisionCount++;
        }
    }
}
