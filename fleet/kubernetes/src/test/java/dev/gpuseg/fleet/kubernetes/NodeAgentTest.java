/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import static dev.gpuseg.fleet.kubernetes.PodRulesTest.pod;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.models.V1Pod;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The agent with the official client, against a stand-in of the API server's protocol. */
@Timeout(180)
class NodeAgentTest {
    private static final String NEW = "  - {name: robots, priority: 90}\n";

    @TempDir
    private Path directory;
    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private StandInApiServer server;
    private NodeAgent agent;
    private Thread thread;
    private Path rules;
    private Path limits;

    @BeforeEach
    void start() throws IOException {
        rules = directory.resolve("groups.json");
        limits = limits("  - {name: robots, priority: 80}\n");
        server = new StandInApiServer();
    }

    @AfterEach
    void stop() throws InterruptedException {
        endAgent();
        server.close();
    }

    private Path limits(final String lines) throws IOException {
        return Files.writeString(directory.resolve("limits.yaml"), "version: 1\nnamespaces:\n" + lines);
    }

    private void startAgent() {
        agent = new NodeAgent(new ApiClient().setBasePath(server.url()), "node1", new RulesFile(rules), limits,
            new PrintStream(said, true, StandardCharsets.UTF_8));
        thread = new Thread(() -> {
            try {
                agent.run();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        thread.start();
    }

    private void endAgent() throws InterruptedException {
        if (agent != null) {
            agent.close();
            thread.join(20_000);
            agent = null;
        }
    }

    private void await(final String what, final BooleanSupplier condition) throws InterruptedException {
        for (int i = 0; i < 1200; i++) {
            if (condition.getAsBoolean()) {
                return;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("waited in vain: " + what + "; the agent said:\n" + said);
    }

    /** Priority that the file gives to a pod; -1 if it does not name it. */
    private int priority(final String pod) {
        try {
            final JsonNode file = new ObjectMapper().readTree(Files.readString(rules));
            for (final JsonNode rule : file.path("groups")) {
                if (rule.path("description").asText().equals("pod " + pod)) {
                    return rule.path("priority").asInt();
                }
            }
        } catch (final IOException e) {
            return -1;
        }
        return -1;
    }

    @Test
    void shouldFollowPodsThatComeChangeAndGo() throws Exception {
        server.put(pod("robots", "camera", "u1", "gpuseg/priority", "60"));
        startAgent();
        await("the pod that was there", () -> priority("robots/camera") == 60);
        assertTrue(server.selectors.get(0).contains("fieldSelector=spec.nodeName=node1"), server.selectors::toString);
        server.put(pod("robots", "brake", "u2", "gpuseg/priority", "80"));
        await("one that comes", () -> priority("robots/brake") == 80);
        server.put(pod("robots", "camera", "u1", "gpuseg/priority", "40"));
        await("another annotation", () -> priority("robots/camera") == 40);
        server.delete("u2");
        await("one that goes", () -> priority("robots/brake") == -1);
        assertEquals(40, priority("robots/camera"));
        assertTrue(server.events.isEmpty());
    }

    @Test
    void shouldRefuseWithAnEventWhatTheNamespaceMayNot() throws Exception {
        startAgent();
        final V1Pod greedy = pod("training", "job", "u1", "gpuseg/priority", "99");
        server.refuseEventsWith = 503;
        server.put(greedy);
        await("best effort", () -> priority("training/job") == 0);
        server.refuseEventsWith = 0;
        await("the event, once the server takes it", () -> server.events.size() == 1);
        assertEquals("GpusegRefused", server.events.get(0).getReason());
        assertEquals("u1", server.events.get(0).getInvolvedObject().getUid());
        assertEquals("Warning", server.events.get(0).getType());
        assertTrue(server.events.get(0).getMessage().contains("gpuseg/priority is 99; the limit of namespace training "
            + "is 0"), server.events.get(0).getMessage());
        server.put(greedy);
        server.put(pod("training", "other", "u2", "gpuseg/weight", "0"));
        await("the other one's", () -> server.events.size() == 2);
        assertEquals("u2", server.events.get(1).getInvolvedObject().getUid(), "the same is not said twice");
    }

    @Test
    void shouldSurviveRestartsOfTheServerAndOfItself() throws Exception {
        server.put(pod("robots", "camera", "u1", "gpuseg/priority", "60"));
        startAgent();
        await("the first", () -> priority("robots/camera") == 60);
        server.stop();
        final String before = Files.readString(rules);
        server.put(pod("robots", "camera", "u1", "gpuseg/priority", "61"));
        server.put(pod("robots", "brake", "u2", "gpuseg/priority", "80"));
        assertEquals(before, Files.readString(rules), "without a server nothing changes");
        server.start();
        await("what happened meanwhile", () -> priority("robots/camera") == 61 && priority("robots/brake") == 80);
        endAgent();
        server.stop();
        final String last = Files.readString(rules);
        startAgent();
        Thread.sleep(3_000);
        assertEquals(last, Files.readString(rules), "an agent that has not heard of all pods writes nothing");
        server.delete("u2");
        server.start();
        await("the pod that went while no agent ran", () -> priority("robots/brake") == -1);
        assertEquals(61, priority("robots/camera"));
    }

    @Test
    void shouldTakeOtherLimitsWhileItRuns() throws Exception {
        server.put(pod("robots", "camera", "u1", "gpuseg/priority", "85"));
        startAgent();
        await("refused", () -> server.events.size() == 1 && priority("robots/camera") == 0);
        Thread.sleep(20);   // another time of modification
        limits("  - {name: robots, priority: 900}\n");
        await("a file that is refused changes nothing", () -> said.toString(StandardCharsets.UTF_8)
            .contains("still hold"));
        assertEquals(0, priority("robots/camera"));
        Thread.sleep(20);
        limits(NEW);
        await("granted", () -> priority("robots/camera") == 85);
    }
}
