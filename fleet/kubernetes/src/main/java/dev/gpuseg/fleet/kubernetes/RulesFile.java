/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Durations;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;

/** The file of rules that the daemon reads ({@code gpuseg run --cgroup-rules}); replaced as a whole. One thread. */
final class RulesFile {
    private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

    private final Path path;
    private String written;

    /**
     * What a rule of the file is for.
     *
     * @param description for people: namespace and name of the pod
     * @param patterns    of its groups
     * @param grant       what it has
     */
    record Entry(String description, List<String> patterns, PodGrant grant) {
    }

    RulesFile(final Path path) {
        this.path = path;
    }

    /**
     * Writes the rules, unless the file says the same already.
     *
     * @param entries in the order in which they count
     * @return true if it was written
     * @throws IOException if that is not possible; the file is as it was
     */
    boolean write(final List<Entry> entries) throws IOException {
        final ObjectNode root = JSON.createObjectNode().put("version", 1)
            .put("description", "written by gpuseg fleet agent; changes are lost");
        final ArrayNode groups = root.putArray("groups");
        for (final Entry entry : entries) {
            for (final String pattern : entry.patterns()) {
                final ObjectNode rule = groups.addObject().put("path", pattern)
                    .put("description", entry.description()).put("priority", entry.grant().priority())
                    .put("weight", entry.grant().weight());
                if (entry.grant().protect()) {
                    rule.put("protect", true);
                }
                if (entry.grant().cap() != null) {
                    rule.putObject("cap").put("quota", Durations.format(entry.grant().cap().quotaNs()))
                        .put("period", Durations.format(entry.grant().cap().periodNs()));
                }
            }
        }
        final String text = JSON.writeValueAsString(root) + "\n";
        if (text.equals(written) && Files.exists(path)) {
            return false;
        }
        final Path fresh = path.resolveSibling("." + path.getFileName() + ".new");
        Files.writeString(fresh, text);
        Files.move(fresh, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        written = text;
        return true;
    }
}
