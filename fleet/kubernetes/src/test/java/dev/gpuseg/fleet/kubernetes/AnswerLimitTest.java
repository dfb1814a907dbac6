/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class AnswerLimitTest {
    private static final int MAX = 10_000;
    private static final String TOO_LONG = "the API server's answer to GET /api/v1/pods has more than 10000 bytes";

    private final OkHttpClient client = new OkHttpClient.Builder().addInterceptor(new AnswerLimit(MAX)).build();
    private HttpServer server;
    private String answer = "";

    @BeforeEach
    void serve() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, 0);   // of no length that is known
            try (OutputStream out = exchange.getResponseBody()) {
                out.write(answer.getBytes(StandardCharsets.UTF_8));
            }
        });
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
        client.dispatcher().executorService().shutdown();
        client.connectionPool().evictAll();
    }

    private String ask(final String query) throws IOException {
        final Request request = new Request.Builder().url("http://localhost:" + server.getAddress().getPort()
            + "/api/v1/pods" + query).build();
        try (Response response = client.newCall(request).execute()) {
            return response.body().string();
        }
    }

    @Test
    void shouldEndTheReadingOfAnAnswerThatIsTooLong() throws Exception {
        answer = "x".repeat(MAX);
        assertEquals(answer, ask("?fieldSelector=a"));
        answer = ("x".repeat(MAX / 10) + "\n").repeat(11);
        assertEquals(TOO_LONG, assertThrows(IOException.class, () -> ask("")).getMessage().split(";")[0]);
    }

    @Test
    void shouldLimitEachEventOfAWatch() throws Exception {
        answer = ("x".repeat(MAX - 1) + "\n").repeat(200);
        assertEquals(answer, ask("?watch=true"));
        answer += "x".repeat(MAX + 9000);
        assertEquals(TOO_LONG + " in a line",
            assertThrows(IOException.class, () -> ask("?watch=true")).getMessage().split(";")[0]);
    }
}
