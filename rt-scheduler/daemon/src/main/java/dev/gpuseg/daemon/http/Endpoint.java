/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

/**
 * A port of 127.0.0.1. There is no way to write down another address, since nothing that is served asks for a password.
 *
 * @param port 0..65535, 0 = any free one
 */
public record Endpoint(int port) {
    private static final String LOOPBACK = "127.0.0.1:";
    private static final int PORT_MAX = 65_535;

    /** Any free port of 127.0.0.1. */
    public static Endpoint anyPort() {
        return new Endpoint(0);
    }

    /**
     * Reads {@code 127.0.0.1:PORT}.
     *
     * @param text what was given
     * @return the endpoint
     * @throws IllegalArgumentException for anything else, in one line
     */
    public static Endpoint parse(final String text) {
        final String port = text.startsWith(LOOPBACK) ? text.substring(LOOPBACK.length()) : "";
        if (!port.matches("[0-9]{1,5}") || Integer.parseInt(port) > PORT_MAX) {
            throw new IllegalArgumentException("address \"" + text + "\": use 127.0.0.1:PORT; only this machine can be "
                + "served, since there is no authentication. Put a proxy in front to read it from elsewhere");
        }
        return new Endpoint(Integer.parseInt(port));
    }

    @Override
    public String toString() {
        return LOOPBACK + port;
    }
}
