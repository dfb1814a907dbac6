/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.BufferedOutputStream;
import java.io.BufferedWriter;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/**
 * Writes results: a file appears under its name when all of it is written, and what was there before stays until then.
 * Devices and pipes are written as they are. Text is UTF-8. Stateless.
 */
public final class ResultFile {
    private static final int BUFFER_BYTES = 1 << 16;

    private ResultFile() {
    }

    /** What goes into a file. */
    @FunctionalInterface
    public interface Content {
        /**
         * Writes it.
         *
         * @param out where to; need be neither buffered nor closed
         * @throws IOException if it cannot be read or written
         */
        void writeTo(OutputStream out) throws IOException;
    }

    /** Text that goes into a file. */
    @FunctionalInterface
    public interface Text {
        /**
         * Writes it.
         *
         * @param out where to; need be neither buffered nor closed
         * @throws IOException if it cannot be read or written
         */
        void writeTo(Writer out) throws IOException;
    }

    /** A result that could not be written. The message is one line: file, reason, remedy. */
    public static final class UnwritableException extends IOException {
        private static final long serialVersionUID = 1L;

        /**
         * Creates the exception.
         *
         * @param what  the file, or what else was to be written
         * @param cause why not
         */
        public UnwritableException(final String what, final IOException cause) {
            super(what + " cannot be written: " + reason(cause), cause);
        }
    }

    /**
     * Writes a text.
     *
     * @param file replaced if it exists
     * @param text all of it
     * @throws UnwritableException if it cannot be written; then the file is as it was
     */
    public static void write(final Path file, final CharSequence text) throws UnwritableException {
        try {
            writeText(file, out -> out.append(text));
        } catch (final UnwritableException e) {
            throw e;
        } catch (final IOException e) {
            throw new UnwritableException(file.toString(), e);
        }
    }

    /**
     * Writes a text that is made meanwhile.
     *
     * @param file replaced if it exists
     * @param text writes it
     * @throws UnwritableException if it cannot be written; then the file is as it was
     * @throws IOException         if the text cannot be made; likewise
     */
    public static void writeText(final Path file, final Text text) throws IOException {
        write(file, out -> {
            final Writer writer = new BufferedWriter(new OutputStreamWriter(out, StandardCharsets.UTF_8));
            text.writeTo(writer);
            writer.flush();
        });
    }

    /**
     * Writes bytes.
     *
     * @param file    replaced if it exists
     * @param content writes them
     * @throws UnwritableException if they cannot be written; then the file is as it was
     * @throws IOException         if the content cannot be made; likewise
     */
    public static void write(final Path file, final Content content) throws IOException {
        if (Files.exists(file) && !Files.isRegularFile(file)) {
            try (OutputStream out = opened(file, file, StandardOpenOption.WRITE)) {
                content.writeTo(out);
            }
            return;
        }
        final Path target;
        try {
            target = Files.exists(file, LinkOption.NOFOLLOW_LINKS) ? file.toRealPath() : file.toAbsolutePath();
        } catch (final IOException e) {
            throw new UnwritableException(file.toString(), e);
        }
        final Path part = target.resolveSibling(".gpuseg-" + ProcessHandle.current().pid() + "-"
            + Long.toHexString(System.nanoTime()) + ".part");
        boolean done = false;
        try {
            try (OutputStream out = opened(file, part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
                content.writeTo(out);
            }
            try {
                if (Files.exists(target)) {
                    Files.setPosixFilePermissions(part, Files.getPosixFilePermissions(target));
                }
                Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
            } catch (final IOException e) {
                throw new UnwritableException(file.toString(), e);
            }
            done = true;
        } finally {
            if (!done) {
                Files.deleteIfExists(part);
            }
        }
    }

    /**
     * A file that becomes another one later, by its writer.
     *
     * @param file the name it will have; errors name it
     * @param part where it is written, replaced if it exists
     * @return where to write, buffered
     * @throws UnwritableException if it cannot be opened, as from each write that fails
     */
    public static OutputStream part(final Path file, final Path part) throws UnwritableException {
        return opened(file, part, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE);
    }

    private static OutputStream opened(final Path file, final Path at, final StandardOpenOption... how)
        throws UnwritableException {
        try {
            return new BufferedOutputStream(new Named(Files.newOutputStream(at, how), file), BUFFER_BYTES);
        } catch (final IOException e) {
            throw new UnwritableException(file.toString(), e);
        }
    }

    /**
     * Why a file cannot be written or read, and what to do, for messages that name the file already.
     *
     * @param error what happened
     * @return one line
     */
    public static String reason(final IOException error) {
        if (error instanceof AccessDeniedException) {
            return "permission denied; name a file that you may use, or check the permissions";
        }
        if (error instanceof NoSuchFileException) {
            return "there is no such file or directory; check the name";
        }
        if (error instanceof NotDirectoryException) {
            return "a part of its path is no directory; check the name";
        }
        final String said = error instanceof FileSystemException e && e.getReason() != null ? e.getReason()
            : error.getMessage() == null ? error.toString() : error.getMessage();
        return switch (said) {
            case "No space left on device", "Disk quota exceeded" -> said + "; free some, or name a file elsewhere";
            case "Broken pipe" -> said + "; its reader has ended";
            case "Is a directory" -> said + "; name a file";
            case "Read-only file system", "Input/output error", "File too large" -> said
                + "; name a file elsewhere";
            default -> said.replaceAll("\\s+", " ");
        };
    }

    /** Errors of the file itself, apart from those of what is written to it. */
    private static final class Named extends FilterOutputStream {
        private final Path file;

        Named(final OutputStream out, final Path file) {
            super(out);
            this.file = file;
        }

        @Override
        public void write(final int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(final byte[] bytes, final int from, final int length) throws IOException {
            try {
                out.write(bytes, from, length);
            } catch (final IOException e) {
                throw new UnwritableException(file.toString(), e);
            }
        }

        @Override
        public void close() throws IOException {
            try {
                out.close();
            } catch (final IOException e) {
                throw new UnwritableException(file.toString(), e);
            }
        }
    }
}
