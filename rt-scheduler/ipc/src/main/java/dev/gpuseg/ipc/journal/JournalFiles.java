/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Whether the files of a directory are those of a journal. The header of each of Chronicle's files names classes, which
 * Chronicle loads and initializes; so a file is opened only if its header is, but for positions, what
 * {@link JournalWriter} writes. Files that their owner changes after that are not caught.
 */
final class JournalFiles {
    static final String METADATA = "metadata.cq4t";
    private static final String CYCLE_SUFFIX = ".cq4";
    /** First document of the table, and of a cycle file with its positions as zeros: chronicle-queue 2026.4. */
    private static final byte[] METADATA_HEADER = HexFormat.of().parseHex(""
        + "94000040b906686561646572b607535453746f7265827e000000c87769726554797065b6085769726554797065ec4249"
        + "4e4152595f4c49474854c86d65746164617461b6075343514d6574618246000000c4726f6c6cb60853435153526f6c6c"
        + "8227000000c66c656e677468a6005c2605c6666f726d6174eb797979794d4d6464274627c565706f6368a100c8736f75"
        + "7263654964a1008f");
    private static final byte[] CYCLE_HEADER = HexFormat.of().parseHex(""
        + "c1000040b906686561646572b60853435153746f726582aa000000cd7772697465506f736974696f6e8e01000000008d"
        + "0200000000000000020000000000000000000000000000000000000000000000c8696e646578696e67b60c5343515349"
        + "6e646578696e67824c000000ca696e646578436f756e74a50010cc696e64657853706163696e67a50001cb696e646578"
        + "32496e6465788fa70000000000000000c96c617374496e6465788e00000000a70000000000000000ca64617461466f72"
        + "6d6174a101");
    /** Where the positions are: last written, its sequence, index, last index. */
    private static final int[] POSITIONS = {0x40, 0x48, 0x98, 0xb0};
    private static final int METADATA_BYTES = 1 << 17;
    private static final int META = 0x40000000;

    private JournalFiles() {
    }

    /** Refuses a directory that is no journal, or of which a file is of another kind. */
    static void require(final Path directory) {
        require(directory, Files::isReadable);
    }

    /** The same, for a user who may read what {@code readable} says: root, who runs many tests, may read all. */
    static void require(final Path directory, final Predicate<Path> readable) {
        if (Files.exists(directory) && !readable.test(directory)) {
            throw new IllegalArgumentException("journal " + directory + ": belongs to another user, as to the daemon "
                + "of `sudo gpuseg run`; use sudo here, too");
        }
        if (!Files.exists(directory.resolve(METADATA))) {
            throw new IllegalArgumentException("journal " + directory + ": no journal here; "
                + "name the directory that `gpuseg run --journal` used");
        }
        try (Stream<Path> files = Files.list(directory)) {
            final List<Path> cycles = files.filter(file -> file.toString().endsWith(CYCLE_SUFFIX)).toList();
            if (!isMetadata(begin(directory.resolve(METADATA), METADATA_BYTES))) {
                throw foreign(directory.resolve(METADATA));
            }
            for (final Path cycle : cycles) {
                if (!isCycle(begin(cycle, CYCLE_HEADER.length))) {
                    throw foreign(cycle);
                }
            }
        } catch (final IOException e) {
            throw new IllegalArgumentException("journal " + directory + ": cannot be read: " + e.getMessage(), e);
        }
    }

    private static IllegalArgumentException foreign(final Path file) {
        return new IllegalArgumentException("journal " + file.getParent() + ": " + file.getFileName()
            + " is not what gpuseg writes; name the directory that `gpuseg run --journal` used");
    }

    private static byte[] begin(final Path file, final int bytes) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            return in.readNBytes(bytes);
        }
    }

    /** A file that the daemon is making has no header yet. */
    private static boolean isCycle(final byte[] found) {
        if (found.length < CYCLE_HEADER.length) {
            return allZero(found);
        }
        for (final int at : POSITIONS) {
            Arrays.fill(found, at, at + Long.BYTES, (byte) 0);
        }
        return Arrays.equals(found, CYCLE_HEADER) || allZero(found);
    }

    private static boolean allZero(final byte[] bytes) {
        for (final byte b : bytes) {
            if (b != 0) {
                return false;
            }
        }
        return true;
    }

    /** The header, then documents that are a name and a 64-bit number each. */
    private static boolean isMetadata(final byte[] found) {
        if (found.length < METADATA_HEADER.length
            || !Arrays.equals(found, 0, METADATA_HEADER.length, METADATA_HEADER, 0, METADATA_HEADER.length)) {
            return false;
        }
        final ByteBuffer b = ByteBuffer.wrap(found).order(ByteOrder.LITTLE_ENDIAN);
        int at = METADATA_HEADER.length;
        while (at + Integer.BYTES <= found.length && b.getInt(at) != 0) {
            final int length = b.getInt(at);
            at += Integer.BYTES;
            if (length < 0 || length >= META || length > found.length - at || !isNumber(b, at, at + length)) {
                return false;
            }
            at = at + length + 3 & ~3;
        }
        return true;
    }

    /** B9, length, name, padding (8F; 8E and how much more), A7, value, padding. */
    private static boolean isNumber(final ByteBuffer b, final int from, final int end) {
        if (end - from < 2 || (b.get(from) & 0xff) != 0xb9 || b.get(from + 1) < 0) {
            return false;
        }
        int at = padding(b, from + 2 + b.get(from + 1), end);
        if (at > end - 1 - Long.BYTES || (b.get(at) & 0xff) != 0xa7) {
            return false;
        }
        at += 1 + Long.BYTES;
        return padding(b, at, end) == end;
    }

    private static int padding(final ByteBuffer b, final int from, final int end) {
        int at = from;
        while (at < end) {
            final int code = b.get(at) & 0xff;
            if (code == 0x8f) {
                at++;
            } else if (code == 0x8e && at + 5 <= end && b.getInt(at + 1) >= 0 && b.getInt(at + 1) <= end - at - 5) {
                at += 5 + b.getInt(at + 1);
            } else {
                return at;
            }
        }
        return at;
    }
}
