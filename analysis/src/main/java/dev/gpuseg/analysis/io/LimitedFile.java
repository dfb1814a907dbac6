/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Reads whole files of others up to a size. What is read is counted: the size that a file states may be 0, as that of a
 * pipe and a device is, or may grow meanwhile.
 */
public final class LimitedFile {
    /** For tables and results, which are far shorter. */
    public static final int MAX_BYTES = 64 << 20;

    private LimitedFile() {
    }

    /**
     * The content of a file.
     *
     * @param path     to read
     * @param maxBytes most that is read
     * @return all of it
     * @throws InvalidFileException if it is longer
     * @throws IOException          if it cannot be read
     */
    public static byte[] bytes(final Path path, final int maxBytes) throws IOException {
        try (InputStream in = Files.newInputStream(path)) {
            return bytes(in, maxBytes, path.toString());
        }
    }

    /**
     * The rest of a stream.
     *
     * @param in       to read
     * @param maxBytes most that is read
     * @param file     what refusals call it
     * @return all of it
     * @throws InvalidFileException if it is longer
     * @throws IOException          if it cannot be read
     */
    public static byte[] bytes(final InputStream in, final int maxBytes, final String file) throws IOException {
        final byte[] bytes = in.readNBytes(maxBytes + 1);
        if (bytes.length > maxBytes) {
            throw new InvalidFileException(file, 0, "is longer than " + maxBytes + " bytes; no such file is");
        }
        return bytes;
    }

    /**
     * A file as text.
     *
     * @param path of at most {@link #MAX_BYTES} in UTF-8
     * @return its content
     * @throws InvalidFileException if it is longer
     * @throws IOException          if it cannot be read, or is no UTF-8
     */
    public static String text(final Path path) throws IOException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(path, MAX_BYTES))).toString();
    }

    /**
     * A file as lines.
     *
     * @param path of at most {@link #MAX_BYTES} in UTF-8
     * @return its lines
     * @throws InvalidFileException if it is longer
     * @throws IOException          if it cannot be read, or is no UTF-8
     */
    public static List<String> lines(final Path path) throws IOException {
        return text(path).lines().toList();
    }
}
