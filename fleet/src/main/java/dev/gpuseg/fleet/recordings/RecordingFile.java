/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.stream.Stream;

/**
 * A file that should be a recording.
 *
 * @param path    where it lies; every executor must see it there
 * @param name    relative to the directory of all recordings, with {@code /}
 * @param robot   from a directory {@code robot=NAME} above it; null = no such directory
 * @param version from a directory {@code version=NAME} above it; null = no such directory
 * @param bytes   size
 */
public record RecordingFile(String path, String name, String robot, String version, long bytes)
    implements Serializable {
    private static final String SUFFIX = ".gpuseg";

    /**
     * All files below a directory whose names end in {@code .gpuseg}.
     *
     * @param directory of the recordings
     * @return ordered by name
     * @throws IOException if it is no directory or cannot be read
     */
    public static List<RecordingFile> below(final Path directory) throws IOException {
        if (!Files.isDirectory(directory)) {
            throw new NotDirectoryException(directory + ": no directory; name the one that contains the recordings");
        }
        final List<RecordingFile> found = new ArrayList<>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (final Path file : files.filter(f -> f.toString().endsWith(SUFFIX)).filter(Files::isRegularFile)
                .toList()) {
                found.add(of(directory, file));
            }
        }
        found.sort(Comparator.comparing(RecordingFile::name));
        return found;
    }

    private static RecordingFile of(final Path directory, final Path file) throws IOException {
        final Path relative = directory.relativize(file);
        String robot = null;
        String version = null;
        for (int i = 0; i < relative.getNameCount() - 1; i++) {
            final String part = relative.getName(i).toString();
            if (part.startsWith("robot=")) {
                robot = part.substring("robot=".length());
            } else if (part.startsWith("version=")) {
                version = part.substring("version=".length());
            }
        }
        return new RecordingFile(file.toAbsolutePath().toString(), relative.toString().replace('\\', '/'), robot,
            version, Files.size(file));
    }

    /**
     * Divides files into parts of about equal sizes: the largest first, each to the smallest part.
     *
     * @param files all
     * @param count at least 1
     * @return at most so many parts, none empty, the files of each ordered by name
     */
    static List<ArrayList<RecordingFile>> divide(final List<RecordingFile> files, final int count) {
        /** A part with its size so far. */
        record Part(int number, long[] bytes, ArrayList<RecordingFile> files) {
        }
        final PriorityQueue<Part> smallest = new PriorityQueue<>(Comparator.comparingLong((Part p) -> p.bytes[0])
            .thenComparingInt(Part::number));
        final List<Part> parts = new ArrayList<>();
        for (int i = 0; i < Math.min(count, files.size()); i++) {
            parts.add(new Part(i, new long[1], new ArrayList<>()));
        }
        smallest.addAll(parts);
        final List<RecordingFile> largestFirst = new ArrayList<>(files);
        largestFirst.sort(Comparator.comparingLong(RecordingFile::bytes).reversed()
            .thenComparing(RecordingFile::name));
        for (final RecordingFile file : largestFirst) {
            final Part part = smallest.remove();
            part.files.add(file);
            part.bytes[0] += file.bytes();
            smallest.add(part);
        }
        parts.forEach(part -> part.files.sort(Comparator.comparing(RecordingFile::name)));
        return parts.stream().map(Part::files).toList();
    }
}
