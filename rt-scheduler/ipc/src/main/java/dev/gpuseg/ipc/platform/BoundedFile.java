/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Text files of the kernel and of this machine, whose size others have in their hands or which tell none, read up to a
 * limit, so that none of them takes the daemon's memory.
 */
public final class BoundedFile {
    /** Far more than any of them has: 16 MiB. */
    public static final int MAX_BYTES = 16 << 20;

    private BoundedFile() {
    }

    /**
     * All of a file.
     *
     * @param path    to read
     * @param charset of its text
     * @return its text
     * @throws IOException if it is longer than {@link #MAX_BYTES}, or cannot be read or decoded
     */
    public static String text(final Path path, final Charset charset) throws IOException {
        final byte[] bytes;
        try (InputStream in = Files.newInputStream(path)) {
            bytes = in.readNBytes(MAX_BYTES + 1);
        }
        if (bytes.length > MAX_BYTES) {
            throw new IOException(path + " has more than " + MAX_BYTES + " bytes; no such file needs them");
        }
        return charset.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    }

    /**
     * The lines of a file.
     *
     * @param path    to read
     * @param charset of its text
     * @return without their ends
     * @throws IOException if it is longer than {@link #MAX_BYTES}, or cannot be read or decoded
     */
    public static List<String> lines(final Path path, final Charset charset) throws IOException {
        return text(path, charset).lines().toList();
    }
}
