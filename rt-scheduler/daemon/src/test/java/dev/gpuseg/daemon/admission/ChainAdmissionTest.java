/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.mechanisms.Capabilities;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ChainAdmissionTest {
    private static final long MS = 1_000_000L;

    @TempDir
    private Path directory;

    private AdmissionSettings settings(final String chains) throws IOException {
        final Path file = Files.writeString(directory.resolve("set.yaml"), """
            version: 1
            id: s
            platform: {cpus: 3, epsilon: 1ms}
            mode: suspend
            tasks:
              - {name: camera, cpu: 1, period: 100ms, max_period: 100ms, priority: 70, segments: [{cpu: 2ms}]}
              - {name: detect, cpu: 2, period: 100ms, MAX priority: 60, segments: [{gpu: {host: 1ms, device: 4ms}}]}
              - {name: show, cpu: 3, period: 100ms, MAX priority: 50, segments: [{gpu: {host: 1ms, device: 4ms}}]}
            chains:
            """.replace("MAX", chains.contains("event") ? "" : "max_period: 100ms,") + chains);
        return AdmissionSettings.of(AdmissionMode.ENFORCE, AdmissionSettings.declared(file), null,
            CoreOrder.FP, 1_000 * MS);
    }

    private ProvenAdmission admission(final AdmissionSettings settings) {
        return admission(settings, FixedPriority.INSTANCE);
    }

    private ProvenAdmission admission(final AdmissionSettings settings, final Policy policy) {
        return new ProvenAdmission(settings, policy, new Capabilities(Capabilities.INTERRUPT, 300_000,
            0, 200_000, 0, 64, false, "process"), 1, directory.resolve("admitted.json"), () -> 5);
    }

    private static String open(final ProvenAdmission admission, final int client, final String name,
        final int priority) {
        return admission.refuse(new TaskOpen(1, client, name, priority, priority, 0, true, 100 * MS, 100 * MS, 0),
            new Client(client, 1000 + client, 0, 0, 7, "app", null, null, null));
    }

    @Test
    void shouldRefuseTheTaskThatCompletesAChainWhichCanMissItsLimit() throws IOException {
        final ProvenAdmission admission = admission(settings(
            "  - {name: stop, tasks: [camera, detect, show], reaction: 320ms}\n"));
        // camera 100 + 2, detect 100 + 7 (5 and two updates), show 100 + 14
        assertNull(open(admission, 1, "detect", 60));
        final String refusal = open(admission, 2, "show", 50);
        assertTrue(refusal.startsWith("task \"show\": with it chain \"stop\" can miss: reaction bound 3"), refusal);
        assertTrue(refusal.contains(", limit 320ms (gcaps-window-suspend); most comes from task \"show\""), refusal);
        assertNull(open(admission(settings("  - {name: stop, tasks: [camera, detect, show], reaction: 400ms}\n")), 2,
            "show", 50));
    }

    @Test
    void shouldSayThatNothingIsProvenForEventEdgesWhereDeadlinesDecide() throws IOException {
        final ProvenAdmission admission = admission(settings(
            "  - {name: stop, tasks: [camera, detect, show], edges: event}\n"), EarliestDeadlineFirst.INSTANCE);
        final String refusal = open(admission, 1, "detect", 60);
        assertEquals("task \"detect\": event edges have no proof for edf-fp-suspend; use fixed priorities without time "
            + "partitions, or write sampling", refusal);
    }

    @Test
    void shouldCountEventEdgesAsSoonAsBothTheirTasksAreOpen() throws IOException {
        final TaskSet file = settings("  - {name: stop, tasks: [camera, detect, show], edges: event, age: 90ms}\n")
            .declared();
        final Chains two = DeclaredChains.of(file, file.tasks().subList(0, 2));
        assertEquals(Map.of("detect", "camera"), two.eventPredecessors());
        assertEquals(List.of(0L), two.all().stream().map(chain -> chain.ageNs()).toList());
        final Chains behind = DeclaredChains.of(file, file.tasks().subList(1, 3));
        assertEquals(Map.of("detect", 100 * MS), behind.maxPeriodNs());
        assertEquals(file.chains().all(), DeclaredChains.of(file, file.tasks()).all());
        final ProvenAdmission admission = admission(settings(
            "  - {name: stop, tasks: [camera, detect, show], edges: event, age: 30ms}\n"));
        assertNull(open(admission, 1, "detect", 60));
        assertNull(open(admission, 2, "show", 50));
    }
}
