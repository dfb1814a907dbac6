/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.live;

import com.sun.net.httpserver.HttpExchange;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.http.LoopbackServer;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Serves the live page on a port of 127.0.0.1. Every address begins with a random word of 128 bits, so that other users
 * of the machine, who can reach the port, read nothing; the page loads nothing from anywhere else, and may not be
 * framed. It only reads. Thread-safe.
 */
public final class LiveServer implements AutoCloseable {
    /** Where the page's numbers come from. */
    @FunctionalInterface
    public interface Feed {
        /**
         * The state now.
         *
         * @param since position of the spans that the page has, -1 for all
         * @return JSON
         * @throws IllegalStateException if there is none; the page shows the message
         */
        String read(long since);
    }

    private static final int TOKEN_BYTES = 16;
    private static final Pattern SINCE = Pattern.compile("since=([0-9]{1,18})");
    private static final String POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    /** What is served, and as what. */
    private static final Map<String, String> FILES = Map.of("", "text/html; charset=utf-8", "live.css",
        "text/css; charset=utf-8", "live.js", "text/javascript; charset=utf-8");

    private final Feed feed;
    private final String token;
    private final Map<String, byte[]> files = new LinkedHashMap<>();
    private final LoopbackServer server;

    /**
     * Listens from now on.
     *
     * @param at   a port of 127.0.0.1
     * @param feed the numbers
     * @throws java.io.UncheckedIOException if it cannot listen there, in one line
     */
    public LiveServer(final Endpoint at, final Feed feed) {
        this.feed = feed;
        final byte[] random = new byte[TOKEN_BYTES];
        new SecureRandom().nextBytes(random);
        token = HexFormat.of().formatHex(random);
        FILES.keySet().forEach(name -> files.put(name, resource(name.isEmpty() ? "live.html" : name)));
        server = LoopbackServer.start(at, "gpuseg-live", this::answer);
    }

    private static byte[] resource(final String name) {
        try (InputStream in = LiveServer.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException(name + " is missing in this installation; install it again");
            }
            return in.readAllBytes();
        } catch (final IOException e) {
            throw new IllegalStateException(name + " cannot be read: " + e.getMessage() + "; install it again", e);
        }
    }

    /** The address to open in a browser. It contains the secret that permits reading. */
    public String address() {
        return "http://127.0.0.1:" + server.endpoint().port() + "/" + token + "/";
    }

    private void answer(final HttpExchange exchange) throws IOException {
        exchange.getResponseHeaders().set("Content-Security-Policy", POLICY);
        exchange.getResponseHeaders().set("Referrer-Policy", "no-referrer");
        exchange.getResponseHeaders().set("Cross-Origin-Resource-Policy", "same-origin");
        exchange.getResponseHeaders().set("Cross-Origin-Opener-Policy", "same-origin");
        final String path = exchange.getRequestURI().getRawPath();
        final int slash = path.indexOf('/', 1);
        final String given = slash < 0 ? path.substring(1) : path.substring(1, slash);
        if (!MessageDigest.isEqual(given.getBytes(StandardCharsets.ISO_8859_1),
            token.getBytes(StandardCharsets.ISO_8859_1))) {
            LoopbackServer.sendText(exchange, 403, "open the address that `gpuseg live` printed");
            return;
        }
        final String name = slash < 0 ? null : path.substring(slash + 1);
        if ("feed".equals(name)) {
            sendFeed(exchange);
        } else if (name == null || !files.containsKey(name)) {
            LoopbackServer.sendText(exchange, 404, "nothing here");
        } else {
            LoopbackServer.send(exchange, 200, FILES.get(name), files.get(name));
        }
    }

    private void sendFeed(final HttpExchange exchange) throws IOException {
        final Matcher since = SINCE.matcher(Objects.requireNonNullElse(exchange.getRequestURI().getRawQuery(), ""));
        final String json;
        try {
            json = feed.read(since.matches() ? Long.parseLong(since.group(1)) : -1);
        } catch (final IllegalStateException e) {
            LoopbackServer.sendText(exchange, 503, e.getMessage());
            return;
        }
        LoopbackServer.send(exchange, 200, "application/json", json.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() {
        server.close();
    }
}
