/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PodRulesTest {
    static final String UID = "0b51dc4a-6a1c-4f0c-9a25-8e2f4f9a1c01";

    @TempDir
    private Path directory;

    static V1Pod pod(final String namespace, final String name, final String uid, final String... annotations) {
        final Map<String, String> said = new java.util.HashMap<>();
        for (int i = 0; i < annotations.length; i += 2) {
            said.put(annotations[i], annotations[i + 1]);
        }
        return new V1Pod().metadata(new V1ObjectMeta().namespace(namespace).name(name).uid(uid).annotations(said))
            .status(new V1PodStatus().phase("Running").qosClass("Burstable"));
    }

    private NamespaceLimits limits(final String lines) throws IOException {
        return NamespaceLimits.read(Files.writeString(directory.resolve("limits.yaml"), "version: 1\nnamespaces:\n"
            + lines));
    }

    private static void refused(final String word, final String... annotations) {
        final V1Pod pod = pod("robots", "p", UID, annotations);
        final String said = assertThrows(IllegalArgumentException.class, () ->
            PodWish.of(pod.getMetadata().getAnnotations(), Map.of())).getMessage();
        assertTrue(said.contains(word) && !said.contains("\n") && said.length() < 250, said);
    }

    @Test
    void shouldReadWhatAPodSays() {
        final PodWish wish = PodWish.of(Map.of("gpuseg/priority", "60", "gpuseg/cap", "20ms/100ms", "other/x", "y"),
            Map.of("gpuseg/weight", "300", "gpuseg/priority", "1"));
        assertEquals(new PodWish(60, 300, new Cap(20_000_000, 100_000_000), false), wish, "an annotation counts more");
        assertEquals(new PodWish(-1, -1, null, false), PodWish.of(Map.of(), Map.of()));
        assertEquals(new Cap(5_000_000, 1_000_000_000), PodWish.of(Map.of(), Map.of("gpuseg/cap", "5ms_1s")).cap());
    }

    @Test
    void shouldRefuseWhatIsNoWishInOneLine() {
        refused("gpuseg/priority is \"100\"; use 0..99", "gpuseg/priority", "100");
        refused("use 0..99", "gpuseg/priority", "-1");
        refused("use 0..99", "gpuseg/priority", "high\u001b[31m\n" + "x".repeat(10_000));
        refused("use 1..10000", "gpuseg/weight", "0");
        refused("e.g. 20ms/100ms", "gpuseg/cap", "20/100");
        refused("e.g. 20ms/100ms", "gpuseg/cap", "200ms/100ms");
        refused("use true or false", "gpuseg/protect", "yes");
        refused("gpuseg/prioritty is not known; use gpuseg/cap, gpuseg/priority", "gpuseg/prioritty", "4");
    }

    @Test
    void shouldGiveWhatTheNamespaceMayAndNoMore() throws IOException {
        final NamespaceLimits limits = limits("  - {name: robots, priority: 80, weight: 1000, protect: true}\n"
            + "  - {name: training, cap: {quota: 60ms, period: 100ms}}\n  - {name: \"*\", weight: 50}\n");
        final PodRules.Ruling outcome = PodRules.of(List.of(
            pod("robots", "a", "a", "gpuseg/priority", "80", "gpuseg/protect", "true"),
            pod("robots", "b", "b", "gpuseg/priority", "81"),
            pod("training", "c", "c", "gpuseg/cap", "61ms/100ms"),
            pod("training", "d", "d", "gpuseg/cap", "10ms/100ms"),
            pod("training", "e", "e"),
            pod("else", "f", "f", "gpuseg/weight", "51")), limits);
        final Map<String, PodGrant> grants = new java.util.HashMap<>();
        outcome.entries().forEach(entry -> grants.put(entry.description(), entry.grant()));
        final Cap wide = new Cap(60_000_000, 100_000_000);
        assertEquals(new PodGrant(80, 100, null, true), grants.get("pod robots/a"));
        assertEquals(new PodGrant(0, 100, null, false), grants.get("pod robots/b"), "refused: best effort");
        assertEquals(new PodGrant(0, 100, wide, false), grants.get("pod training/c"), "the namespace's cap holds");
        assertEquals(new PodGrant(0, 100, new Cap(10_000_000, 100_000_000), false), grants.get("pod training/d"));
        assertEquals(new PodGrant(0, 100, wide, false), grants.get("pod training/e"));
        assertEquals(new PodGrant(0, 50, null, false), grants.get("pod else/f"));
        assertEquals(List.of("f", "b", "c"), outcome.refusals().stream().map(refusal ->
            refusal.pod().getMetadata().getName()).toList());
        assertTrue(outcome.refusals().get(1).message().contains("gpuseg/priority is 81; the limit of namespace robots "
            + "is 80"), outcome.refusals().get(1).message());
        assertEquals("all other pods", outcome.entries().get(outcome.entries().size() - 1).description());
    }

    @Test
    void shouldNotDependOnTheOrderOfThePods() throws IOException {
        final NamespaceLimits limits = limits("  - {name: a, priority: 9}\n");
        final List<V1Pod> pods = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            pods.add(pod(i % 2 == 0 ? "a" : "b", "pod" + i / 4, "uid" + i, "gpuseg/priority", Integer.toString(i)));
        }
        final PodRules.Ruling first = PodRules.of(pods, limits);
        for (int seed = 0; seed < 20; seed++) {
            Collections.shuffle(pods, new Random(seed));
            assertEquals(first.entries(), PodRules.of(pods, limits).entries());
        }
    }

    @Test
    void shouldLeaveOutPodsThatHaveEndedAndNeverWriteAPatternOfAStrangeUid() {
        final V1Pod ended = pod("a", "ended", "1");
        ended.getStatus().setPhase("Succeeded");
        final PodRules.Ruling outcome = PodRules.of(List.of(ended, pod("a", "strange", "*/../**")),
            NamespaceLimits.NONE);
        assertEquals(List.of("all other pods"), outcome.entries().stream().map(RulesFile.Entry::description).toList());
    }

    @Test
    void shouldNameTheGroupsOfBothDriversOfTheKubelet() {
        final List<String> burstable = PodGroups.of(UID, "Burstable");
        assertEquals(List.of("/**/kubepods-burstable-pod0b51dc4a_6a1c_4f0c_9a25_8e2f4f9a1c01.slice/**",
            "/**/pod" + UID + "/**"), burstable);
        assertTrue(PodGroups.of(UID, "Guaranteed").get(0).startsWith("/**/kubepods-pod0b51"));
        assertTrue(PodGroups.of(UID, null).get(0).startsWith("/**/kubepods*-pod0b51"));
    }

    @Test
    void shouldRefuseAFileOfLimitsThatSaysANamespaceTwice() {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> limits("  - {name: a}\n  - {name: a}\n"))
            .getMessage().contains("stands there twice"));
        assertFalse(assertThrows(IllegalArgumentException.class, () -> limits("  - {name: a, priority: 100}\n"))
            .getMessage().contains("\n"));
    }
}
