/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.io.LimitedFile;
import dev.gpuseg.analysis.io.ResultFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Results of single points on disk, so that a sweep can be stopped at any time and continued later. Each point is one
 * file. Its name contains everything that its numbers depend on; the file is moved into place when it is complete.
 */
final class PointStore {
    private final Path directory;

    PointStore(final Path directory) throws IOException {
        this.directory = directory;
        Files.createDirectories(directory);
    }

    /** The stored numbers of a point, or null if it is not there or has other columns. */
    Map<String, Long> load(final String key, final List<String> columns) throws IOException {
        final Path file = directory.resolve(key + ".csv");
        if (!Files.exists(file)) {
            return null;
        }
        final List<String> lines = LimitedFile.lines(file);
        if (lines.size() != 2 || !lines.get(0).equals(String.join(",", columns))) {
            return null;
        }
        final String[] cells = lines.get(1).split(",", -1);
        if (cells.length != columns.size()) {
            return null;
        }
        final Map<String, Long> values = new LinkedHashMap<>();
        for (int i = 0; i < cells.length; i++) {
            values.put(columns.get(i), Long.parseLong(cells[i]));
        }
        return values;
    }

    void save(final String key, final Map<String, Long> values) throws IOException {
        ResultFile.write(directory.resolve(key + ".csv"), String.join(",", values.keySet()) + "\n"
            + String.join(",", values.values().stream().map(String::valueOf).toList()) + "\n");
    }
}
