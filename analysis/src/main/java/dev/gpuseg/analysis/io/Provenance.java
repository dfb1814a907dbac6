/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/**
 * What a report was made of: files by their SHA-256, the version of the tool, and where each constant of the platform
 * comes from.
 *
 * @param tool      name and version
 * @param files     in the order of reading; the task set is the first
 * @param constants of the platform
 */
public record Provenance(String tool, List<Input> files, List<Constant> constants) {
    /** In place of a hash, of a file that can be read only once. */
    public static final String NOT_HASHED = "not hashed (no regular file)";

    /**
     * A file that was read or written.
     *
     * @param role   what it is: task set, profile, measurement, certificate
     * @param name   its name
     * @param sha256 64 hexadecimal digits, or {@link #NOT_HASHED}
     * @param remark such as the age of a profile; may be empty
     */
    public record Input(String role, String name, String sha256, String remark) {
    }

    /**
     * One constant.
     *
     * @param name   key in the file
     * @param value  with its unit
     * @param origin where it comes from
     */
    public record Constant(String name, String value, String origin) {
    }

    /** Copies the lists. */
    public Provenance {
        files = List.copyOf(files);
        constants = List.copyOf(constants);
    }

    /**
     * The hash of some content.
     *
     * @param content all of it
     * @return SHA-256, 64 hexadecimal digits
     */
    public static String sha256(final byte[] content) {
        return HexFormat.of().formatHex(digest().digest(content));
    }

    /**
     * The hash of a file.
     *
     * @param file of any length
     * @return SHA-256, 64 hexadecimal digits
     * @throws IOException if it cannot be read
     */
    public static String sha256(final Path file) throws IOException {
        final MessageDigest digest = digest();
        try (InputStream in = new DigestInputStream(Files.newInputStream(file), digest)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static MessageDigest digest() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (final NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java runtime has SHA-256", e);
        }
    }
}
