/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Refusals first: the server is small so that this list can be complete. */
@Timeout(60)
class LocalServerTest {
    @TempDir
    private Path directory;

    private static LocalServer loopback() {
        return LocalServer.start(Endpoint.anyPort(), "test", request -> Response.text(200, request.method() + " "
            + request.path() + " [" + request.query() + "] " + request.body()));
    }

    private static String ask(final SocketAddress at, final String request) throws IOException {
        try (SocketChannel channel = SocketChannel.open(at)) {
            channel.write(ByteBuffer.wrap(request.getBytes(StandardCharsets.ISO_8859_1)));
            final ByteBuffer answer = ByteBuffer.allocate(1 << 16);
            while (channel.read(answer) >= 0) {
                assertTrue(answer.hasRemaining(), "a short answer");
            }
            return new String(answer.array(), 0, answer.position(), StandardCharsets.ISO_8859_1);
        }
    }

    private static String get(final LocalServer server, final String path, final String host) throws IOException {
        return ask(server.endpoint().address(), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    }

    @Test
    void shouldRefuseEveryAddressButASocketAndLoopback() {
        for (final String text : List.of("", "9477", ":9477", "0.0.0.0:9477", "localhost:9477", "[::1]:9477", "*:1",
            "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1x", "unix:", "unix:/",
            "tcp:127.0.0.1:1", "127.0.0.2:9477", "unix:/" + "x".repeat(107))) {
            final String message = assertThrows(IllegalArgumentException.class, () -> Endpoint.parse(text), text)
                .getMessage();
            assertFalse(message.contains("\n"), "one line");
        }
        assertEquals(9477, Endpoint.parse("127.0.0.1:9477").port());
        assertEquals(Path.of("/run/x.sock"), Endpoint.parse("unix:/run/x.sock").socket());
    }

    @Test
    void shouldRefuseARequestThatNamesAnotherHost() throws IOException {
        try (LocalServer server = loopback()) {
            final int port = server.endpoint().port();
            for (final String host : List.of("evil.example", "127.0.0.1", "127.0.0.1:" + (port - 1),
                "evil.example:" + port, "127.0.0.1:" + port + "\r\nHost: x")) {
                assertTrue(get(server, "/", host).startsWith("HTTP/1.1 421 "), host);
            }
            assertTrue(ask(server.endpoint().address(), "GET / HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 421 "));
            assertTrue(get(server, "/a?b=1", "127.0.0.1:" + port).endsWith("GET /a [b=1] \n"));
            assertTrue(get(server, "/", "localhost:" + port).startsWith("HTTP/1.1 200 "));
        }
    }

    @Test
    void shouldRefuseWhatIsMalformedTooLongOrNoReading() throws IOException {
        try (LocalServer server = loopback()) {
            final SocketAddress at = server.endpoint().address();
            final String host = "Host: 127.0.0.1:" + server.endpoint().port() + "\r\n";
            assertTrue(ask(at, "DELETE / HTTP/1.1\r\n" + host + "\r\n").startsWith("HTTP/1.1 405 "));
            assertTrue(ask(at, "GET http://x/ HTTP/1.1\r\n" + host + "\r\n").startsWith("HTTP/1.1 400 "));
            assertTrue(ask(at, "GET / HTTP/9\r\n" + host + "\r\n").startsWith("HTTP/1.1 400 "));
            assertTrue(ask(at, "\r\n\r\n").startsWith("HTTP/1.1 400 "));
            assertTrue(ask(at, "GET / HTTP/1.1\r\n" + host + "Bad Name: 1\r\n\r\n").startsWith("HTTP/1.1 400 "));
            assertTrue(ask(at, "GET / HTTP/1.1\r\n" + host + "a: 1\r\n".repeat(100) + "\r\n")
                .startsWith("HTTP/1.1 400 "));
            assertTrue(ask(at, "POST / HTTP/1.1\r\n" + host + "Content-Length: 2000\r\n\r\n")
                .startsWith("HTTP/1.1 413 "));
            assertTrue(ask(at, "POST / HTTP/1.1\r\n" + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab")
                .startsWith("HTTP/1.1 413 "));
            assertTrue(ask(at, "POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n")
                .startsWith("HTTP/1.1 411 "));
            assertTrue(ask(at, "POST /x HTTP/1.1\r\n" + host + "Content-Length: 3\r\n\r\nabc").endsWith("/x [] abc\n"));
            assertTrue(ask(at, "GET /" + "a".repeat(8192)).startsWith("HTTP/1.1 431 "));
            assertTrue(ask(at, "HEAD /x HTTP/1.1\r\n" + host + "\r\n").endsWith("\r\n\r\n"), "no body");
        }
    }

    @Test
    void shouldCloseASlowConnectionAndAnswerOthersMeanwhile() throws IOException {
        try (LocalServer server = loopback()) {
            final List<SocketChannel> idle = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                idle.add(SocketChannel.open(server.endpoint().address()));
            }
            assertTrue(get(server, "/", "127.0.0.1:" + server.endpoint().port()).startsWith("HTTP/1.1 200 "));
            final long startNs = System.nanoTime();
            for (final SocketChannel channel : idle) {
                assertEquals(-1, channel.read(ByteBuffer.allocate(10)), "closed without a word");
                channel.close();
            }
            assertTrue(System.nanoTime() - startNs < 20_000_000_000L, "after 5 s");
        }
    }

    @Test
    void shouldGiveASocketToOwnerAndGroupReplaceADeadOnesAndNoOtherFile() throws IOException {
        final Path path = directory.resolve("metrics.sock");
        final Endpoint endpoint = Endpoint.parse("unix:" + path);
        try (LocalServer server = LocalServer.start(endpoint, "test", request -> Response.text(200, "yes"))) {
            assertEquals("rw-rw----", PosixFilePermissions.toString(Files.getPosixFilePermissions(path)));
            assertTrue(ask(UnixDomainSocketAddress.of(path), "GET / HTTP/1.1\r\n\r\n").endsWith("yes\n"));
            final String message = assertThrows(UncheckedIOException.class, () -> LocalServer.start(endpoint, "other",
                request -> Response.text(200, "no")).close()).getMessage();
            assertTrue(message.contains("another server"), message);
            assertEquals("", server.lastFailure());
        }
        assertFalse(Files.exists(path), "removed with its server");
        Files.writeString(path, "precious");
        assertThrows(UncheckedIOException.class, () -> LocalServer.start(endpoint, "other",
            request -> Response.text(200, "no")).close());
        assertEquals("precious", Files.readString(path));
    }

    @Test
    void shouldTellWhenTheHandlerFails() throws IOException {
        try (LocalServer server = LocalServer.start(Endpoint.anyPort(), "test", request -> {
            throw new IllegalStateException("out of paper");
        })) {
            assertTrue(get(server, "/x", "127.0.0.1:" + server.endpoint().port()).startsWith("HTTP/1.1 500 "));
            assertEquals(1, server.failures());
            assertTrue(server.lastFailure().contains("out of paper"), server.lastFailure());
        }
    }
}
