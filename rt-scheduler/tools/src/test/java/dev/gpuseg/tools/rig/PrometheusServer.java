/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.tools.process.Child;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A real Prometheus that scrapes twice a second and evaluates rules each second. It ends with the rig. */
public final class PrometheusServer {
    private static final Path PROGRAM = program("prometheus");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private final String address;

    private PrometheusServer(final String address) {
        this.address = address;
    }

    /** Installed, or as the launcher unpacks it for tests. */
    public static Path program(final String name) {
        final Path unpacked = Path.of(System.getProperty("gpuseg.root"), ".gpuseg", "tools", "usr", "bin", name);
        return Files.isExecutable(unpacked) ? unpacked : Path.of("/usr/bin", name);
    }

    public static void assumeInstalled(final Path program) {
        assumeTrue(Files.isExecutable(program), program + " missing (Debian package prometheus)");
    }

    /**
     * Starts one.
     *
     * @param rig     whose child it is
     * @param home    a directory of its own
     * @param rules   a file of rules
     * @param targets YAML of static_configs of job gpuseg, one line each
     * @param options further options of the program
     */
    public static PrometheusServer start(final SystemRig rig, final Path home, final Path rules,
        final List<String> targets, final String... options) throws IOException, InterruptedException {
        assumeInstalled(PROGRAM);
        Files.createDirectories(home);
        final Path config = home.resolve("prometheus.yml");
        Files.writeString(config, "global: {scrape_interval: 500ms, scrape_timeout: 450ms, evaluation_interval: 1s}\n"
            + "rule_files: ['" + rules + "']\nscrape_configs:\n  - job_name: gpuseg\n    static_configs:\n      - "
            + String.join("\n      - ", targets) + "\n");
        final int port;
        try (ServerSocket probe = new ServerSocket(0)) {
            port = probe.getLocalPort();
        }
        final List<String> command = new ArrayList<>(List.of(PROGRAM.toString(), "--config.file=" + config,
            "--storage.tsdb.path=" + home.resolve("data"), "--web.listen-address=127.0.0.1:" + port,
            "--log.level=warn"));
        command.addAll(List.of(options));
        final Child child = rig.start("prometheus-" + home.getFileName(), command);
        final PrometheusServer server = new PrometheusServer("http://127.0.0.1:" + port);
        SystemRig.await("Prometheus " + child.said(), 40_000, server::isReady);
        return server;
    }

    private boolean isReady() {
        try {
            return get(address + "/-/ready").contains("Ready");
        } catch (final IOException | AssertionError e) {
            return false;   // not yet
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** What an address answers with status 200. */
    public static String get(final String address) throws IOException, InterruptedException {
        final HttpResponse<String> response = HTTP.send(HttpRequest.newBuilder(URI.create(address)).build(),
            HttpResponse.BodyHandlers.ofString());
        assertEquals(200, response.statusCode(), address + ": " + response.body());
        return response.body();
    }

    /** The loaded rules of the first group. */
    public JsonNode rules() throws IOException, InterruptedException {
        return JSON.readTree(get(address + "/api/v1/rules")).path("data").path("groups").path(0).path("rules");
    }

    /** All series of an answer. */
    public JsonNode results(final String query) throws IOException, InterruptedException {
        final JsonNode answer = JSON.readTree(get(address + "/api/v1/query?query="
            + URLEncoder.encode(query, StandardCharsets.UTF_8)));
        assertEquals("success", answer.path("status").asText(), query + ": " + answer);
        return answer.path("data").path("result");
    }

    /** Whether a query is answered by a number now. */
    public boolean answers(final String query) throws IOException, InterruptedException {
        for (final JsonNode result : results(query)) {
            if (!"NaN".equals(result.path("value").path(1).asText())) {
                return true;
            }
        }
        return false;
    }

    private double value(final String query) throws IOException, InterruptedException {
        final String text = results(query).path(0).path("value").path(1).asText();
        return text.isEmpty() ? Double.NaN : Double.parseDouble(text);
    }

    /** The first answer that is a number: while a scrape failed there is none. */
    public double awaitNumber(final String query) throws IOException, InterruptedException {
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        double seen = value(query);
        while (Double.isNaN(seen) && System.nanoTime() - limitNs < 0) {
            TimeUnit.MILLISECONDS.sleep(250);
            seen = value(query);
        }
        return seen;
    }

    /** Waits until the answer is this number. */
    public void awaitValue(final String query, final double expected) throws IOException, InterruptedException {
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        double seen = value(query);
        while (seen != expected && System.nanoTime() - limitNs < 0) {
            TimeUnit.MILLISECONDS.sleep(250);
            seen = value(query);
        }
        assertEquals(expected, seen, query);
    }

    /** Waits until each query has an answer; those without one are returned. */
    public List<String> unanswered(final List<String> queries) throws IOException, InterruptedException {
        final List<String> open = new ArrayList<>(queries);
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (!open.isEmpty() && System.nanoTime() - limitNs < 0) {
            TimeUnit.MILLISECONDS.sleep(500);
            for (final String query : List.copyOf(open)) {
                if (answers(query)) {
                    open.remove(query);
                }
            }
        }
        return open;
    }
}
