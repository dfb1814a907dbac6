/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.mechanisms.amd.AmdGauge;
import dev.gpuseg.tools.bench.EnforcementCosts;
import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * A process that is never disabled, and that counts its kernels in a mapped file: how long it stands still while others
 * are switched. A thread looks at its count every 20 us or so; what the operating system keeps it from seeing makes a
 * standstill look longer, never shorter than it was by more than one look.
 */
public final class Witness implements AutoCloseable {
    private static final long LOOK_NS = 20_000;
    private static final long SHORTEST_NS = 100_000;
    private static final int MOST = 1_000_000;
    private static final long ADVANCED = 2;   // one may end as the change begins

    private record Span(long fromNs, long toNs) {
        long ns() {
            return toNs - fromNs;
        }
    }

    private final UnsafeBuffer page;
    private final List<Span> still = new ArrayList<>();     // the thread's, until it has ended
    private final List<Span> changes = new ArrayList<>();
    private final Thread thread;
    private int advanced;
    private volatile boolean running = true;

    /**
     * Starts to look.
     *
     * @param file   mapped by the process
     * @param offset of its count: 8 bytes in this machine's order, a multiple of 8
     * @throws IllegalArgumentException if there is no such place
     * @throws IOException if the file cannot be mapped
     */
    public Witness(final Path file, final long offset) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            if (offset < 0 || offset % Long.BYTES != 0 || channel.size() < offset + Long.BYTES) {
                throw new IllegalArgumentException("--witness: offset " + offset + " of " + file + " (" + channel.size()
                    + " bytes): it must be a multiple of 8 and leave room for 8 bytes");
            }
            final MappedByteBuffer map = channel.map(FileChannel.MapMode.READ_ONLY, offset, Long.BYTES);
            page = new UnsafeBuffer(map);
        }
        thread = new Thread(this::look, "gpuseg-witness");
        thread.setDaemon(true);
        thread.start();
    }

    /** Kernels so far. */
    long count() {
        return page.getLongVolatile(0);
    }

    private void look() {
        long known = count();
        long sinceNs = System.nanoTime();
        while (running) {
            final long now = count();
            if (now != known) {
                final long nowNs = System.nanoTime();
                if (nowNs - sinceNs >= SHORTEST_NS && still.size() < MOST) {
                    still.add(new Span(sinceNs, nowNs));
                }
                known = now;
                sinceNs = nowNs;
            }
            LockSupport.parkNanos(LOOK_NS);
        }
        still.add(new Span(sinceNs, System.nanoTime()));
    }

    /** Takes note of what others had to bear. */
    void changed(final AmdGauge.Change change) {
        advanced += change.counted() >= ADVANCED ? 1 : 0;
        changes.add(new Span(change.beganNs(), change.doneNs()));
    }

    /**
     * Ends the look.
     *
     * @return the longest standstills that fell together with a change, one figure a change; those that met none; in
     *     how many changes it continued nevertheless
     * @throws IllegalStateException if it never counted
     */
    ObjectNode result() throws InterruptedException {
        close();
        thread.join();
        if (still.size() < 2) {
            throw new IllegalStateException("--witness: the count does not change; name the file and the offset of a "
                + "process that uses the GPU and is not disabled");
        }
        final long[] during = changes.stream().mapToLong(c -> still.stream().filter(s -> s.fromNs - c.toNs < 0
            && s.toNs - c.fromNs > 0).mapToLong(Span::ns).max().orElse(0)).toArray();
        final long[] quiet = still.stream().filter(s -> changes.stream().noneMatch(c -> s.fromNs - c.toNs < 0
            && s.toNs - c.fromNs > 0)).mapToLong(Span::ns).toArray();
        final ObjectNode into = JsonNodeFactory.instance.objectNode();
        into.set("still_during_changes_ns", EnforcementCosts.figures(during));
        into.set("still_otherwise_ns", EnforcementCosts.figures(quiet));
        return into.put("changes", changes.size()).put("changes_in_which_it_went_on", advanced);
    }

    @Override
    public void close() {
        running = false;
    }
}
