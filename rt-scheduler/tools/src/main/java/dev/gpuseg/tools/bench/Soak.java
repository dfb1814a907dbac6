/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.ToLongFunction;
import java.util.stream.LongStream;

/** The daemon's memory and files over a long run, looked at once a second. */
public final class Soak {
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int POINTS = 60;

    private record Sample(long atNs, long rssKib, long anonKib, long heapKib, int queueFiles, int journalFiles) {
    }

    private final LoadRig rig;
    private final long startNs = System.nanoTime();
    private final List<Sample> samples = new ArrayList<>();
    private final Set<Path> queueFiles = new HashSet<>();
    private final Set<Path> journalFiles = new HashSet<>();

    Soak(final LoadRig rig) {
        this.rig = rig;
    }

    /** Looks. Files that come and go between two looks are not seen. */
    void sample() throws IOException {
        final List<Path> queues = rig.queueFiles();
        final List<Path> journal = rig.journalFiles();
        queueFiles.addAll(queues);
        journalFiles.addAll(journal);
        samples.add(new Sample(System.nanoTime() - startNs, rig.processFigure("VmRSS"), rig.processFigure("RssAnon"),
            rig.live().path("daemon").path("heap_used_bytes").asLong() >> 10, queues.size(), journal.size()));
    }

    /**
     * Adds the figures. Private memory is judged: pages of mapped queues and of the journal belong to files that are
     * bounded otherwise. Growth is the last quarter's mean against the second one's, when classes are loaded and
     * buffers are touched. The heap falls at each collection: its lowest value in a quarter is what stays in use.
     */
    void report(final ObjectNode result) {
        final int quarter = samples.size() / 4;
        final long second = mean(quarter, 2 * quarter);
        final long last = mean(3 * quarter, samples.size());
        result.put("anon_kib_second_quarter", second).put("anon_kib_last_quarter", last);
        result.put("anon_growth_kib", quarter == 0 ? 0 : last - second);
        result.put("heap_kib_low_second_quarter", values(quarter, 2 * quarter, Sample::heapKib).min().orElse(0));
        result.put("heap_kib_low_last_quarter", values(3 * quarter, samples.size(), Sample::heapKib).min().orElse(0));
        result.put("queue_files_most", values(0, samples.size(), Sample::queueFiles).max().orElse(0));
        result.put("queue_files_seen", queueFiles.size());
        result.put("journal_files_most", values(0, samples.size(), Sample::journalFiles).max().orElse(0));
        result.put("journal_files_seen", journalFiles.size());
        final ArrayNode series = result.putArray("samples");
        for (int i = 0; i < samples.size(); i += Math.max(1, samples.size() / POINTS)) {
            final Sample s = samples.get(i);
            series.addObject().put("s", s.atNs / NS_PER_S).put("rss_kib", s.rssKib).put("anon_kib", s.anonKib)
                .put("heap_kib", s.heapKib).put("queue_files", s.queueFiles).put("journal_files", s.journalFiles);
        }
    }

    private long mean(final int from, final int to) {
        return (long) values(from, to, Sample::anonKib).average().orElse(0);
    }

    private LongStream values(final int from, final int to, final ToLongFunction<Sample> what) {
        return samples.subList(from, Math.max(from, to)).stream().mapToLong(what);
    }
}
