/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.CoreV1Event;
import io.kubernetes.client.openapi.models.V1EventSource;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1ObjectReference;
import java.io.PrintStream;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Says of pods, as warnings that {@code kubectl describe pod} shows, what they do not get. One thread. */
final class RefusalEvents {
    /** Reason of all events. */
    static final String REASON = "GpusegRefused";
    private static final String SOURCE = "gpuseg-agent";
    private static final int MESSAGE_MAX = 1000;

    private final CoreV1Api api;
    private final String node;
    private final PrintStream log;
    /** What was said of each pod last, by uid. */
    private final Map<String, String> said = new HashMap<>();

    RefusalEvents(final CoreV1Api api, final String node, final PrintStream log) {
        this.api = api;
        this.node = node;
        this.log = log;
    }

    /** Says what was not said yet; false if some is to be tried again later. */
    boolean say(final List<PodRules.Refusal> refusals) {
        boolean done = true;
        final Set<String> alive = new HashSet<>();
        for (final PodRules.Refusal refusal : refusals) {
            final String uid = String.valueOf(refusal.pod().getMetadata().getUid());
            alive.add(uid);
            if (!refusal.message().equals(said.get(uid))) {
                done &= say(refusal, uid);
            }
        }
        said.keySet().retainAll(alive);
        return done;
    }

    private boolean say(final PodRules.Refusal refusal, final String uid) {
        final V1ObjectMeta pod = refusal.pod().getMetadata();
        final OffsetDateTime now = OffsetDateTime.now();
        final String message = refusal.message().length() <= MESSAGE_MAX ? refusal.message()
            : refusal.message().substring(0, MESSAGE_MAX);
        final CoreV1Event event = new CoreV1Event().metadata(new V1ObjectMeta().namespace(pod.getNamespace())
                .generateName(pod.getName() + ".gpuseg-")).type("Warning").reason(REASON).message(message)
            .source(new V1EventSource().component(SOURCE).host(node)).firstTimestamp(now).lastTimestamp(now).count(1)
            .involvedObject(new V1ObjectReference().kind("Pod").apiVersion("v1").namespace(pod.getNamespace())
                .name(pod.getName()).uid(uid));
        log.println("gpuseg-agent: pod " + pod.getNamespace() + "/" + pod.getName() + ": " + message);
        try {
            api.createNamespacedEvent(pod.getNamespace(), event).execute();
            said.put(uid, refusal.message());
            return true;
        } catch (final ApiException e) {
            if (e.getCode() >= 400 && e.getCode() < 500 && e.getCode() != 429) {
                // asking again would not help: the pod or its namespace is gone, or the role lacks the right
                log.println("gpuseg-agent: the event was refused: " + e.getCode() + " " + firstLine(e));
                said.put(uid, refusal.message());
                return true;
            }
            return false;
        }
    }

    private static String firstLine(final ApiException e) {
        return String.valueOf(e.getResponseBody()).lines().findFirst().orElse("");
    }
}
