/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** From the pods of a node to the rules of its daemon. A pure function. */
final class PodRules {
    /** What the daemon reads at most is 1000 rules; a node has 110 pods, and seldom more than 250. */
    private static final int PODS_MAX = 480;
    private static final PodGrant BEST_EFFORT = new PodGrant(0, 100, null, false);

    private PodRules() {
    }

    /**
     * A wish that is not fulfilled.
     *
     * @param pod     whose
     * @param message why, in one line
     */
    record Refusal(V1Pod pod, String message) {
    }

    /**
     * What is to be written and said.
     *
     * @param entries  rules in the order in which they count
     * @param refusals pods that get less than they ask for
     */
    record Ruling(List<RulesFile.Entry> entries, List<Refusal> refusals) {
    }

    /**
     * Judges all pods of a node.
     *
     * @param pods   as the API server shows them, in any order
     * @param limits of namespaces
     * @return rules and refusals, the same for the same pods
     */
    static Ruling of(final List<V1Pod> pods, final NamespaceLimits limits) {
        final List<RulesFile.Entry> entries = new ArrayList<>();
        final List<Refusal> refusals = new ArrayList<>();
        final List<V1Pod> sorted = new ArrayList<>(pods);
        sorted.removeIf(PodRules::hasEnded);
        // those with wishes first, should there be more pods than rules
        sorted.sort(Comparator.comparing((V1Pod pod) -> !hasWishes(pod)).thenComparing(PodRules::nameOf)
            .thenComparing(pod -> String.valueOf(meta(pod).getUid())));
        for (final V1Pod pod : sorted) {
            final String namespace = String.valueOf(meta(pod).getNamespace());
            PodGrant grant = limits.usual(namespace);
            try {
                grant = limits.grant(namespace, PodWish.of(orEmpty(meta(pod).getAnnotations()),
                    orEmpty(meta(pod).getLabels())));
            } catch (final IllegalArgumentException e) {
                refusals.add(new Refusal(pod, e.getMessage() + "; until then it is best effort"));
            }
            final List<String> patterns = PodGroups.of(meta(pod).getUid(), pod.getStatus() == null ? null
                : pod.getStatus().getQosClass());
            if (entries.size() == PODS_MAX) {
                refusals.add(new Refusal(pod, "this node has more than " + PODS_MAX
                    + " pods; this one is best effort"));
            } else if (!patterns.isEmpty()) {
                entries.add(new RulesFile.Entry("pod " + nameOf(pod), patterns, grant));
            }
        }
        entries.add(new RulesFile.Entry("all other pods", PodGroups.all(), BEST_EFFORT));
        return new Ruling(entries, refusals);
    }

    private static boolean hasEnded(final V1Pod pod) {
        final String phase = pod.getStatus() == null ? null : pod.getStatus().getPhase();
        return "Succeeded".equals(phase) || "Failed".equals(phase);
    }

    private static boolean hasWishes(final V1Pod pod) {
        return orEmpty(meta(pod).getAnnotations()).keySet().stream().anyMatch(name -> name.startsWith(PodWish.PREFIX))
            || orEmpty(meta(pod).getLabels()).keySet().stream().anyMatch(name -> name.startsWith(PodWish.PREFIX));
    }

    private static V1ObjectMeta meta(final V1Pod pod) {
        return pod.getMetadata() == null ? new V1ObjectMeta() : pod.getMetadata();
    }

    private static String nameOf(final V1Pod pod) {
        return meta(pod).getNamespace() + "/" + meta(pod).getName();
    }

    private static Map<String, String> orEmpty(final Map<String, String> map) {
        return map == null ? Map.of() : map;
    }
}
