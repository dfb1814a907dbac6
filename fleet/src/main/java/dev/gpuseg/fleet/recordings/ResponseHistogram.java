/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.io.Externalizable;
import java.io.IOException;
import java.io.ObjectInput;
import java.io.ObjectOutput;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.stream.IntStream;

/**
 * Counts of durations in buckets of at most 0.1 % of their value (exact below 2,048 ns). Histograms of parts give the
 * histogram of the whole exactly, in any order, so a quantile does not depend on how the work was divided. The smallest
 * and the largest duration are exact. Its memory grows with the different durations, not with their number. Not
 * thread-safe.
 */
public final class ResponseHistogram implements Externalizable {
    private static final long serialVersionUID = 1;
    private static final int BITS = 10;
    private static final int EMPTY = -1;
    private static final int FIRST_SIZE = 16;

    private int[] keys;
    private long[] counts;
    private int used;
    private long total;
    private long minNs;
    private long maxNs;

    /** An empty one. */
    public ResponseHistogram() {
        clear(FIRST_SIZE);
        minNs = Long.MAX_VALUE;
    }

    private void clear(final int size) {
        keys = new int[size];
        counts = new long[size];
        Arrays.fill(keys, EMPTY);
        used = 0;
    }

    /** Counts a duration of 0 ns or more. */
    public void add(final long ns) {
        if (ns < 0) {
            throw new IllegalArgumentException("a duration is " + ns + " ns; it must be 0 or more");
        }
        add(bucket(ns), 1);
        total++;
        minNs = Math.min(minNs, ns);
        maxNs = Math.max(maxNs, ns);
    }

    /** Adds the counts of another one. */
    public void add(final ResponseHistogram other) {
        for (int i = 0; i < other.keys.length; i++) {
            if (other.keys[i] != EMPTY) {
                add(other.keys[i], other.counts[i]);
            }
        }
        total += other.total;
        minNs = Math.min(minNs, other.minNs);
        maxNs = Math.max(maxNs, other.maxNs);
    }

    private void add(final int key, final long count) {
        int at = slot(key);
        if (keys[at] == EMPTY) {
            if (2 * (used + 1) > keys.length) {
                grow();
                at = slot(key);
            }
            keys[at] = key;
            used++;
        }
        counts[at] += count;
    }

    private int slot(final int key) {
        int at = key * 0x9E3779B9 >>> 1 & keys.length - 1;
        while (keys[at] != EMPTY && keys[at] != key) {
            at = at + 1 & keys.length - 1;
        }
        return at;
    }

    private void grow() {
        final int[] oldKeys = keys;
        final long[] oldCounts = counts;
        clear(2 * oldKeys.length);
        for (int i = 0; i < oldKeys.length; i++) {
            if (oldKeys[i] != EMPTY) {
                add(oldKeys[i], oldCounts[i]);
            }
        }
    }

    private static int bucket(final long ns) {
        final int shift = Math.max(0, Long.SIZE - Long.numberOfLeadingZeros(ns) - BITS - 1);
        return (shift << BITS) + (int) (ns >>> shift);
    }

    /** The largest duration of a bucket. */
    private static long top(final int bucket) {
        if (bucket < 2 << BITS) {
            return bucket;
        }
        final int shift = (bucket >> BITS) - 1;
        return ((long) (bucket - (shift << BITS)) + 1 << shift) - 1;
    }

    /** How many durations there are. */
    public long total() {
        return total;
    }

    /** The longest: ns, exact; 0 if there is none. */
    public long maxNs() {
        return maxNs;
    }

    /**
     * A quantile by nearest rank.
     *
     * @param share 0..1
     * @return ns, at most 0.1 % above the exact one; 0 if there is no duration
     */
    public long quantileNs(final double share) {
        if (total == 0) {
            return 0;
        }
        final long rank = Math.max(1, (long) Math.ceil(share * total));
        long seen = 0;
        for (final int at : sorted()) {
            seen += counts[at];
            if (seen >= rank) {
                return Math.max(minNs, Math.min(maxNs, top(keys[at])));
            }
        }
        return maxNs;
    }

    /** Slots in use, by bucket. */
    private int[] sorted() {
        return IntStream.range(0, keys.length).filter(i -> keys[i] != EMPTY).boxed()
            .sorted((a, b) -> Integer.compare(keys[a], keys[b])).mapToInt(Integer::intValue).toArray();
    }

    /** Its counts, for {@link #of}; equal histograms give equal bytes. */
    public byte[] toBytes() {
        final int[] slots = sorted();
        final ByteBuffer out = ByteBuffer.allocate(3 * Long.BYTES + slots.length * (Integer.BYTES + Long.BYTES));
        out.putLong(total).putLong(minNs).putLong(maxNs);
        for (final int at : slots) {
            out.putInt(keys[at]).putLong(counts[at]);
        }
        return out.array();
    }

    /** The reverse of {@link #toBytes}. */
    public static ResponseHistogram of(final byte[] bytes) {
        final ResponseHistogram histogram = new ResponseHistogram();
        histogram.read(bytes);
        return histogram;
    }

    private void read(final byte[] bytes) {
        final ByteBuffer in = ByteBuffer.wrap(bytes);
        total = in.getLong();
        minNs = in.getLong();
        maxNs = in.getLong();
        clear(FIRST_SIZE);
        while (in.hasRemaining()) {
            add(in.getInt(), in.getLong());
        }
    }

    @Override
    public void writeExternal(final ObjectOutput out) throws IOException {
        final byte[] bytes = toBytes();
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    @Override
    public void readExternal(final ObjectInput in) throws IOException {
        final byte[] bytes = new byte[in.readInt()];
        in.readFully(bytes);
        read(bytes);
    }
}
