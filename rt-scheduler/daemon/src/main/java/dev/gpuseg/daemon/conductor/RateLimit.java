/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/**
 * How often each user may ask for something that costs the daemon time: a bucket of tokens for each uid, filled at a
 * steady rate. One thread.
 */
final class RateLimit {
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int USERS_MAX = 4096;

    private final int burst;
    private final int perSecond;
    private final Map<Integer, Bucket> buckets = new HashMap<>();

    /** What a user has left. */
    private static final class Bucket {
        private double tokens;
        private long filledNs;
    }

    /**
     * A limit.
     *
     * @param burst     how many at once after a quiet time, at least 1
     * @param perSecond how many in the long run, at least 1
     */
    RateLimit(final int burst, final int perSecond) {
        this.burst = burst;
        this.perSecond = perSecond;
    }

    /**
     * Takes a token.
     *
     * @param uid   the user that asks
     * @param nowNs CLOCK_MONOTONIC
     * @return false if the user has none left
     */
    boolean allows(final int uid, final long nowNs) {
        if (buckets.size() >= USERS_MAX && !buckets.containsKey(uid)) {
            forgetQuiet(nowNs);
        }
        final Bucket bucket = buckets.computeIfAbsent(uid, ignored -> full(nowNs));
        fill(bucket, nowNs);
        if (bucket.tokens < 1) {
            return false;
        }
        bucket.tokens -= 1;
        return true;
    }

    private Bucket full(final long nowNs) {
        final Bucket bucket = new Bucket();
        bucket.tokens = burst;
        bucket.filledNs = nowNs;
        return bucket;
    }

    private void fill(final Bucket bucket, final long nowNs) {
        bucket.tokens = Math.min(burst, bucket.tokens + (double) (nowNs - bucket.filledNs) * perSecond / NS_PER_S);
        bucket.filledNs = nowNs;
    }

    /** Who has a full bucket loses nothing by being forgotten. */
    private void forgetQuiet(final long nowNs) {
        for (final Iterator<Bucket> each = buckets.values().iterator(); each.hasNext();) {
            final Bucket bucket = each.next();
            fill(bucket, nowNs);
            if (bucket.tokens >= burst) {
                each.remove();
            }
        }
    }

    /** The long-run rate per second. */
    int perSecond() {
        return perSecond;
    }
}
