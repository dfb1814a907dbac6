/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** Analyses a file of task sets, one a line, holding one line in memory at a time. Not thread-safe. */
public final class BatchRunner {
    private static final int BUFFER = 1 << 16;

    /** Turns a line into a task set. */
    @FunctionalInterface
    public interface LineReader {
        /**
         * Reads one line.
         *
         * @param line       text, not blank
         * @param file       name of the file, for refusals
         * @param lineNumber from 1
         * @return the task set
         * @throws InvalidFileException if the line is refused
         */
        TaskSet read(String line, String file, int lineNumber) throws InvalidFileException;
    }

    /** Counts of a run. */
    public static final class Summary {
        private final List<String> names = new ArrayList<>();
        private int sets;
        private final int[] accepted;

        Summary(final List<Analysis> analyses) {
            analyses.forEach(a -> names.add(a.name()));
            accepted = new int[analyses.size()];
        }

        /** Number of task sets; 0 or more. */
        public int sets() {
            return sets;
        }

        /** One line per analysis: how many sets it accepts; text with a final newline. */
        public String text() {
            final StringBuilder out = new StringBuilder();
            for (int k = 0; k < accepted.length; k++) {
                out.append(names.get(k)).append(": ").append(accepted[k]).append(" of ").append(sets)
                    .append(" schedulable\n");
            }
            return out.toString();
        }
    }

    private final LineReader reader;
    private final UnaryOperator<TaskSet> preparation;
    private final List<Analysis> analyses;
    private final boolean convert;

    /**
     * A batch.
     *
     * @param reader      how to read a line
     * @param preparation applied to each set first (partitioning, priorities)
     * @param analyses    the analyses to run
     * @param convert     true to write each prepared set instead of analysing it
     */
    public BatchRunner(final LineReader reader, final UnaryOperator<TaskSet> preparation,
        final List<Analysis> analyses, final boolean convert) {
        this.reader = reader;
        this.preparation = preparation;
        this.analyses = List.copyOf(analyses);
        this.convert = convert;
    }

    /**
     * Runs it. Blank lines are skipped.
     *
     * @param file one JSON task set a line
     * @param out  receives one result line per set, with newline
     * @return the counts
     * @throws InvalidFileException if a line is refused; the results of earlier lines have been written
     * @throws IOException          if reading or writing fails
     */
    public Summary run(final Path file, final Appendable out) throws IOException {
        final Summary summary = new Summary(analyses);
        final String name = file.toString();
        if (Files.isDirectory(file)) {
            throw new InvalidFileException(name, 0, "is a directory; name a file");
        }
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file), BUFFER)) {
            final ByteArrayOutputStream line = new ByteArrayOutputStream();
            int number = 0;
            while (readLine(in, line, name, number + 1)) {
                number++;
                final String text = decode(line.toByteArray(), name, number);
                if (!text.isBlank()) {
                    out.append(analyse(text, name, number, summary)).append('\n');
                }
            }
        } catch (final NoSuchFileException e) {
            throw new InvalidFileException(name, 0, "there is no such file; check the name");
        }
        return summary;
    }

    private String analyse(final String text, final String name, final int number, final Summary summary)
        throws InvalidFileException {
        try {
            final TaskSet set = preparation.apply(reader.read(text, name, number));
            if (convert) {
                summary.sets++;
                return TaskSetWriter.line(set);
            }
            final List<AnalysisResult> results = new ArrayList<>(analyses.size());
            PreparedSet prepared = null;
            for (int k = 0; k < analyses.size(); k++) {
                final Analysis analysis = analyses.get(k);
                if (prepared == null && analysis.needsPriorities() && set.chains().isEmpty()
                    && set.tasks().stream().allMatch(task -> task.missLimit() == null)) {
                    prepared = PreparedSet.of(set);
                }
                final AnalysisResult result = prepared == null ? analysis.analyse(set) : analysis.analyse(prepared);
                results.add(result);
                if (result.schedulable()) {
                    summary.accepted[k]++;
                }
            }
            summary.sets++;
            return ResultWriter.line(set, results);
        } catch (final InvalidModelException e) {
            throw new InvalidFileException(name, number, e.getMessage());
        }
    }

    private static boolean readLine(final InputStream in, final ByteArrayOutputStream line, final String name,
        final int number) throws IOException {
        line.reset();
        int next = in.read();
        if (next < 0) {
            return false;
        }
        while (next >= 0 && next != '\n') {
            if (line.size() == TaskSetReader.MAX_BYTES) {
                throw new InvalidFileException(name, number, "the line is longer than " + TaskSetReader.MAX_BYTES
                    + " bytes; a batch holds one task set a line");
            }
            line.write(next);
            next = in.read();
        }
        return true;
    }

    private static String decode(final byte[] bytes, final String name, final int number) throws InvalidFileException {
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (final CharacterCodingException e) {
            throw new InvalidFileException(name, number, "is not UTF-8 text; save it as UTF-8");
        }
    }
}
