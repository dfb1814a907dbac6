/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import dev.gpuseg.ipc.platform.FileAccess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipalNotFoundException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * HTTP/1.1, one request per connection: GET and HEAD, POST with a short body where the handler wants it. A request has
 * at most 8 KiB and a connection at most 5 s and one of 16 threads, after which it is closed; more connections are
 * closed at once. On 127.0.0.1 the Host header must name this server, so that a web page whose name was made to
 * point here reads nothing. Thread-safe.
 */
public final class LocalServer implements AutoCloseable {
    /** Answers one request; on any of the server's threads. */
    @FunctionalInterface
    public interface Handler {
        /**
         * Answers.
         *
         * @param request well formed
         * @return the response
         * @throws IOException if it cannot be answered; the asker is told so
         */
        Response handle(Request request) throws IOException;
    }

    private static final String GROUP = "gpuseg";
    private static final int HEAD_MAX = 8 * 1024;
    private static final int BODY_MAX = 1024;
    private static final int HEADERS_MAX = 64;
    private static final int THREADS_MAX = 16;
    private static final int BACKLOG = 16;
    private static final long CONNECTION_LIMIT_MS = 5_000;
    private static final long CLOSE_LIMIT_MS = 2_000;
    private static final long THREAD_KEPT_S = 10;
    private static final int SOCKET_MODE = 0660;

    private final Endpoint endpoint;
    private final Handler handler;
    private final ServerSocketChannel channel;
    private final Thread acceptor;
    private final ThreadPoolExecutor workers;
    private final ScheduledExecutorService reaper;
    private final AtomicLong failures = new AtomicLong();
    private volatile String lastFailure = "";
    private volatile boolean closed;

    private LocalServer(final Endpoint endpoint, final ServerSocketChannel channel, final String name,
        final Handler handler) {
        this.endpoint = endpoint;
        this.channel = channel;
        this.handler = handler;
        workers = new ThreadPoolExecutor(0, THREADS_MAX, THREAD_KEPT_S, TimeUnit.SECONDS, new SynchronousQueue<>(),
            task -> daemonThread(task, name));
        reaper = Executors.newSingleThreadScheduledExecutor(task -> daemonThread(task, name + "-limit"));
        acceptor = daemonThread(this::accept, name + "-accept");
    }

    private static Thread daemonThread(final Runnable task, final String name) {
        final Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        return thread;
    }

    /**
     * Listens from now on.
     *
     * @param wanted  where; a socket that a dead server left is replaced, any other file is not
     * @param name    of its threads
     * @param handler answers
     * @return the server
     * @throws UncheckedIOException if it cannot listen there, in one line
     */
    public static LocalServer start(final Endpoint wanted, final String name, final Handler handler) {
        try {
            final ServerSocketChannel channel = wanted.isUnix() ? listenUnix(wanted) : listenLoopback(wanted);
            final Endpoint bound = wanted.isUnix() ? wanted
                : new Endpoint(null, ((InetSocketAddress) channel.getLocalAddress()).getPort());
            final LocalServer server = new LocalServer(bound, channel, name, handler);
            server.acceptor.start();
            return server;
        } catch (final IOException e) {
            throw new UncheckedIOException(wanted + " cannot be listened on: " + e.getMessage()
                + "; choose another address", e);
        }
    }

    private static ServerSocketChannel listenLoopback(final Endpoint at) throws IOException {
        final ServerSocketChannel channel = ServerSocketChannel.open();
        try {
            channel.setOption(StandardSocketOptions.SO_REUSEADDR, true);   // old connections do not matter
            channel.bind(at.address(), BACKLOG);
            return channel;
        } catch (final IOException e) {
            channel.close();
            throw e;
        }
    }

    private static ServerSocketChannel listenUnix(final Endpoint at) throws IOException {
        final Path path = at.socket();
        if (Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
            removeStale(path);
        }
        final ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.bind(at.address(), BACKLOG);
            giveToGroup(path);
            FileAccess.chmod(path, SOCKET_MODE);
            return channel;
        } catch (final IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    /** Who may register may also read. */
    private static void giveToGroup(final Path path) throws IOException {
        try {
            Files.setAttribute(path, "posix:group",
                path.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByGroupName(GROUP));
        } catch (final UserPrincipalNotFoundException e) {
            return;   // no such group here: the process's own group it is
        }
    }

    private static void removeStale(final Path path) throws IOException {
        if ((((Integer) Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS)) & 0170000) != 0140000) {
            throw new IOException("the file is there and no socket");
        }
        try (SocketChannel probe = SocketChannel.open(UnixDomainSocketAddress.of(path))) {
            throw new IOException("another server answers there as " + probe.getRemoteAddress());
        } catch (final ConnectException e) {
            Files.delete(path);   // nobody listens any more
        }
    }

    /**
     * Where it listens, with the port that was given.
     *
     * @return the endpoint
     */
    public Endpoint endpoint() {
        return endpoint;
    }

    /**
     * Requests that the handler failed to answer.
     *
     * @return count since start
     */
    public long failures() {
        return failures.get();
    }

    /**
     * Why the last of them failed.
     *
     * @return one line, empty while all were answered
     */
    public String lastFailure() {
        return lastFailure;
    }

    private void accept() {
        while (!closed) {
            SocketChannel connection = null;
            try {
                connection = channel.accept();
                final SocketChannel accepted = connection;
                workers.execute(() -> serve(accepted));
            } catch (final RejectedExecutionException e) {
                close(connection);   // all threads are busy
            } catch (final ClosedChannelException e) {
                return;
            } catch (final IOException e) {
                failed("accept: " + e.getMessage());   // out of descriptors: the others end within their limit
                try {
                    TimeUnit.MILLISECONDS.sleep(100);
                } catch (final InterruptedException stop) {
                    Thread.currentThread().interrupt();
                    return;
                }
            }
        }
    }

    private void failed(final String why) {
        lastFailure = why;
        failures.incrementAndGet();
    }

    private static void close(final SocketChannel connection) {
        try {
            connection.close();
        } catch (final IOException e) {
            return;   // it is gone either way
        }
    }

    private void serve(final SocketChannel connection) {
        final ScheduledFuture<?> limit;
        try {
            limit = reaper.schedule(() -> close(connection), CONNECTION_LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (final RejectedExecutionException e) {
            close(connection);   // the server is being closed
            return;
        }
        try (connection) {
            final Exchange exchange = read(connection);
            if (exchange == null) {
                return;   // closed without a word
            }
            Response response = exchange.refusal;
            final boolean head = response == null && "HEAD".equals(exchange.request.method());
            if (response == null) {
                response = answer(exchange.request);
            }
            write(connection, response, head);
        } catch (final AsynchronousCloseException e) {
            return;   // it took too long
        } catch (final IOException e) {
            return;   // the other side has gone; nobody is left to tell
        } finally {
            limit.cancel(false);
        }
    }

    private Response answer(final Request request) {
        try {
            return handler.handle(request);
        } catch (final IOException | RuntimeException e) {
            failed(request.path() + ": " + e);
            return Response.text(500, "the server failed to answer: " + e.getMessage());
        }
    }

    /** Either a request or why there is none. */
    private record Exchange(Request request, Response refusal) {
        static Exchange refused(final int status, final String why) {
            return new Exchange(null, Response.text(status, why));
        }
    }

    private Exchange read(final SocketChannel connection) throws IOException {
        final ByteBuffer buffer = ByteBuffer.allocate(HEAD_MAX + BODY_MAX);
        int headEnd = -1;
        while (headEnd < 0) {
            if (buffer.position() >= HEAD_MAX) {
                return Exchange.refused(431, "the request's head has more than " + HEAD_MAX + " bytes");
            }
            final int from = Math.max(0, buffer.position() - 3);
            if (connection.read(buffer) < 0) {
                return null;
            }
            headEnd = endOfHead(buffer, from);
        }
        final String[] lines = new String(buffer.array(), 0, headEnd, StandardCharsets.ISO_8859_1)
            .split("\r\n", -1);   // ends with two empty ones
        final String[] words = lines[0].split(" ", -1);
        if (words.length != 3 || !words[2].matches("HTTP/1\\.[01]") || !words[1].startsWith("/")
            || !words[1].chars().allMatch(c -> c > 0x20 && c < 0x7f) || lines.length > HEADERS_MAX) {
            return Exchange.refused(400, "not an HTTP/1.1 request");
        }
        final Map<String, List<String>> headers = new LinkedHashMap<>();
        for (int i = 1; i < lines.length - 2; i++) {
            final int colon = lines[i].indexOf(':');
            if (colon <= 0 || !lines[i].substring(0, colon).matches("[A-Za-z0-9!#$%&'*+.^_`|~-]+")) {
                return Exchange.refused(400, "a header is malformed");
            }
            headers.computeIfAbsent(lines[i].substring(0, colon).toLowerCase(Locale.ROOT), k -> new ArrayList<>())
                .add(lines[i].substring(colon + 1).strip());
        }
        if (!endpoint.isUnix() && !isOurHost(headers.getOrDefault("host", List.of()))) {
            return Exchange.refused(421, "the Host header names another server");
        }
        if (!words[0].equals("GET") && !words[0].equals("HEAD") && !words[0].equals("POST")) {
            return Exchange.refused(405, "only GET, HEAD and POST");
        }
        if (headers.containsKey("transfer-encoding")) {
            return Exchange.refused(411, "a body needs a Content-Length");
        }
        final String length = String.join(",", headers.getOrDefault("content-length", List.of("0")));
        if (!length.matches("[0-9]{1,4}") || Integer.parseInt(length) > BODY_MAX) {
            return Exchange.refused(413, "the body has more than " + BODY_MAX + " bytes");
        }
        final int end = headEnd + Integer.parseInt(length);
        while (buffer.position() < end) {
            if (connection.read(buffer) < 0) {
                return null;
            }
        }
        final int question = words[1].indexOf('?');
        return new Exchange(new Request(words[0], question < 0 ? words[1] : words[1].substring(0, question),
            question < 0 ? "" : words[1].substring(question + 1), headers,
            new String(buffer.array(), headEnd, end - headEnd, StandardCharsets.UTF_8)), null);
    }

    private boolean isOurHost(final List<String> hosts) {
        return hosts.size() == 1 && (hosts.get(0).equals("127.0.0.1:" + endpoint.port())
            || hosts.get(0).equals("localhost:" + endpoint.port()));
    }

    private static int endOfHead(final ByteBuffer buffer, final int from) {
        for (int i = from; i + 3 < buffer.position(); i++) {
            if (buffer.get(i) == '\r' && buffer.get(i + 1) == '\n' && buffer.get(i + 2) == '\r'
                && buffer.get(i + 3) == '\n') {
                return i + 4;
            }
        }
        return -1;
    }

    private static void write(final SocketChannel connection, final Response response, final boolean headOnly)
        throws IOException {
        final StringBuilder head = new StringBuilder("HTTP/1.1 ").append(response.status()).append(' ')
            .append(reason(response.status())).append("\r\n");
        response.headers().forEach((name, value) -> head.append(name).append(": ").append(value).append("\r\n"));
        head.append("Content-Length: ").append(response.body().length).append("\r\nConnection: close\r\n\r\n");
        final ByteBuffer[] parts = {ByteBuffer.wrap(head.toString().getBytes(StandardCharsets.ISO_8859_1)),
            ByteBuffer.wrap(headOnly ? new byte[0] : response.body())};
        while (parts[0].hasRemaining() || parts[1].hasRemaining()) {
            connection.write(parts);
        }
        connection.shutdownOutput();
    }

    private static String reason(final int status) {
        switch (status) {
            case 200:
                return "OK";
            case 400:
                return "Bad Request";
            case 403:
                return "Forbidden";
            case 404:
                return "Not Found";
            case 405:
                return "Method Not Allowed";
            case 421:
                return "Misdirected Request";
            case 500:
                return "Internal Server Error";
            default:
                return status < 400 ? "OK" : "Refused";
        }
    }

    /** Closes connections; no handler runs any more after this, unless one takes longer than 2 s. */
    @Override
    public void close() {
        closed = true;
        try {
            channel.close();
            if (endpoint.isUnix()) {
                Files.deleteIfExists(endpoint.socket());
            }
        } catch (final IOException e) {
            failed("close: " + e.getMessage());
        }
        reaper.shutdownNow();
        workers.shutdownNow();   // interrupts reads and writes: their channels close
        try {
            workers.awaitTermination(CLOSE_LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
