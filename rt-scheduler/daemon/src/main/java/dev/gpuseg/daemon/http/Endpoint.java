/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.http;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Where a server listens: a Unix socket, or a port of 127.0.0.1. There is no way to write down another address.
 *
 * @param socket the Unix socket, or null
 * @param port   the port of 127.0.0.1, 0 = any; only without a socket
 */
public record Endpoint(Path socket, int port) {
    private static final String UNIX = "unix:";
    private static final String LOOPBACK = "127.0.0.1:";
    /** sun_path is 108 bytes with the NUL. */
    private static final int PATH_MAX = 107;

    /**
     * Any free port of 127.0.0.1.
     *
     * @return the endpoint
     */
    public static Endpoint anyPort() {
        return new Endpoint(null, 0);
    }

    /**
     * Reads {@code unix:PATH} or {@code 127.0.0.1:PORT}.
     *
     * @param text what was given
     * @return the endpoint
     * @throws IllegalArgumentException for anything else, in one line
     */
    public static Endpoint parse(final String text) {
        if (text.startsWith(UNIX)) {
            final Path path = Path.of(text.substring(UNIX.length())).toAbsolutePath().normalize();
            final int bytes = path.toString().getBytes(StandardCharsets.UTF_8).length;
            if (text.length() == UNIX.length() || path.getFileName() == null || bytes > PATH_MAX) {
                throw new IllegalArgumentException("address \"" + text + "\": a socket's path has 1.." + PATH_MAX
                    + " bytes; name a file, for example unix:/run/gpuseg/metrics.sock");
            }
            return new Endpoint(path, 0);
        }
        if (text.startsWith(LOOPBACK) && text.substring(LOOPBACK.length()).matches("[0-9]{1,5}")
            && Integer.parseInt(text.substring(LOOPBACK.length())) <= 65_535) {
            return new Endpoint(null, Integer.parseInt(text.substring(LOOPBACK.length())));
        }
        throw new IllegalArgumentException("address \"" + text + "\": only unix:PATH and 127.0.0.1:PORT are served, "
            + "since there is no authentication; put a proxy in front to reach it from elsewhere");
    }

    /** Whether it is a Unix socket. */
    boolean isUnix() {
        return socket != null;
    }

    SocketAddress address() {
        if (isUnix()) {
            return UnixDomainSocketAddress.of(socket);
        }
        try {
            return new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), port);
        } catch (final UnknownHostException e) {
            throw new IllegalStateException(e);   // four bytes are an address
        }
    }

    @Override
    public String toString() {
        return isUnix() ? UNIX + socket : LOOPBACK + port;
    }
}
