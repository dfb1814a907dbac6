/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.models.CoreV1Event;
import io.kubernetes.client.openapi.models.V1ListMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodList;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * What the agent uses of the API server's protocol, over real HTTP: list and watch of the pods of a node, with resource
 * versions, and events. It is not the server: no authorisation, no validation, no storage beyond this object. It can be
 * stopped and started again on the same port, and then has forgotten what happened before (as after a compaction).
 */
final class StandInApiServer implements AutoCloseable {
    private static final String PODS = "/api/v1/pods";

    final List<CoreV1Event> events = new CopyOnWriteArrayList<>();
    final List<String> selectors = new CopyOnWriteArrayList<>();
    volatile int refuseEventsWith;
    private final JSON json = new JSON();
    private final Map<String, V1Pod> pods = new TreeMap<>();
    private final List<String> history = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private HttpServer server;
    private int port;
    private long version;
    /** Versions up to this one are forgotten. */
    private long compacted;
    private volatile boolean running;

    StandInApiServer() throws IOException {
        this(0, 1);
        start();
    }

    /**
     * A server that {@link #start} starts.
     *
     * @param port    of loopback, 0 for any
     * @param version of what it has at its start, above all that a server before it gave
     */
    StandInApiServer(final int port, final long version) throws IOException {
        this.port = port;
        this.version = version;
        compacted = version;
    }

    String url() {
        return "http://127.0.0.1:" + port;
    }

    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 16);
        port = server.getAddress().getPort();
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        running = true;
        server.start();
    }

    /** Ends all connections, too. */
    void stop() {
        running = false;
        synchronized (this) {
            compacted = version;
            history.clear();
            notifyAll();
        }
        server.stop(0);
    }

    synchronized void put(final V1Pod pod) {
        version++;
        pod.getMetadata().setResourceVersion(Long.toString(version));
        final boolean known = pods.put(pod.getMetadata().getUid(), pod) != null;
        publish(known ? "MODIFIED" : "ADDED", pod);
    }

    synchronized void delete(final String uid) {
        version++;
        final V1Pod pod = pods.remove(uid);
        pod.getMetadata().setResourceVersion(Long.toString(version));
        publish("DELETED", pod);
    }

    private void publish(final String type, final V1Pod pod) {
        history.add("{\"type\":\"" + type + "\",\"object\":" + JSON.serialize(pod) + "}\n");
        notifyAll();
    }

    private void answer(final HttpExchange exchange) throws IOException {
        try (exchange) {
            final String path = exchange.getRequestURI().getPath();
            final String query = String.valueOf(exchange.getRequestURI().getQuery());
            if (path.equals(PODS) && query.contains("watch=true")) {
                watch(exchange, query);
            } else if (path.equals(PODS)) {
                selectors.add(query);
                list(exchange);
            } else if (path.matches("/api/v1/namespaces/[a-z-]+/events")) {
                final String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                final int status = refuseEventsWith == 0 ? 201 : refuseEventsWith;
                if (refuseEventsWith == 0) {
                    events.add(JSON.deserialize(body, CoreV1Event.class));
                }
                send(exchange, status, status == 201 ? body : "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":"
                    + status + "}");
            } else {
                send(exchange, 404, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":404}");
            }
        }
    }

    private void list(final HttpExchange exchange) throws IOException {
        final V1PodList all;
        synchronized (this) {
            all = new V1PodList().apiVersion("v1").kind("PodList").items(new ArrayList<>(pods.values()))
                .metadata(new V1ListMeta().resourceVersion(Long.toString(version)));
        }
        send(exchange, 200, JSON.serialize(all));
    }

    private static void send(final HttpExchange exchange, final int status, final String body) throws IOException {
        final byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().add("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
    }

    private void watch(final HttpExchange exchange, final String query) throws IOException {
        final long from = Long.parseLong(query.replaceAll(".*resourceVersion=([0-9]+).*", "$1"));
        exchange.getResponseHeaders().add("Content-Type", "application/json");
        exchange.sendResponseHeaders(200, 0);
        try (OutputStream out = exchange.getResponseBody()) {
            int next;
            synchronized (this) {
                if (from < compacted) {
                    out.write(("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"code\":410,"
                        + "\"reason\":\"Expired\",\"message\":\"too old resource version\"}}\n")
                        .getBytes(StandardCharsets.UTF_8));
                    return;
                }
                next = (int) (from - compacted);
            }
            while (running) {
                final String event;
                synchronized (this) {
                    while (running && history.size() <= next) {
                        wait(500);
                    }
                    if (!running) {
                        return;
                    }
                    event = history.get(next);
                    next++;
                }
                out.write(event.getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        if (running) {
            stop();
        }
        threads.shutdownNow();
    }
}
