/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A request that was read whole and is well formed.
 *
 * @param method  GET, HEAD or POST
 * @param path    begins with a slash; not decoded
 * @param query   what follows the question mark, or empty; not decoded
 * @param headers by lower-case name
 * @param body    what was sent, empty for GET and HEAD
 */
public record Request(String method, String path, String query, Map<String, List<String>> headers, String body) {
    /**
     * A header that must occur once to be meant.
     *
     * @param name its name, in any case
     * @return its value; empty if it is missing or occurs twice
     */
    public String header(final String name) {
        final List<String> values = headers.getOrDefault(name.toLowerCase(Locale.ROOT), List.of());
        return values.size() == 1 ? values.get(0) : "";
    }

    /**
     * A parameter of the query that needs no decoding: letters, digits, minus and underscore.
     *
     * @param name its name
     * @return its value, or empty
     */
    public String parameter(final String name) {
        for (final String part : query.split("&")) {
            if (part.startsWith(name + "=")) {
                return part.substring(name.length() + 1);
            }
        }
        return "";
    }
}
