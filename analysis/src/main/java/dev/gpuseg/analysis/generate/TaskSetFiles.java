/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLGenerator;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.io.Writer;

/** Writes task sets as files. Reading them back gives exactly the same values. */
public final class TaskSetFiles {
    /** File formats. */
    public enum Format {
        /** One set, for people. */
        YAML,
        /** One set. */
        JSON,
        /** One set per line: a batch. */
        JSONL
    }

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ObjectMapper YAML = new ObjectMapper(YAMLFactory.builder()
        .disable(YAMLGenerator.Feature.WRITE_DOC_START_MARKER).enable(YAMLGenerator.Feature.MINIMIZE_QUOTES).build());

    private TaskSetFiles() {
    }

    /**
     * Writes one set.
     *
     * @param set    the set
     * @param format file format
     * @param out    receives the text, end of line included; not closed
     * @throws IOException if it cannot be written
     */
    public static void write(final TaskSet set, final Format format, final Writer out) throws IOException {
        final String text = switch (format) {
            case YAML -> YAML.writeValueAsString(JSON.readTree(TaskSetWriter.line(set)));
            case JSON -> TaskSetWriter.json(set);
            case JSONL -> TaskSetWriter.line(set);
        };
        out.write(text);
        if (!text.endsWith("\n")) {
            out.write('\n');
        }
    }
}
