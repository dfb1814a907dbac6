/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;

/** Standard output as UTF-8, whatever the locale, that remembers why it could not be written. Not thread-safe. */
final class StandardOutput extends PrintWriter {
    private final Remembering stream;

    StandardOutput() {
        this(new Remembering(new FileOutputStream(FileDescriptor.out)));
    }

    private StandardOutput(final Remembering stream) {
        super(new OutputStreamWriter(new BufferedOutputStream(stream), StandardCharsets.UTF_8), true);
        this.stream = stream;
    }

    /** Standard error as UTF-8. */
    static PrintWriter error() {
        return new PrintWriter(new OutputStreamWriter(new FileOutputStream(FileDescriptor.err),
            StandardCharsets.UTF_8), true);
    }

    /** Writes what is still to be written; why something could not be, or null. */
    IOException failure() {
        flush();
        return stream.failure;
    }

    private static final class Remembering extends FilterOutputStream {
        private volatile IOException failure;

        Remembering(final OutputStream out) {
            super(out);
        }

        @Override
        public void write(final int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(final byte[] bytes, final int from, final int length) throws IOException {
            if (failure != null) {
                throw failure;   // a result with a hole is worse than none
            }
            try {
                out.write(bytes, from, length);
            } catch (final IOException e) {
                failure = e;
                throw e;
            }
        }
    }
}
