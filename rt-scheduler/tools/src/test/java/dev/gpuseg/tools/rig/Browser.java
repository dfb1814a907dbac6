/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

/** A headless Chromium, driven through its DevTools protocol. Errors of the page's script are collected. */
public final class Browser implements AutoCloseable {
    private static final Path PROGRAM = Path.of("/usr/bin/chromium");
    private static final int START_LIMIT_S = 60;
    private static final int ANSWER_LIMIT_S = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Process process;
    private final WebSocket socket;
    private final BlockingQueue<String> incoming = new ArrayBlockingQueue<>(10_000);
    private final List<String> errors = new ArrayList<>();
    private int nextId = 1;

    public static boolean isInstalled() {
        return Files.isExecutable(PROGRAM);
    }

    public Browser(final Path profile, final int width, final int height) throws IOException, InterruptedException {
        process = new ProcessBuilder(PROGRAM.toString(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--user-data-dir=" + profile, "--remote-debugging-port=0",
            "--window-size=" + width + "," + height, "about:blank").redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            final Path portFile = profile.resolve("DevToolsActivePort");
            final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_LIMIT_S);
            while (!Files.exists(portFile) || Files.readAllLines(portFile).isEmpty()) {
                if (System.nanoTime() - limitNs > 0 || !process.isAlive()) {
                    throw new IOException("Chromium does not start");
                }
                TimeUnit.MILLISECONDS.sleep(50);
            }
            final String base = "http://127.0.0.1:" + Files.readAllLines(portFile).get(0);
            final HttpClient client = HttpClient.newHttpClient();
            final JsonNode pages = JSON.readTree(client.send(HttpRequest.newBuilder(URI.create(base + "/json/list"))
                .build(), HttpResponse.BodyHandlers.ofString()).body());
            String address = "";
            for (final JsonNode page : pages) {
                if ("page".equals(page.path("type").asText())) {
                    address = page.path("webSocketDebuggerUrl").asText();
                }
            }
            socket = client.newWebSocketBuilder().connectTimeout(Duration.ofSeconds(ANSWER_LIMIT_S))
                .buildAsync(URI.create(address), new Listener()).join();
        } catch (final IOException | RuntimeException e) {
            process.destroyForcibly();
            throw e;
        }
        call("Runtime.enable", JSON.createObjectNode());
        call("Log.enable", JSON.createObjectNode());
        call("Page.enable", JSON.createObjectNode());
    }

    private final class Listener implements WebSocket.Listener {
        private final StringBuilder text = new StringBuilder();

        @Override
        public CompletionStage<?> onText(final WebSocket from, final CharSequence data, final boolean last) {
            text.append(data);
            if (last) {
                incoming.add(text.toString());
                text.setLength(0);
            }
            from.request(1);
            return null;
        }
    }

    JsonNode call(final String method, final ObjectNode parameters) throws IOException, InterruptedException {
        final int id = nextId++;
        final ObjectNode request = JSON.createObjectNode().put("id", id).put("method", method);
        request.set("params", parameters);
        socket.sendText(request.toString(), true).join();
        while (true) {
            final String text = incoming.poll(ANSWER_LIMIT_S, TimeUnit.SECONDS);
            if (text == null) {
                throw new IOException("Chromium does not answer " + method);
            }
            final JsonNode message = JSON.readTree(text);
            note(message);
            if (message.path("id").asInt() == id) {
                if (message.has("error")) {
                    throw new IOException(method + ": " + message.path("error"));
                }
                return message.path("result");
            }
        }
    }

    private void note(final JsonNode message) {
        final String method = message.path("method").asText();
        final JsonNode parameters = message.path("params");
        if ("Runtime.exceptionThrown".equals(method)) {
            errors.add(parameters.path("exceptionDetails").path("exception").path("description").asText());
        } else if ("Log.entryAdded".equals(method) && "error".equals(parameters.path("entry").path("level").asText())) {
            errors.add(parameters.path("entry").path("text").asText());
        }
    }

    /** Uncaught exceptions and refused loads so far. */
    public List<String> errors() {
        return errors;
    }

    public void open(final String address) throws IOException, InterruptedException {
        call("Page.navigate", JSON.createObjectNode().put("url", address));
    }

    /** The value of an expression in the page. */
    public JsonNode eval(final String expression) throws IOException, InterruptedException {
        final JsonNode result = call("Runtime.evaluate", JSON.createObjectNode().put("expression", expression)
            .put("returnByValue", true).put("awaitPromise", true));
        if (result.has("exceptionDetails")) {
            throw new IOException(expression + ": " + result.path("exceptionDetails"));
        }
        return result.path("result").path("value");
    }

    public void await(final String expression, final int limitSeconds) throws IOException, InterruptedException {
        final long limitNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(limitSeconds);
        while (!eval(expression).asBoolean()) {
            if (System.nanoTime() - limitNs > 0) {
                throw new AssertionError("not within " + limitSeconds + " s: " + expression + "; the page says: "
                    + eval("document.body.innerText").asText() + " errors: " + errors);
            }
            TimeUnit.MILLISECONDS.sleep(100);
        }
    }

    public void screenshot(final Path to) throws IOException, InterruptedException {
        final JsonNode shot = call("Page.captureScreenshot", JSON.createObjectNode().put("format", "png"));
        Files.write(to, Base64.getDecoder().decode(shot.path("data").asText()));
    }

    /** What prefers-color-scheme says: light or dark. */
    public void prefer(final String scheme) throws IOException, InterruptedException {
        final ObjectNode parameters = JSON.createObjectNode();
        parameters.putArray("features").addObject().put("name", "prefers-color-scheme").put("value", scheme);
        call("Emulation.setEmulatedMedia", parameters);
    }

    @Override
    public void close() {
        socket.abort();
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        try {
            process.waitFor(ANSWER_LIMIT_S, TimeUnit.SECONDS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
