/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * By what {@code gpuseg exec} finds the space: a text that says where the MPS server is, and a file for each place,
 * which a program locks as long as it lives. Places belong to the user whom the space serves, so that no other can take
 * them; they stay when the daemon ends with programs inside, so that they are taken still when another one has started.
 */
final class SpaceFiles {
    private static final String OWNER = "unix:uid";

    private SpaceFiles() {
    }

    /**
     * Makes the files.
     *
     * @param directory the daemon's
     * @param space     how the GPU is divided
     * @param pipe      where clients find the MPS server
     * @param uid       whom it serves
     * @throws UncheckedIOException if a file cannot be written
     */
    static void write(final RuntimeDirectory directory, final Space space, final Path pipe, final int uid) {
        try {
            for (int i = 0; i < space.places().size(); i++) {
                final Path place = directory.root().resolve(Abi.PLACE_NAME + i);
                if (!Files.exists(place)) {
                    Files.createFile(place);
                }
                Files.setPosixFilePermissions(place, PosixFilePermissions.fromString("rw-------"));
                if (!Integer.valueOf(uid).equals(Files.getAttribute(place, OWNER))) {
                    Files.setAttribute(place, OWNER, uid);
                }
            }
            final Path fresh = directory.root().resolve(Abi.SPACE_NAME + ".new");
            Files.writeString(fresh, "pipe " + pipe + "\nreserve " + space.reservePercent() + "\nplaces "
                + space.placesText() + "\nuid " + Integer.toUnsignedString(uid) + "\n", StandardCharsets.UTF_8);
            Files.setPosixFilePermissions(fresh, PosixFilePermissions.fromString("rw-r--r--"));
            Files.move(fresh, of(directory), StandardCopyOption.ATOMIC_MOVE);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Nobody goes inside from here on. */
    static void remove(final RuntimeDirectory directory) {
        try {
            Files.deleteIfExists(of(directory));
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path of(final RuntimeDirectory directory) {
        return directory.root().resolve(Abi.SPACE_NAME);
    }
}
