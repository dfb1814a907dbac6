/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Collectors;

/** The formats of {@code gpuseg trace export}. */
public enum Export {
    /** A timeline in one file. */
    HTML("html", ".html", "open it in a browser") {
        @Override
        void writeText(final Source source, final Trace trace, final Writer to) throws IOException {
            HtmlTimeline.write(trace, source.manifest(), to);
        }
    },
    /** Perfetto's protobuf. */
    PERFETTO("perfetto", ".pftrace", "open it in Perfetto") {
        @Override
        public void write(final Source source, final Path to) throws IOException {
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(to))) {
                PerfettoExport.write(TraceBuilder.read(source), out);
            }
        }

        @Override
        public void write(final Source source, final Path to, final Kernels kernels) throws IOException {
            try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(to))) {
                PerfettoExport.write(with(source, kernels), out);
            }
        }
    },
    /** Trace Event JSON. */
    CHROME("chrome", ".json", "open it in chrome://tracing or Perfetto") {
        @Override
        void writeText(final Source source, final Trace trace, final Writer to) throws IOException {
            ChromeExport.write(trace, to);
        }

        @Override
        public void write(final Source source, final Path to, final Kernels kernels) throws IOException {
            try (Writer out = Files.newBufferedWriter(to)) {
                ChromeExport.write(with(source, kernels), out);
            }
        }
    },
    /** A table of segments. */
    CSV("csv", ".csv", "one line per segment") {
        @Override
        void writeText(final Source source, final Trace trace, final Writer to) throws IOException {
            TextExport.csv(trace, to);
        }
    },
    /** As babeltrace2 prints. */
    CTF_TEXT("ctf-text", ".txt", "one line per event") {
        @Override
        void writeText(final Source source, final Trace trace, final Writer to) throws IOException {
            TextExport.ctf(source, trace, to);
        }
    };

    private final String word;
    private final String ending;
    private final String advice;

    Export(final String word, final String ending, final String advice) {
        this.word = word;
        this.ending = ending;
        this.advice = advice;
    }

    /**
     * The format of a name.
     *
     * @param name as on the command line
     * @return the format
     * @throws IllegalArgumentException if there is none of that name
     */
    public static Export named(final String name) {
        for (final Export format : values()) {
            if (format.word.equals(name)) {
                return format;
            }
        }
        throw new IllegalArgumentException("--format is " + name + "; use one of "
            + Arrays.stream(values()).map(f -> f.word).collect(Collectors.joining(", ")));
    }

    /**
     * What a file of this format ends with.
     *
     * @return with its dot
     */
    public String ending() {
        return ending;
    }

    /**
     * What to do with the file.
     *
     * @return a few words
     */
    public String advice() {
        return advice;
    }

    /**
     * Writes a source.
     *
     * @param source recording or journal
     * @param to     file, replaced if it exists
     * @throws IOException if one cannot be read or the other written
     */
    public void write(final Source source, final Path to) throws IOException {
        try (Writer out = Files.newBufferedWriter(to)) {
            writeText(source, TraceBuilder.read(source), out);
        }
    }

    /**
     * Writes a source, with what another tool saw on the GPU beside it.
     *
     * @param source  recording or journal
     * @param to      file, replaced if it exists
     * @param kernels placed on the recording's clock
     * @throws IOException              if one cannot be read or the other written
     * @throws IllegalArgumentException if this format has no place for them
     */
    public void write(final Source source, final Path to, final Kernels kernels) throws IOException {
        throw new IllegalArgumentException("--kernels with --format " + word + "; use perfetto or chrome");
    }

    private static Trace with(final Source source, final Kernels kernels) throws IOException {
        final Trace trace = TraceBuilder.read(source);
        trace.kernels = kernels;
        return trace;
    }

    void writeText(final Source source, final Trace trace, final Writer to) throws IOException {
        throw new UnsupportedOperationException(word + " is not a text format");
    }
}
