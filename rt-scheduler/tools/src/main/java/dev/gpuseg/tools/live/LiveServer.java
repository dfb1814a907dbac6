/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.live;

import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.daemon.http.LocalServer;
import dev.gpuseg.daemon.http.Request;
import dev.gpuseg.daemon.http.Response;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

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
    private static final String POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    /** What is served, and as what. */
    private static final Map<String, String> FILES = Map.of("", "text/html; charset=utf-8", "live.css",
        "text/css; charset=utf-8", "live.js", "text/javascript; charset=utf-8");

    private final Feed feed;
    private final String token;
    private final Map<String, byte[]> files = new LinkedHashMap<>();
    private final LocalServer server;

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
        server = LocalServer.start(at, "gpuseg-live", this::answer);
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

    /**
     * What to open in a browser. Whoever knows it may read.
     *
     * @return an http address
     */
    public String address() {
        return "http://127.0.0.1:" + server.endpoint().port() + "/" + token + "/";
    }

    private Response answer(final Request request) {
        final String path = request.path();
        final int slash = path.indexOf('/', 1);
        final String given = slash < 0 ? path.substring(1) : path.substring(1, slash);
        if (!MessageDigest.isEqual(given.getBytes(StandardCharsets.ISO_8859_1),
            token.getBytes(StandardCharsets.ISO_8859_1))) {
            return guarded(Response.text(403, "open the address that `gpuseg live` printed"));
        }
        final String name = slash < 0 ? null : path.substring(slash + 1);
        if ("POST".equals(request.method())) {
            return guarded(Response.text(405, "this page only reads"));
        }
        if ("feed".equals(name)) {
            return guarded(feed(request));
        }
        if (name == null || !files.containsKey(name)) {
            return guarded(Response.text(404, "nothing here"));
        }
        return guarded(Response.of(200, FILES.get(name), files.get(name)));
    }

    private Response feed(final Request request) {
        final String since = request.parameter("since");
        try {
            return Response.of(200, "application/json",
                feed.read(since.matches("[0-9]{1,18}") ? Long.parseLong(since) : -1)
                    .getBytes(StandardCharsets.UTF_8));
        } catch (final IllegalStateException e) {
            return Response.text(503, e.getMessage());
        }
    }

    private static Response guarded(final Response response) {
        response.headers().put("Content-Security-Policy", POLICY);
        response.headers().put("Referrer-Policy", "no-referrer");
        response.headers().put("Cross-Origin-Resource-Policy", "same-origin");
        response.headers().put("Cross-Origin-Opener-Policy", "same-origin");
        return response;
    }

    @Override
    public void close() {
        server.close();
    }
}
