/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.live;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.tools.cli.Gpuseg;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.Browser;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** The live page: with a real daemon, real tasks and a real browser, and against who may not read it. */
@Timeout(600)
@Tag("long")
@Tag("beside")
class LiveCommandTest {
    private static final String MARKUP = "<img src=x onerror=alert(1)>";

    @RegisterExtension
    private final SystemRig rig = new SystemRig();
    @TempDir
    private Path directory;

    private static HttpResponse<String> get(final String address, final String... headers) throws IOException,
        InterruptedException {
        final HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(address));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    @Test
    void shouldAnswerNobodyWithoutTheWordAndLoadNothingFromElsewhere() throws IOException, InterruptedException {
        try (LiveServer server = new LiveServer(Endpoint.anyPort(), since -> "{\"since\":" + since + "}")) {
            final String address = server.address();
            final String origin = address.substring(0, address.indexOf('/', 8));
            assertTrue(address.matches("http://127\\.0\\.0\\.1:[0-9]+/[0-9a-f]{32}/"), address);
            for (final String path : List.of("/", "/feed", "/live.js", "/" + "0".repeat(32) + "/feed",
                "/" + "0".repeat(32) + "/")) {
                final HttpResponse<String> refused = get(origin + path);
                assertEquals(403, refused.statusCode(), path);
                assertFalse(refused.body().contains("since"), "no data in " + refused.body());
            }
            assertEquals("{\"since\":-1}", get(address + "feed").body());
            assertEquals("{\"since\":17}", get(address + "feed?since=17").body());
            assertEquals("{\"since\":-1}", get(address + "feed?since=../../x").body());
            assertEquals(404, get(address + "..%2f..%2fetc%2fpasswd").statusCode());
            assertEquals(404, get(address + "LiveServer.class").statusCode());
            final HttpResponse<String> page = get(address);
            final String policy = page.headers().firstValue("Content-Security-Policy").orElse("");
            assertTrue(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), policy);
            assertFalse(policy.contains("unsafe"), policy);
            assertEquals("no-referrer", page.headers().firstValue("Referrer-Policy").orElse(""));
            for (final String file : List.of("", "live.css", "live.js")) {
                final String text = get(address + file).body();
                assertFalse(text.contains("innerHTML") || text.contains("insertAdjacentHTML") || text.contains("eval("),
                    "a task's name is text, never markup");
                assertFalse(text.contains("http://") || text.contains("https://"), file + " names another host");
            }
        }
    }

    @Test
    void shouldShowWhoHeldTheGpuWhoWasPreemptedAndWhichDeadlineWasMissed() throws IOException,
        InterruptedException {
        assumeTrue(Browser.isInstalled(), "no Chromium: /usr/bin/chromium missing (Debian package chromium)");
        rig.gpu();
        rig.daemon();
        final Child live = rig.start("live", JavaCommand.of(Gpuseg.class,
            List.of("live", "--dir", rig.directory().root().toString())));
        live.await("Ctrl-C", 40);
        final String address = live.lastLine().split(" ")[1];
        rig.task("camera", 70, "40ms", "gpu:1ms+3ms", "240s");
        rig.task("lidar", 50, "50ms", "gpu:1ms+7ms", "240s");
        rig.task("hasty", 20, "60ms", "gpu:1ms+40ms", "240s");
        rig.start("markup", TaskClient.command(rig, TaskClient.open(MARKUP, 10, 100, 100, 0),
            "segments:" + MARKUP + ":50:1000", "pause"));
        rig.task("mapping", 0, "100ms", "gpu:1ms+20ms", "240s");
        final Path shots = Files.createDirectories(Path.of("target", "live"));
        try (Browser browser = new Browser(directory.resolve("profile"), 1440, 1250)) {
            browser.prefer("light");
            browser.open(address);
            browser.await("document.querySelectorAll('#tasks tbody tr').length === 5", 30);
            browser.await("document.querySelectorAll('.histogram').length >= 3", 30);
            browser.await("document.querySelectorAll('#misses tbody tr').length >= 3", 30);
            assertFalse(browser.eval("document.getElementById('simulated').hidden").asBoolean(),
                "simulated results are labelled");
            assertEquals("live", browser.eval("document.getElementById('status').textContent").asText());
            assertEquals("[\"GPU 0\",\"camera\",\"lidar\",\"hasty\",\"" + MARKUP + "\",\"mapping\"]",
                browser.eval("JSON.stringify("
                + "[...document.querySelectorAll('#labels span')].map(e => e.textContent))").asText());
            browser.await("document.getElementById('misses').innerText.includes('hasty')", 20);
            browser.await("document.getElementById('misses').innerText.includes('preempted by')", 20);
            Thread.sleep(6_000);   // a full window for the pictures
            shouldShowNothingOfBestEffortInRed(browser);
            browser.screenshot(shots.resolve("light.png"));
            browser.prefer("dark");
            browser.await("document.documentElement.classList.contains('dark')", 20);
            shouldAgreeWithTheDaemon(browser);
            assertEquals(0, browser.eval("document.querySelectorAll('img').length").asInt(), "a name is no markup");
            shouldPauseAndZoom(browser);
            browser.screenshot(shots.resolve("dark-paused.png"));
            browser.eval("document.getElementById('pause').click()");
            assertEquals(List.of(), browser.errors());
            shouldSayWhenTheDaemonIsGone(browser);
        }
    }

    /** Its period is 100 ms, and it has what three others leave of the GPU. */
    private static void shouldShowNothingOfBestEffortInRed(final Browser browser) throws IOException,
        InterruptedException {
        final String row = "document.querySelector('#tasks tr[data-task=\"%s\"]')";
        browser.await(row.formatted("mapping") + ".cells[2].textContent === 'BE'", 20);
        assertEquals("\u2013", browser.eval(row.formatted("mapping") + ".cells[9].textContent").asText());
        assertEquals(0, browser.eval(row.formatted("mapping") + ".querySelectorAll('.bad').length").asInt());
        assertTrue(browser.eval(row.formatted("hasty") + ".querySelectorAll('.bad').length").asInt() > 0);
    }

    private void shouldAgreeWithTheDaemon(final Browser browser) throws IOException, InterruptedException {
        final JsonNode shown = new ObjectMapper().readTree(browser.eval("JSON.stringify([...document.querySelectorAll("
            + "'#tasks tbody tr')].map(r => ({name: r.cells[0].innerText.trim(), preempted: +r.cells[13].innerText,"
            + " priority: r.cells[2].innerText})))").asText());
        for (final JsonNode task : rig.status().path("tasks")) {
            boolean found = false;
            for (final JsonNode row : shown) {
                if (row.path("name").asText().equals(task.path("name").asText())) {
                    found = true;
                    final long daemon = task.path("preemptions").asLong();
                    final long page = row.path("preempted").asLong();
                    assertTrue(page <= daemon && page >= daemon - 200, row + " against " + daemon);
                    assertEquals(task.path("priority").asInt() == 0 ? "BE" : task.path("priority").asText(),
                        row.path("priority").asText());
                }
            }
            assertTrue(found, task.path("name").asText() + " is not shown");
        }
    }

    private static void shouldPauseAndZoom(final Browser browser) throws IOException, InterruptedException {
        browser.eval("document.getElementById('pause').click()");
        assertEquals("paused", browser.eval("document.getElementById('status').textContent").asText());
        for (int i = 0; i < 4; i++) {
            browser.eval("document.getElementById('in').click()");
        }
        browser.await("document.getElementById('window').textContent === '200 ms'", 20);
        final String hash = "(() => { const c = document.getElementById('timeline'); return c.toDataURL(); })()";
        boolean still = false;
        for (int pair = 0; pair < 10 && !still; pair++) {   // what was asked for before may still be drawn
            Thread.sleep(300);
            final String before = browser.eval(hash).asText();
            Thread.sleep(1_000);
            still = before.equals(browser.eval(hash).asText());
        }
        assertTrue(still, "a paused picture stands still");
        assertTrue(browser.eval("(() => { const c = document.getElementById('timeline'), d = c.getContext('2d')"
            + ".getImageData(0, 0, c.width, c.height).data, seen = new Set(); for (let i = 0; i < d.length; i += 4)"
            + " { seen.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); } return seen.size; })()").asInt() > 5,
            "the timeline is not empty");
    }

    @Test
    void shouldEndAfterAKilledDaemon() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final List<String> command = JavaCommand.of(Gpuseg.class,
            List.of("live", "--dir", rig.directory().root().toString()));
        command.add(1, "-Dgpuseg.live.linger=3");
        final Child live = rig.start("live", command);
        live.await("Ctrl-C", 60);
        Thread.sleep(5_000);
        assertTrue(live.isAlive(), () -> "while a daemon answers it goes on: " + live.said());
        SystemRig.signal(daemon, "KILL");
        assertEquals(ExitCode.NO, live.awaitExit(90), live::said);
        assertTrue(Files.exists(rig.directory().socket()), "a killed daemon leaves its socket");
        assertTrue(live.said().contains("no daemon has answered in " + rig.directory().root() + " for 3 s; live ends"),
            live::said);
    }

    private void shouldSayWhenTheDaemonIsGone(final Browser browser) throws IOException, InterruptedException {
        AdminClient.ask(rig.directory(), AdminClient.command("stop"));
        browser.await("document.getElementById('status').textContent === 'no answer from the daemon'", 20);
    }
}
