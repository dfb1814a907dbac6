/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;
import com.networknt.schema.ValidationMessage;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Set;

/** The shipped JSON schema of a task set, for editors and as a check of what the reader accepts. Thread-safe. */
public final class TaskSetSchema {
    static final String RESOURCE = "/dev/gpuseg/analysis/task-set.schema.json";

    private final JsonSchema schema;

    /** Loads the schema. */
    public TaskSetSchema() {
        try (InputStream in = TaskSetSchema.class.getResourceAsStream(RESOURCE)) {
            if (in == null) {
                throw new IllegalStateException("resource " + RESOURCE + " is missing; rebuild the analysis module");
            }
            schema = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V202012).getSchema(in);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Validates a document.
     *
     * @param document JSON tree
     * @return null if it conforms, else the first complaint: place and rule
     */
    public String firstComplaint(final JsonNode document) {
        final Set<ValidationMessage> messages = schema.validate(document);
        return messages.isEmpty() ? null : messages.iterator().next().getMessage();
    }

    /**
     * Validates JSON text.
     *
     * @param json a JSON document
     * @return null if it conforms, else the first complaint
     * @throws IOException if the text is no JSON
     */
    public String firstComplaint(final String json) throws IOException {
        return firstComplaint(new ObjectMapper().readTree(json));
    }
}
