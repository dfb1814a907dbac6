/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The JDK's HTTP server on a port of 127.0.0.1, for reading only, with limits against slow and hostile clients: 16
 * threads and 64 connections, of which further ones are closed at once; 5 s for a request, 5 s for a response and 5 s
 * of silence; 8 KiB of headers; one request per connection, GET or HEAD.
 *
 * <p>Any local user can connect, and so can a web page in a local browser. The Host header must name this server, so
 * that a page of another site whose name was made to point here (DNS rebinding) reads nothing; Origin and
 * Sec-Fetch-Site must not name another site; no CORS header is ever sent. Thread-safe.
 */
public final class LoopbackServer implements AutoCloseable {
    private static final int THREADS_MAX = 16;
    private static final int BACKLOG = 16;
    private static final long THREAD_KEPT_S = 10;
    private static final long CLOSE_LIMIT_MS = 2_000;
    private static final byte[] LOOPBACK = {127, 0, 0, 1};

    static {
        // The JDK reads these once, when its server is first used, and documents them in the module jdk.httpserver.
        // Early updates of 17 ignore the limits of connections and of headers' size; 17.0.15 and 25 know all of them.
        limit("jdk.httpserver.maxConnections", 64);
        limit("sun.net.httpserver.maxReqHeaders", 64);
        limit("sun.net.httpserver.maxReqHeaderSize", 8 * 1024);
        limit("sun.net.httpserver.maxReqTime", 5);
        limit("sun.net.httpserver.maxRspTime", 5);
        limit("sun.net.httpserver.idleInterval", 5);
        limit("sun.net.httpserver.clockTick", 1_000);
    }

    private final HttpServer server;
    private final HttpHandler handler;
    private final ThreadPoolExecutor workers;
    private final int port;

    private LoopbackServer(final HttpServer server, final String name, final HttpHandler handler) {
        this.server = server;
        this.handler = handler;
        port = server.getAddress().getPort();
        workers = new ThreadPoolExecutor(0, THREADS_MAX, THREAD_KEPT_S, TimeUnit.SECONDS, new SynchronousQueue<>(),
            task -> {
                final Thread thread = new Thread(task, name);
                thread.setDaemon(true);
                return thread;
            });
        server.setExecutor(workers);
        server.createContext("/", this::answer);
    }

    private static void limit(final String property, final int value) {
        if (System.getProperty(property) == null) {
            System.setProperty(property, Integer.toString(value));
        }
    }

    /**
     * Listens from now on.
     *
     * @param wanted  where
     * @param name    of its threads
     * @param handler answers; a request that reaches it is GET or HEAD and names this host
     * @return the server
     * @throws UncheckedIOException if it cannot listen there, in one line
     */
    public static LoopbackServer start(final Endpoint wanted, final String name, final HttpHandler handler) {
        try {
            final LoopbackServer server = new LoopbackServer(HttpServer.create(address(wanted.port()), BACKLOG), name,
                handler);
            server.server.start();
            return server;
        } catch (final IOException e) {
            throw new UncheckedIOException(wanted + " cannot be listened on: " + e.getMessage()
                + "; choose another address", e);
        }
    }

    private static InetSocketAddress address(final int port) {
        try {
            return new InetSocketAddress(InetAddress.getByAddress(LOOPBACK), port);
        } catch (final UnknownHostException e) {
            throw new IllegalStateException(e);   // four bytes are an address
        }
    }

    /** Where it listens, with the port that was given. */
    public Endpoint endpoint() {
        return new Endpoint(port);
    }

    private void answer(final HttpExchange exchange) throws IOException {
        try (exchange) {
            exchange.getResponseHeaders().set("Connection", "close");
            final String refusal = refuse(exchange);
            if (refusal == null) {
                handle(exchange);
            } else {
                sendText(exchange, Integer.parseInt(refusal.substring(0, 3)), refusal.substring(4));
            }
        }
    }

    /** Status and reason, or null. */
    private String refuse(final HttpExchange exchange) {
        if (!exchange.getProtocol().matches("HTTP/1\\.[01]") || exchange.getRequestURI().getRawAuthority() != null) {
            return "400 not an HTTP/1.1 request";
        }
        final List<String> hosts = exchange.getRequestHeaders().getOrDefault("Host", List.of());
        if (hosts.size() != 1 || !List.of("127.0.0.1:" + port, "localhost:" + port).contains(hosts.get(0))) {
            return "421 the Host header names another server";
        }
        // a browser says on whose behalf it asks: this server's own page, the user, or another site
        final List<String> origins = exchange.getRequestHeaders().getOrDefault("Origin", List.of());
        final List<String> sites = exchange.getRequestHeaders().getOrDefault("Sec-Fetch-Site", List.of());
        if (!origins.isEmpty() && !origins.equals(List.of("http://" + hosts.get(0)))
            || !sites.isEmpty() && !sites.equals(List.of("same-origin")) && !sites.equals(List.of("none"))) {
            return "403 another site asks";
        }
        if (!List.of("GET", "HEAD").contains(exchange.getRequestMethod())) {
            return "405 only GET and HEAD";
        }
        return null;
    }

    private void handle(final HttpExchange exchange) throws IOException {
        try {
            handler.handle(exchange);
        } catch (final IOException | RuntimeException e) {
            if (exchange.getResponseCode() >= 0) {
                throw e;   // half an answer: the connection is closed
            }
            sendText(exchange, 500, "the server failed to answer: " + e.getMessage());
        }
    }

    /**
     * Answers with one line of text.
     *
     * @param exchange the request
     * @param status   for example 404
     * @param text     one line
     * @throws IOException if the client is gone
     */
    public static void sendText(final HttpExchange exchange, final int status, final String text) throws IOException {
        send(exchange, status, "text/plain; charset=utf-8", (text + "\n").getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Answers; the response is never to be cached or reinterpreted.
     *
     * @param exchange    the request
     * @param status      for example 200
     * @param contentType type of the body
     * @param body        the bytes, not sent if the request is HEAD
     * @throws IOException if the client is gone
     */
    public static void send(final HttpExchange exchange, final int status, final String contentType, final byte[] body)
        throws IOException {
        exchange.getResponseHeaders().set("Content-Type", contentType);
        exchange.getResponseHeaders().set("Cache-Control", "no-store");
        exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
        if ("HEAD".equals(exchange.getRequestMethod())) {
            exchange.getResponseHeaders().set("Content-Length", Integer.toString(body.length));
            exchange.sendResponseHeaders(status, -1);
            return;
        }
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
    }

    /** Closes all connections; no handler runs any more after this, unless one takes longer than 2 s. */
    @Override
    public void close() {
        server.stop(0);
        workers.shutdownNow();
        try {
            workers.awaitTermination(CLOSE_LIMIT_MS, TimeUnit.MILLISECONDS);   // isClosed() tells
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whether no handler runs any more: true once it is closed and the last handler has ended. */
    public boolean isClosed() {
        return workers.isTerminated();
    }
}
