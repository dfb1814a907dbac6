/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What is answered. The server adds Content-Length, Connection and Date's absence.
 *
 * @param status  for example 200
 * @param headers further headers
 * @param body    the bytes
 */
public record Response(int status, Map<String, String> headers, byte[] body) {
    /**
     * Plain text.
     *
     * @param status for example 404
     * @param text   one line
     * @return the response
     */
    public static Response text(final int status, final String text) {
        return of(status, "text/plain; charset=utf-8", (text + "\n").getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Anything.
     *
     * @param status      for example 200
     * @param contentType its type
     * @param body        the bytes
     * @return the response, never to be cached or reinterpreted
     */
    public static Response of(final int status, final String contentType, final byte[] body) {
        final Map<String, String> headers = new LinkedHashMap<>();
        headers.put("Content-Type", contentType);
        headers.put("Cache-Control", "no-store");
        headers.put("X-Content-Type-Options", "nosniff");
        return new Response(status, headers, body);
    }
}
