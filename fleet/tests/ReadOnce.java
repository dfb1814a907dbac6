/* SPDX-License-Identifier: Apache-2.0 */

import dev.gpuseg.tools.trace.RecordingRows;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** Reads recordings in one thread; started by {@code fleet/tests/read-once}. */
final class ReadOnce {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static long count;
    private static int unreadable;

    private interface Reader {
        void read(Path file) throws IOException;
    }

    private ReadOnce() {
    }

    public static void main(final String[] arguments) throws IOException {
        final List<Path> files;
        try (Stream<Path> all = Files.walk(Path.of(arguments[0]))) {
            files = all.filter(file -> file.toString().endsWith(".gpuseg")).sorted().toList();
        }
        measure("bytes", files, file -> {
            final byte[] buffer = new byte[1 << 16];
            try (InputStream in = Files.newInputStream(file)) {
                for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                    count += n;
                }
            }
        });
        measure("events", files, file -> Source.open(file).forEach(event -> count++));
        measure("rows", files, file -> RecordingRows.read(Source.open(file), new RecordingRows.Sink() {
            @Override
            public void job(final RecordingRows.Job job) {
                count++;
            }

            @Override
            public void segment(final RecordingRows.Segment segment) {
                count++;
            }

            @Override
            public void decision(final RecordingRows.Decision decision) {
                count++;
            }
        }));
    }

    private static void measure(final String what, final List<Path> files, final Reader reader) {
        count = 0;
        unreadable = 0;
        final long wallNs = System.nanoTime();
        final long beganNs = THREADS.getCurrentThreadCpuTime();
        for (final Path file : files) {
            try {
                reader.read(file);
            } catch (final IOException | RuntimeException e) {
                unreadable++;
            }
        }
        System.out.printf(Locale.ROOT, "%d files (%d unreadable): %,d %s in %.2f s of processor time, %.2f s%n", files
            .size(), unreadable, count, what, (THREADS.getCurrentThreadCpuTime() - beganNs) / 1e9,
            (System.nanoTime() - wallNs) / 1e9);
    }
}
