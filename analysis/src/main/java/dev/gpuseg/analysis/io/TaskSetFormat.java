/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a user reads of the task-set file: its keys, as the schema describes them, and an example to start from. */
public final class TaskSetFormat {
    private static final String EXAMPLE = "/dev/gpuseg/analysis/example.yaml";
    private static final String PROPERTIES = "properties";

    /**
     * The keys of one mapping.
     *
     * @param title what the mapping is
     * @param keys  each with a description
     */
    public record Section(String title, Map<String, String> keys) {
    }

    private TaskSetFormat() {
    }

    /**
     * A commented task set in YAML that {@code gpuseg analyze} accepts.
     *
     * @return its text
     */
    public static String example() {
        return resource(EXAMPLE);
    }

    /**
     * All keys of a task set.
     *
     * @return in the order in which they are written
     */
    public static List<Section> sections() {
        final JsonNode schema;
        try {
            schema = new ObjectMapper().readTree(resource(TaskSetSchema.RESOURCE));
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
        final JsonNode segments = schema.at("/$defs/task/properties/segments/items/oneOf");
        final List<Section> sections = new ArrayList<>();
        sections.add(section("the file", schema));
        sections.add(section("platform", schema.at("/properties/platform/oneOf/1")));
        sections.add(section("a task", schema.at("/$defs/task")));
        sections.add(section("a segment", segments.path(0), segments.path(1)));
        sections.add(section("a GPU segment", segments.path(1).path(PROPERTIES).path("gpu")));
        sections.add(section("a chain", schema.at("/$defs/chain")));
        return sections;
    }

    private static Section section(final String title, final JsonNode... mappings) {
        final Map<String, String> keys = new LinkedHashMap<>();
        for (final JsonNode mapping : mappings) {
            mapping.path(PROPERTIES).properties().forEach(property -> keys.put(property.getKey(),
                property.getValue().path("description").asText()));
        }
        return new Section(title, keys);
    }

    private static String resource(final String name) {
        try (InputStream in = TaskSetFormat.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("resource " + name + " is missing; rebuild the analysis module");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
