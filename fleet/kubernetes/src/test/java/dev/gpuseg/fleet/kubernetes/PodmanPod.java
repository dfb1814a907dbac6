/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Makes of the DaemonSet a pod that {@code podman kube play} plays, for {@code tests/run}. All differences are made
 * here, and nothing else is changed: security contexts, commands, mounts and the init container stay as they are.
 */
final class PodmanPod {
    private static final ObjectMapper YAML = new ObjectMapper(new YAMLFactory());
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String COMMAND = "command";
    private static final String IMAGE = "image";
    private static final String NAME = "name";

    private final String image;
    private final Path work;
    private final List<JsonNode> volumes = new ArrayList<>();

    private PodmanPod(final String image, final Path work) {
        this.image = image;
        this.work = work;
    }

    /**
     * Prints the pod and its ConfigMap, for the virtual GPU or for the stand-in of NVIDIA's driver.
     *
     * @param arguments image; directory with one directory for each volume; {@code sim PORT CLASSES}: port of the
     *                  stand-in of the API server and its classes; or {@code standin PROGRAMS}: those of
     *                  {@code rt-scheduler/native/build}
     */
    public static void main(final String[] arguments) throws IOException {
        final PodmanPod pod = new PodmanPod(arguments[0], Path.of(arguments[1]));
        final ObjectNode spec = pod.spec();
        if ("sim".equals(arguments[2])) {
            pod.onTheVirtualGpu(spec, arguments[3], arguments[4]);
        } else {
            pod.onTheStandIn(spec, arguments[3]);
        }
        spec.putArray("volumes").addAll(pod.volumes);
        final ObjectNode object = JSON.createObjectNode().put("apiVersion", "v1").put("kind", "Pod");
        // podman 4.3 fails to remove an init container that has just ended; this type is kept. Profiles of
        // system calls are annotations there.
        final ObjectNode annotations = object.putObject("metadata").put(NAME, "gpuseg-kube-daemon")
            .putObject("annotations").put("io.podman.annotations.init.container.type", "always");
        spec.path("containers").forEach(container -> {
            if (container.at("/securityContext/seccompProfile/type").asText().equals("Unconfined")) {
                annotations.put("container.seccomp.security.alpha.kubernetes.io/" + container.path(NAME).asText(),
                    "unconfined");
            }
        });
        object.set("spec", spec);
        System.out.println(JSON.writerWithDefaultPrettyPrinter().writeValueAsString(object));
        for (final JsonNode config : documents("config.yaml")) {
            ((ObjectNode) config.path("metadata")).remove("namespace");
            if (config.at("/metadata/name").asText().equals("gpuseg-namespaces")) {
                ((ObjectNode) config.path("data")).put("namespaces.yaml",
                    Files.readString(pod.work.resolve("namespaces.yaml")));
            } else if (!"sim".equals(arguments[2])) {
                final ObjectNode data = (ObjectNode) config.path("data");
                data.put("gpuseg.yaml", data.path("gpuseg.yaml").asText() + "no-watchdog: true\n");
            }
            System.out.println("---\n" + JSON.writeValueAsString(config));
        }
    }

    private static List<JsonNode> documents(final String file) throws IOException {
        final Path path = Path.of("base", file);
        try (MappingIterator<JsonNode> all = YAML.readerFor(JsonNode.class).readValues(path.toFile())) {
            return all.readAll();
        }
    }

    /** Less what podman 4 does not know: emptyDir, the name of the node, probes, classes, limits of resources. */
    private ObjectNode spec() throws IOException {
        final ObjectNode spec = (ObjectNode) documents("daemonset.yaml").get(0).at("/spec/template/spec");
        spec.remove(List.of("serviceAccountName", "priorityClassName", "nodeSelector", "tolerations"));
        for (final String kind : List.of("containers", "initContainers")) {
            for (final JsonNode each : spec.path(kind)) {
                final ObjectNode container = (ObjectNode) each;
                container.remove(List.of("readinessProbe", "resources"));
                container.put(IMAGE, image).put("imagePullPolicy", "Never");
                for (final JsonNode variable : container.path("env")) {
                    ((ObjectNode) variable).put("value", "node1").remove("valueFrom");
                }
            }
        }
        for (final JsonNode volume : spec.path("volumes")) {
            if (volume.has("configMap")) {
                volumes.add(volume);
            } else {
                volume(volume.path(NAME).asText(), work.resolve(volume.path(NAME).asText()).toString());
            }
        }
        return spec;
    }

    private void volume(final String name, final String path) {
        final ObjectNode volume = JSON.createObjectNode().put(NAME, name);
        volume.putObject("hostPath").put("path", path);
        volumes.add(volume);
    }

    private static ObjectNode container(final ObjectNode spec, final String name) {
        for (final JsonNode container : spec.path("containers")) {
            if (container.path(NAME).asText().equals(name)) {
                return (ObjectNode) container;
            }
        }
        throw new IllegalStateException("the DaemonSet has no container " + name);
    }

    /** A container of the test's own, without a capability; the GPU outlives the daemon. */
    private void add(final ObjectNode spec, final String name, final List<String> command,
        final Map<String, String> mounts) {
        final ObjectNode container = ((ArrayNode) spec.path("containers")).insertObject(0).put(NAME, name)
            .put(IMAGE, image).put("imagePullPolicy", "Never");
        command.forEach(container.putArray(COMMAND)::add);
        container.putObject("securityContext").put("readOnlyRootFilesystem", true).putObject("capabilities")
            .putArray("drop").add("ALL");
        final ArrayNode list = container.putArray("volumeMounts");
        mounts.forEach((volume, path) -> list.addObject().put(NAME, volume).put("mountPath", path));
    }

    private void onTheVirtualGpu(final ObjectNode spec, final String port, final String classes) {
        // not --virtual-gpu: a daemon that is up before the pod's GPU would start another one. Without one it ends, and
        // is started again.
        ((ArrayNode) container(spec, "daemon").path("args")).insert(1, "sim").insert(1, "--mechanism");
        ((ArrayNode) container(spec, "agent").path("args")).add("--kubeconfig").add("/tmp/kubeconfig");
        volume("classes", classes);
        volume("pods", work.resolve("pods").toString());
        add(spec, "gpu", List.of("/usr/libexec/gpuseg/gpuseg-vgpu", "--dir", "/run/gpuseg", "--log", "/tmp/spans",
            "--operations", "/tmp/operations"), Map.of("run", "/run/gpuseg", "tmp", "/tmp"));
        add(spec, "api", List.of("/usr/lib/gpuseg/jre/bin/java", "-Xmx64m", "-cp", "/classes:/usr/share/gpuseg/agent/*",
            StandInApiServerMain.class.getName(), port, "/pods"), Map.of("classes", "/classes", "pods", "/pods",
            "tmp", "/tmp"));
    }

    /** Without the agent. The observer watches the device that stands for the driver's. */
    private void onTheStandIn(final ObjectNode spec, final String programs) {
        final ArrayNode containers = (ArrayNode) spec.path("containers");
        for (int i = containers.size() - 1; i >= 0; i--) {
            if (containers.get(i).path(NAME).asText().equals("agent")) {
                containers.remove(i);
            }
        }
        volume("programs", programs);
        final ObjectNode daemon = container(spec, "daemon");
        ((ArrayNode) daemon.path("args")).insert(1, "nvidia").insert(1, "--mechanism");
        ((ArrayNode) daemon.path("volumeMounts")).addObject().put(NAME, "programs").put("mountPath", "/programs");
        final ArrayNode environment = daemon.putArray("env");
        environment.addObject().put(NAME, "GPUSEG_RM_STANDIN").put("value", "/run/gpuseg/rm.sock");
        environment.addObject().put(NAME, "GPUSEG_JAVA_OPTS").put("value",
            "-Dgpuseg.nvidia.library=/programs/libgpuseg-rm-fake.so");
        ((ArrayNode) container(spec, "observer").path("args")).add("--device").add("nvidia:1:7:any");
        add(spec, "gpu", List.of("/programs/gpuseg-rm-standin", "/run/gpuseg/rm.sock", "0"),
            Map.of("run", "/run/gpuseg", "programs", "/programs", "tmp", "/tmp"));
    }
}
