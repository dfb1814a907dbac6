/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the server refuses, and that slow and hostile clients do not keep others from being answered. */
@Timeout(120)
class LoopbackServerTest {
    private static final int THREADS = 16;
    private static final int CONNECTIONS = 64;

    private static LoopbackServer echo() {
        return LoopbackServer.start(Endpoint.anyPort(), "test", exchange -> LoopbackServer.sendText(exchange, 200,
            exchange.getRequestMethod() + " " + exchange.getRequestURI()));
    }

    private static SocketChannel open(final LoopbackServer server) throws IOException {
        return SocketChannel.open(new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}),
            server.endpoint().port()));
    }

    /** Everything until the server closes; a reset is how the kernel closes a connection with unread bytes. */
    private static String read(final SocketChannel channel) throws IOException {
        final ByteBuffer answer = ByteBuffer.allocate(1 << 16);
        try {
            while (channel.read(answer) >= 0) {
                assertTrue(answer.hasRemaining(), "a short answer");
            }
        } catch (final SocketException e) {
            assertEquals("Connection reset", e.getMessage());
        }
        return new String(answer.array(), 0, answer.position(), StandardCharsets.ISO_8859_1);
    }

    private static String ask(final LoopbackServer server, final String request) throws IOException {
        try (SocketChannel channel = open(server)) {
            channel.write(ByteBuffer.wrap(request.getBytes(StandardCharsets.ISO_8859_1)));
            return read(channel);
        }
    }

    private static String host(final LoopbackServer server) {
        return "Host: 127.0.0.1:" + server.endpoint().port() + "\r\n";
    }

    private static String get(final LoopbackServer server) throws IOException {
        return ask(server, "GET /a?b=1 HTTP/1.1\r\n" + host(server) + "\r\n");
    }

    @Test
    void shouldRefuseEveryAddressButLoopback() {
        for (final String text : List.of("", "9477", ":9477", "0.0.0.0:9477", "localhost:9477", "[::1]:9477", "*:1",
            "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1x", "unix:", "unix:/run/x.sock",
            "tcp:127.0.0.1:1", "127.0.0.2:9477")) {
            final String message = assertThrows(IllegalArgumentException.class, () -> Endpoint.parse(text), text)
                .getMessage();
            assertFalse(message.contains("\n"), "one line");
        }
        assertEquals(9477, Endpoint.parse("127.0.0.1:9477").port());
        assertEquals("127.0.0.1:9477", Endpoint.parse("127.0.0.1:9477").toString());
    }

    @Test
    void shouldRefuseAPortThatIsTaken() {
        try (LoopbackServer server = echo()) {
            final String message = assertThrows(UncheckedIOException.class, () -> LoopbackServer.start(
                server.endpoint(), "other", HttpExchange::close).close()).getMessage();
            assertTrue(message.contains(server.endpoint().toString()) && !message.contains("\n"), message);
        }
    }

    @Test
    void shouldRefuseARequestThatNamesAnotherHost() throws IOException {
        try (LoopbackServer server = echo()) {
            final int port = server.endpoint().port();
            for (final String host : List.of("evil.example", "127.0.0.1", "127.0.0.1:" + (port - 1),
                "evil.example:" + port, "127.0.0.1:" + port + "\r\nHost: x")) {
                final String answer = ask(server, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
                assertTrue(answer.startsWith("HTTP/1.1 421 "), host + ": " + answer);
            }
            assertTrue(ask(server, "GET / HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 421 "));
            assertTrue(get(server).endsWith("GET /a?b=1\n"));
            assertTrue(ask(server, "GET / HTTP/1.1\r\nHost: localhost:" + port + "\r\n\r\n")
                .startsWith("HTTP/1.1 200 "));
        }
    }

    @Test
    void shouldNotLetOtherSitesReadTheAnswer() throws IOException {
        try (LoopbackServer server = echo()) {
            for (final String header : List.of("Origin: http://evil.example", "Origin: null",
                "Origin: http://127.0.0.1:1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site")) {
                final String refused = ask(server, "GET / HTTP/1.1\r\n" + host(server) + header + "\r\n\r\n");
                assertTrue(refused.startsWith("HTTP/1.1 403 "), header + ": " + refused);
            }
            final String answer = ask(server, "GET / HTTP/1.1\r\n" + host(server) + "Origin: http://127.0.0.1:"
                + server.endpoint().port() + "\r\nSec-Fetch-Site: same-origin\r\n\r\n")
                .toLowerCase(java.util.Locale.ROOT);
            assertTrue(answer.startsWith("http/1.1 200 "), answer);
            assertFalse(answer.contains("access-control"), answer);
            assertTrue(answer.contains("cache-control: no-store") && answer.contains("nosniff"), answer);
        }
    }

    @Test
    void shouldRefuseWhatIsMalformedTooLongOrNoReading() throws IOException {
        try (LoopbackServer server = echo()) {
            final String host = host(server);
            for (final String method : List.of("DELETE", "PUT", "OPTIONS", "TRACE", "PATCH")) {
                assertTrue(ask(server, method + " / HTTP/1.1\r\n" + host + "\r\n").startsWith("HTTP/1.1 405 "), method);
            }
            assertTrue(ask(server, "POST / HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc")
                .startsWith("HTTP/1.1 405 "));
            assertTrue(ask(server, "GET http://x/ HTTP/1.1\r\n" + host + "\r\n").startsWith("HTTP/1.1 400 "));
            assertTrue(ask(server, "GET / HTTP/9\r\n" + host + "\r\n").startsWith("HTTP/1.1 400 "));
            assertFalse(ask(server, "GET / HTTP/1.1\r\n" + host + "Bad Name: 1\r\n\r\n").startsWith("HTTP/1.1 200 "));
            assertFalse(ask(server, "GET / HTTP/1.1\r\n" + host + manyHeaders() + "\r\n").startsWith("HTTP/1.1 200 "));
            assertFalse(ask(server, "GET / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nTransfer-Encoding: chunked"
                + "\r\n\r\na").startsWith("HTTP/1.1 200 "));
            assertTrue(ask(server, "HEAD /x HTTP/1.1\r\n" + host + "\r\n").endsWith("\r\n\r\n"), "no body");
            assertTrue(get(server).startsWith("HTTP/1.1 200 "), "it goes on");
        }
    }

    private static String manyHeaders() {
        final StringBuilder headers = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            headers.append('a').append(i).append(": 1\r\n");
        }
        return headers.toString();
    }

    /** The last bytes may meet a connection that is closed already. */
    @Test
    void shouldNotTakeInAHeadWithoutEnd() throws IOException {
        try (LoopbackServer server = echo(); SocketChannel channel = open(server)) {
            final ByteBuffer part = ByteBuffer.wrap("a".repeat(1 << 16).getBytes(StandardCharsets.US_ASCII));
            channel.write(ByteBuffer.wrap("GET /".getBytes(StandardCharsets.US_ASCII)));
            long taken = 0;
            try {
                while (taken < 64L << 20) {
                    part.rewind();
                    taken += channel.write(part);
                }
            } catch (final IOException e) {
                assertTrue(get(server).startsWith("HTTP/1.1 200 "), e.getMessage());
            }
            assertTrue(taken < 64L << 20, "a request line of " + taken + " bytes");
        }
    }

    @Test
    void shouldCloseASilentConnectionAndAnswerOthersMeanwhile() throws IOException {
        try (LoopbackServer server = echo()) {
            final List<SocketChannel> idle = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                idle.add(open(server));
            }
            assertTrue(get(server).startsWith("HTTP/1.1 200 "));
            for (final SocketChannel channel : idle) {
                assertEquals("", read(channel), "closed without a word");
                channel.close();
            }
        }
    }

    @Test
    void shouldCloseConnectionsThatKeepAllThreadsBusyAndThenAnswer() throws IOException {
        try (LoopbackServer server = echo()) {
            final List<SocketChannel> slow = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                final SocketChannel channel = open(server);
                channel.write(ByteBuffer.wrap("GET / HT".getBytes(StandardCharsets.US_ASCII)));
                slow.add(channel);
            }
            for (final SocketChannel channel : slow) {
                assertEquals("", read(channel), "closed: the request takes too long");
                channel.close();
            }
            assertTrue(get(server).startsWith("HTTP/1.1 200 "));
        }
    }

    @Test
    void shouldRefuseMoreRequestsThanItHasThreads() throws IOException, InterruptedException {
        final CountDownLatch working = new CountDownLatch(THREADS);
        final CountDownLatch end = new CountDownLatch(1);
        try (LoopbackServer server = LoopbackServer.start(Endpoint.anyPort(), "test", exchange -> {
            working.countDown();
            try {
                end.await();
            } catch (final InterruptedException e) {
                throw new IOException(e);
            }
            LoopbackServer.sendText(exchange, 200, "late");
        })) {
            final List<SocketChannel> busy = new ArrayList<>();
            final byte[] request = ("GET / HTTP/1.1\r\n" + host(server) + "\r\n").getBytes(StandardCharsets.US_ASCII);
            for (int i = 0; i < THREADS; i++) {
                final SocketChannel channel = open(server);
                channel.write(ByteBuffer.wrap(request));
                busy.add(channel);
            }
            working.await();
            try (SocketChannel one = open(server)) {
                one.write(ByteBuffer.wrap(request));
                assertEquals("", read(one), "closed without a word");
            }
            end.countDown();
            for (final SocketChannel channel : busy) {
                channel.close();
            }
        }
    }

    @Test
    void shouldCloseWhatComesBeyondItsConnectionsOrAnswerTheRest() throws IOException {
        try (LoopbackServer server = echo()) {
            final List<SocketChannel> all = new ArrayList<>();
            for (int i = 0; i < 4 * CONNECTIONS; i++) {
                all.add(open(server));
            }
            for (final SocketChannel channel : all) {
                assertEquals("", read(channel), "closed, at once or after its time");
                channel.close();
            }
            assertTrue(get(server).startsWith("HTTP/1.1 200 "));
        }
    }

    @Test
    void shouldTellTheClientThatTheHandlerFailed() throws IOException {
        try (LoopbackServer server = LoopbackServer.start(Endpoint.anyPort(), "test", exchange -> {
            throw new IllegalStateException("out of paper");
        })) {
            final String answer = get(server);
            assertTrue(answer.startsWith("HTTP/1.1 500 ") && answer.contains("out of paper"), answer);
        }
    }
}
