/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.ResultFile;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;

/** The formats of {@code gpuseg trace export}, one row each: a new one is a class and a row here. */
public enum Export {
    /** A timeline in one file. */
    HTML(".html", "a timeline in one file for any browser", false,
        (source, trace, to) -> inUtf8(to, text -> HtmlTimeline.write(trace, source.manifest(), text))),
    /** Perfetto's protobuf. */
    PERFETTO(".pftrace", "for ui.perfetto.dev and trace_processor", true,
        (source, trace, to) -> PerfettoExport.write(trace, to)),
    /** A table of segments. */
    CSV(".csv", "one line per segment", false,
        (source, trace, to) -> inUtf8(to, text -> CsvExport.write(trace, text)));

    /** Writes a trace in one format. The stream stays open. */
    private interface Format {
        void write(Source source, Trace trace, OutputStream to) throws IOException;
    }

    private interface TextFormat {
        void write(Writer to) throws IOException;
    }

    private final String ending;
    private final String summary;
    private final boolean showsKernels;
    private final Format format;

    Export(final String ending, final String summary, final boolean showsKernels, final Format format) {
        this.ending = ending;
        this.summary = summary;
        this.showsKernels = showsKernels;
        this.format = format;
    }

    private static void inUtf8(final OutputStream to, final TextFormat format) throws IOException {
        final Writer text = new BufferedWriter(new OutputStreamWriter(to, StandardCharsets.UTF_8));
        format.write(text);
        text.flush();
    }

    /**
     * The format of a file.
     *
     * @param file whose name ends with its format
     * @return the format
     * @throws IllegalArgumentException if there is none with that ending
     */
    public static Export ofFile(final Path file) {
        return Arrays.stream(values()).filter(e -> file.toString().endsWith(e.ending)).findAny()
            .orElseThrow(() -> new IllegalArgumentException("--out is " + file + "; name a file that ends in "
                + String.join(", ", Arrays.stream(values()).map(Export::ending).toList())));
    }

    /** What a file of this format ends with, with its dot. */
    public String ending() {
        return ending;
    }

    /** What the file is good for. */
    public String summary() {
        return summary;
    }

    /**
     * Writes a source.
     *
     * @param source  recording or journal
     * @param to      file, replaced if it exists
     * @param kernels what another tool saw on the GPU, placed on the recording's clock; null if nothing
     * @throws IOException              if one cannot be read or the other written
     * @throws IllegalArgumentException if there are kernels, and this format has no place for them
     */
    public void write(final Source source, final Path to, final Kernels kernels) throws IOException {
        if (kernels != null && !showsKernels) {
            throw new IllegalArgumentException("--kernels with --out " + to + "; name a file that ends in "
                + String.join(", ", Arrays.stream(values()).filter(e -> e.showsKernels).map(Export::ending).toList()));
        }
        final Trace trace = TraceBuilder.read(source);
        trace.kernels = kernels;
        ResultFile.write(to, out -> format.write(source, trace, out));
    }
}
