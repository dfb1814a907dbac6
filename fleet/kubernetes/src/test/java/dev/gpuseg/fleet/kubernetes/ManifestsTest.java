/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.models.V1ClusterRole;
import io.kubernetes.client.openapi.models.V1ClusterRoleBinding;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1DaemonSet;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ServiceAccount;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files of {@code base} against the model of the official client, which knows every field of every object. */
class ManifestsTest {
    private static final ObjectMapper YAML = new ObjectMapper(new YAMLFactory());

    @TempDir
    private Path directory;

    private static List<JsonNode> objects() throws IOException {
        final List<JsonNode> objects = new ArrayList<>();
        try (Stream<Path> files = Files.list(Path.of("base"))) {
            for (final Path file : files.filter(path -> !path.endsWith("kustomization.yaml")).sorted().toList()) {
                try (MappingIterator<JsonNode> documents = YAML.readerFor(JsonNode.class).readValues(file.toFile())) {
                    documents.forEachRemaining(objects::add);
                }
            }
        }
        return objects;
    }

    /** Refuses an object of which a field is lost on its way through the client's model. */
    private static void validate(final JsonNode object) throws IOException {
        final Type type = switch (object.path("kind").asText()) {
            case "DaemonSet" -> V1DaemonSet.class;
            case "ConfigMap" -> V1ConfigMap.class;
            case "Namespace" -> V1Namespace.class;
            case "ServiceAccount" -> V1ServiceAccount.class;
            case "ClusterRole" -> V1ClusterRole.class;
            case "ClusterRoleBinding" -> V1ClusterRoleBinding.class;
            default -> throw new AssertionError("an object that this test does not know: " + object.path("kind"));
        };
        contained("", object, YAML.readTree(JSON.serialize(JSON.deserialize(object.toString(), type))));
    }

    private static void contained(final String path, final JsonNode ours, final JsonNode theirs) {
        if (theirs.isMissingNode()) {
            throw new IllegalArgumentException(path + " is not known");
        }
        ours.properties().forEach(field ->
            contained(path + "/" + field.getKey(), field.getValue(), theirs.path(field.getKey())));
        for (int i = 0; ours.isArray() && i < ours.size(); i++) {
            contained(path + "/" + i, ours.get(i), theirs.path(i));
        }
    }

    private static JsonNode daemonSet() throws IOException {
        return objects().stream().filter(object -> object.path("kind").asText().equals("DaemonSet")).findFirst()
            .orElseThrow();
    }

    @Test
    void shouldHaveNoFieldThatTheClientDoesNotKnow() throws IOException {
        final List<JsonNode> objects = objects();
        assertTrue(objects.size() >= 6, objects::toString);
        for (final JsonNode object : objects) {
            validate(object);
        }
        final JsonNode wrong = daemonSet();
        ((com.fasterxml.jackson.databind.node.ObjectNode) wrong.at("/spec/template/spec")).put("hostPid", true);
        assertThrows(IllegalArgumentException.class, () -> validate(wrong), "the check can fail");
    }

    /** The reason of a privilege stands in each line that gives it, or in a comment before. */
    private static boolean hasReason(final List<String> lines, final String privilege) {
        boolean found = false;
        for (int i = 0; i < lines.size(); i++) {
            if (lines.get(i).contains(privilege)) {
                found = true;
                if (!lines.get(i).matches(".*[^#]# *[A-Za-z/].*") && !lines.get(i - 1).matches(" +# [A-Za-z].*")) {
                    return false;
                }
            }
        }
        return found;
    }

    /** What a container may, beside what every container may. */
    private static List<String> privileges(final JsonNode container) {
        final JsonNode security = container.path("securityContext");
        assertEquals("ALL", security.at("/capabilities/drop/0").asText(), container::toString);
        assertTrue(security.path("readOnlyRootFilesystem").asBoolean(), container::toString);
        assertTrue(security.path("allowPrivilegeEscalation").isBoolean()
            && !security.path("allowPrivilegeEscalation").asBoolean(), container::toString);
        assertTrue(security.path("privileged").isMissingNode(), container::toString);
        assertTrue(security.path("runAsUser").isInt(), () -> "the image's user is root: " + container);
        final List<String> found = new ArrayList<>();
        if (security.path("runAsUser").asInt() == 0) {
            found.add("runAsUser: 0");
        } else {
            assertTrue(security.path("runAsNonRoot").asBoolean(), container::toString);
        }
        if (security.has("runAsGroup")) {
            found.add("runAsGroup: " + security.path("runAsGroup").asText());
        }
        if (security.has("seccompProfile")) {
            found.add("seccompProfile: ");
        }
        security.at("/capabilities/add").forEach(capability -> found.add("- " + capability.asText() + " "));
        return found;
    }

    @Test
    void shouldGiveNoPrivilegeThatItDoesNotName() throws IOException {
        final JsonNode pod = daemonSet().at("/spec/template/spec");
        final Map<String, List<String>> byContainer = new TreeMap<>();
        for (final String kind : List.of("containers", "initContainers")) {
            pod.path(kind).forEach(each -> byContainer.put(each.path("name").asText(), privileges(each)));
        }
        assertEquals(Set.of("agent", "daemon", "first-rules", "observer"), byContainer.keySet());
        assertEquals(List.of(), byContainer.get("agent"));
        assertEquals(List.of(), byContainer.get("first-rules"));
        assertEquals(List.of("runAsUser: 0", "seccompProfile: ", "- BPF ", "- PERFMON "), byContainer.get("observer"));
        final List<String> all = new ArrayList<>();
        byContainer.values().forEach(all::addAll);
        pod.fieldNames().forEachRemaining(field -> {
            if (field.startsWith("host")) {
                all.add(field + ": ");
            }
        });
        pod.path("volumes").forEach(volume -> {
            if (volume.has("hostPath")) {
                all.add("hostPath: {path: " + volume.at("/hostPath/path").asText());
            }
        });
        assertTrue(all.containsAll(List.of("hostPID: ", "hostPath: {path: /run/gpuseg")), all::toString);
        final List<String> lines = Files.readAllLines(Path.of("base/daemonset.yaml"));
        final String page = Files.readString(Path.of("../../docs/kubernetes.md"));
        for (final String privilege : all) {
            assertTrue(hasReason(lines, privilege), privilege + " has no reason in daemonset.yaml");
            final String word = privilege.replaceAll("^- |[:{ ].*", "");
            assertTrue(page.contains(word), word + " is not in docs/kubernetes.md");
        }
        assertFalse(hasReason(lines, "readOnlyRootFilesystem"), "the check can fail");
        assertFalse(hasReason(lines, "hostNetwork"), "the check can fail");
    }

    @Test
    void shouldGiveTheAgentNoRightThatItDoesNotName() throws IOException {
        final List<String> rights = new ArrayList<>();
        for (final JsonNode object : objects()) {
            if (object.path("kind").asText().endsWith("Role")) {
                for (final JsonNode rule : object.path("rules")) {
                    rule.path("resources").forEach(resource -> rule.path("verbs").forEach(verb ->
                        rights.add(resource.asText() + " " + verb.asText())));
                }
            }
        }
        assertEquals(List.of("pods list", "pods watch", "events create"), rights);
        final List<String> lines = Files.readAllLines(Path.of("base/rbac.yaml"));
        final String page = Files.readString(Path.of("../../docs/kubernetes.md"));
        for (final String right : rights) {
            final String verb = right.split(" ")[1];
            assertTrue(hasReason(lines, "- " + verb + " "), right + " has no reason in rbac.yaml");
            assertTrue(page.contains("`" + verb + "`"), right + " is not in docs/kubernetes.md");
        }
    }

    /** What the ConfigMap says is what the agent reads. */
    @Test
    void shouldShipLimitsThatTheAgentTakes() throws IOException {
        for (final JsonNode object : objects()) {
            if (object.at("/metadata/name").asText().equals("gpuseg-namespaces")) {
                final String text = object.at("/data/namespaces.yaml").asText();
                final NamespaceLimits shipped = NamespaceLimits.read(Files.writeString(directory.resolve("a"), text));
                assertEquals(0, shipped.usual("default").priority());
                // and with the examples in comments
                NamespaceLimits.read(Files.writeString(directory.resolve("b"), text.replace("# - {", "- {")));
                return;
            }
        }
        throw new AssertionError("no ConfigMap gpuseg-namespaces");
    }
}
