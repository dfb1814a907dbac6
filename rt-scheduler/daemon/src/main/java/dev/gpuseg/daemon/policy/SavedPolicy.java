/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.policy;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.policy.PolicyReader;
import dev.gpuseg.analysis.policy.PolicySettings;
import dev.gpuseg.ipc.platform.PrivateFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;

/**
 * What administrators changed in the running daemon, and the file in which it is kept for the next one if they ask for
 * that. The file is a policy file in JSON; what does not pass the judgement of every policy file is not believed.
 *
 * <p>Thread-safe.
 */
public final class SavedPolicy {
    private static final long BYTES_MAX = 1 << 20;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final PrivateFile file;
    private final PolicyReader reader;
    private ObjectNode changes = JsonNodeFactory.instance.objectNode();
    private ObjectNode kept = JsonNodeFactory.instance.objectNode();

    /**
     * Names the file; nothing is read.
     *
     * @param path   where it is, or will be
     * @param reader judges what is in it
     */
    public SavedPolicy(final Path path, final PolicyReader reader) {
        this.reader = reader;
        file = new PrivateFile(path, BYTES_MAX);
    }

    /**
     * Reads what was kept. {@link #accepted} says that it holds.
     *
     * @return the settings; {@link PolicySettings#NONE} if there is no file
     * @throws IllegalArgumentException if the file is not one that a daemon of this user wrote: one line of why
     */
    public synchronized PolicySettings read() {
        try {
            final byte[] content = file.read();
            if (content == null) {
                return PolicySettings.NONE;
            }
            final JsonNode root = JSON.readTree(content);
            final PolicySettings settings = reader.read(root, file.path().toString());
            kept = (ObjectNode) root;
            return settings;
        } catch (final JsonProcessingException e) {
            throw new IllegalArgumentException(file.path() + " is not JSON (" + e.getOriginalMessage() + ")", e);
        } catch (final IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /** What was read holds: later changes are added to it. Otherwise the next save replaces it. */
    public synchronized void accepted() {
        changes = kept;
    }

    /**
     * Remembers a change that was made. Settings that it does not contain keep their saved values.
     *
     * @param change in the form of a policy file, already checked
     */
    public synchronized void changed(final JsonNode change) {
        if (change.has("policy")) {
            changes.properties().removeIf(field -> !PolicyReader.isSetting(field.getKey()));
        }
        if (change.has("sharing")) {
            changes.remove("quantum");
        }
        for (final Map.Entry<String, JsonNode> field : change.properties()) {
            switch (field.getKey()) {
                case "tasks" -> join(changes.withArray("tasks"), field.getValue(), "task");
                case "groups" -> join(changes.withArray("groups"), field.getValue(), "group");
                default -> changes.set(field.getKey(), field.getValue());
            }
        }
    }

    private static void join(final ArrayNode rules, final JsonNode added, final String key) {
        for (final JsonNode rule : added) {
            ObjectNode before = null;
            for (final JsonNode candidate : rules) {
                before = candidate.path(key).equals(rule.path(key)) ? (ObjectNode) candidate : before;
            }
            if (before == null) {
                rules.add(rule.deepCopy());
            } else {
                before.setAll((ObjectNode) rule);
            }
        }
    }

    /**
     * Keeps all changes that were made, and what was kept before.
     *
     * @throws IOException if that fails, with the path; what was kept before stays
     */
    public synchronized void save() throws IOException {
        final ObjectNode root = JsonNodeFactory.instance.objectNode().put("version", 1);
        root.setAll(changes);
        try {
            file.write((root + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (final IOException | RuntimeException e) {
            throw new IOException(file.path() + " cannot be written: " + e.getMessage()
                + "; the settings hold until the daemon ends", e);
        }
    }

    /**
     * Keeps nothing any longer. The current settings stay in force.
     *
     * @return false if nothing was kept
     * @throws IOException if that fails, with the path
     */
    public synchronized boolean forget() throws IOException {
        try {
            changes = JsonNodeFactory.instance.objectNode();
            return file.delete();
        } catch (final IOException e) {
            throw new IOException(file.path() + " cannot be removed: " + e.getMessage(), e);
        }
    }

    /**
     * Whether something is kept.
     *
     * @return true if the file is there, whatever is in it
     */
    public boolean exists() {
        return file.exists();
    }

    /**
     * Where it is kept.
     *
     * @return the path
     */
    public Path path() {
        return file.path();
    }
}
