/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodStatus;
import io.kubernetes.client.util.Yaml;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * The stand-in as a program, for {@code tests/run}: its pods are the files {@code *.yaml} of a directory, one pod each,
 * and follow them. One that is killed and started again has forgotten what happened before, as after a compaction.
 */
final class StandInApiServerMain {
    /** Annotation of the pods: what the API server would choose. */
    static final String UID = "uid";
    private static final long LOOK_MS = 100;

    private final StandInApiServer server;
    private final Path directory;
    private final Map<Path, String> seen = new HashMap<>();
    private final Map<Path, String> uids = new HashMap<>();
    private int said;

    private StandInApiServerMain(final StandInApiServer server, final Path directory) {
        this.server = server;
        this.directory = directory;
    }

    /**
     * Serves until it is killed.
     *
     * @param arguments port on loopback, directory of the pods
     */
    public static void main(final String[] arguments) throws IOException, InterruptedException {
        final StandInApiServer server = new StandInApiServer(Integer.parseInt(arguments[0]),
            System.currentTimeMillis());
        final StandInApiServerMain program = new StandInApiServerMain(server, Path.of(arguments[1]));
        program.look();   // before the first answer
        server.start();
        while (true) {
            program.look();
            Thread.sleep(LOOK_MS);
        }
    }

    private void look() throws IOException {
        final Map<Path, String> now = new HashMap<>();
        try (Stream<Path> files = Files.list(directory)) {
            for (final Path file : files.filter(path -> path.toString().endsWith(".yaml")).toList()) {
                now.put(file, Files.readString(file));
            }
        }
        for (final Map.Entry<Path, String> file : now.entrySet()) {
            if (!file.getValue().equals(seen.get(file.getKey()))) {
                final V1Pod pod = Yaml.loadAs(file.getValue(), V1Pod.class);
                final String uid = pod.getMetadata().getAnnotations().get(UID);
                pod.getMetadata().setUid(uid);
                pod.setStatus(new V1PodStatus().qosClass("BestEffort").phase("Running"));
                uids.put(file.getKey(), uid);
                server.put(pod);
            }
        }
        for (final Path file : seen.keySet()) {
            if (!now.containsKey(file)) {
                server.delete(uids.get(file));
            }
        }
        seen.clear();
        seen.putAll(now);
        for (; said < server.events.size(); said++) {
            System.out.println("event " + server.events.get(said).getReason() + " "
                + server.events.get(said).getInvolvedObject().getNamespace() + "/"
                + server.events.get(said).getInvolvedObject().getName() + " " + server.events.get(said).getMessage());
        }
    }
}
