/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import java.io.BufferedReader;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The two ways to the observer's records. */
final class ObserverSource {
    private static final int END_WAIT_MS = 500;
    private static final byte[] DAEMON = {'d'};
    private static final int AHEAD_BYTES = 64 * Observation.BYTES;

    private ObserverSource() {
    }

    /** Standard output of a child. When it is closed, the child ends. */
    static InputStream child(final Path program, final List<String> options) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(program.toString());
        command.addAll(options);
        final Process process = new ProcessBuilder(command).redirectInput(ProcessBuilder.Redirect.from(
            Path.of("/dev/null").toFile())).start();
        return new ChildStream(process);
    }

    /** The service's. It serves whoever sends a byte. */
    static InputStream socket(final Path path) throws IOException {
        final SocketChannel channel = connect(path);
        try {
            channel.write(ByteBuffer.wrap(DAEMON));
        } catch (final IOException e) {
            channel.close();
            throw e;
        }
        return new SocketStream(channel);
    }

    /** Connects, no more. */
    static SocketChannel connect(final Path path) throws IOException {
        final SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.connect(UnixDomainSocketAddress.of(path));
        } catch (final IOException e) {
            channel.close();
            throw new IOException("gpuseg-observer at " + path + ": " + e.getMessage()
                + "; see systemctl status gpuseg-observer", e);
        }
        return channel;
    }

    /** Can say whether there is something to read; {@link java.nio.channels.Channels} cannot. */
    private static final class SocketStream extends InputStream {
        private final SocketChannel channel;
        private final ByteBuffer ahead = ByteBuffer.allocate(AHEAD_BYTES).limit(0);

        SocketStream(final SocketChannel channel) {
            this.channel = channel;
        }

        @Override
        public int available() throws IOException {
            if (!ahead.hasRemaining()) {
                ahead.clear();
                channel.configureBlocking(false);
                final int n = channel.read(ahead);
                channel.configureBlocking(true);
                ahead.flip();
                return n < 0 ? 1 : n;   // the next read finds its end
            }
            return ahead.remaining();
        }

        @Override
        public int read() throws IOException {
            final byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(final byte[] bytes, final int from, final int length) throws IOException {
            if (!ahead.hasRemaining()) {
                return channel.read(ByteBuffer.wrap(bytes, from, length));
            }
            final int n = Math.min(length, ahead.remaining());
            ahead.get(bytes, from, n);
            return n;
        }

        @Override
        public void close() throws IOException {
            channel.close();
        }
    }

    private static final class ChildStream extends FilterInputStream {
        private final Process process;

        ChildStream(final Process process) {
            super(process.getInputStream());
            this.process = process;
        }

        /** At its end, the child's own message becomes the error. */
        @Override
        public int read(final byte[] bytes, final int from, final int length) throws IOException {
            final int n = super.read(bytes, from, length);
            if (n < 0) {
                final String said = message();
                throw new IOException(said.isEmpty() ? "gpuseg-observer ended with status " + status() : said);
            }
            return n;
        }

        private String message() throws IOException {
            try (BufferedReader errors = process.errorReader(StandardCharsets.UTF_8)) {
                String last = "";
                for (String line = errors.readLine(); line != null; line = errors.readLine()) {
                    last = line;
                }
                return last;
            }
        }

        private String status() {
            return await() ? Integer.toString(process.exitValue()) : "unknown";
        }

        private boolean await() {
            try {
                return process.waitFor(END_WAIT_MS, TimeUnit.MILLISECONDS);
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
                return false;
            }
        }

        @Override
        public void close() throws IOException {
            process.destroy();
            super.close();
        }
    }
}
