/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.stream.Collectors;

/**
 * A set of CPUs, by the numbers that Linux gives them.
 *
 * @param cpus bit n is CPU n; not changed after the construction
 */
public record CpuSet(BitSet cpus) {
    /** CPUs that can be named, from 0. */
    public static final int LIMIT = 1024;

    private static final String ALLOWED = "Cpus_allowed_list:";

    /**
     * Reads a list as Linux writes it.
     *
     * @param list like {@code 2-5,8}
     * @return the set, never empty
     * @throws IllegalArgumentException if it is no such list
     */
    public static CpuSet parse(final String list) {
        final BitSet set = new BitSet();
        for (final String part : list.strip().split(",", -1)) {
            final String[] ends = part.split("-", -1);
            try {
                final int from = Integer.parseInt(ends[0]);
                final int to = Integer.parseInt(ends[ends.length - 1]);
                if (ends.length > 2 || from < 0 || to < from || to >= LIMIT) {
                    throw new NumberFormatException(part);
                }
                set.set(from, to + 1);
            } catch (final NumberFormatException e) {
                throw new IllegalArgumentException("\"" + list + "\" is no list of CPUs; write it like 2-5,8", e);
            }
        }
        return new CpuSet(set);
    }

    /**
     * Where the calling thread may run.
     *
     * @return at least one CPU
     * @throws IllegalStateException if {@code /proc} does not say
     */
    public static CpuSet allowed() {
        try {
            for (final String line : BoundedFile.lines(Path.of("/proc/thread-self/status"), StandardCharsets.UTF_8)) {
                if (line.startsWith(ALLOWED)) {
                    return parse(line.substring(ALLOWED.length()));
                }
            }
        } catch (final IOException e) {
            throw new IllegalStateException("/proc/thread-self/status: " + e.getMessage(), e);
        }
        throw new IllegalStateException("/proc/thread-self/status has no " + ALLOWED);
    }

    /**
     * Whether this machine has a CPU. A thread may move to CPUs outside its present mask, so the mask is not asked.
     *
     * @param cpu from 0
     * @return false if there is none of that number
     */
    public static boolean exists(final int cpu) {
        return cpu >= 0 && cpu < LIMIT && Files.isDirectory(Path.of("/sys/devices/system/cpu/cpu" + cpu));
    }

    /** The number of CPUs; at least 0. */
    public int count() {
        return cpus.cardinality();
    }

    /**
     * The CPU at an index of the ascending order.
     *
     * @param place 0..count - 1
     * @return its number
     */
    public int at(final int place) {
        return cpus.stream().skip(place).findFirst().orElseThrow();
    }

    /**
     * Without its first ones.
     *
     * @param first how many to leave out
     * @return the others, maybe none
     */
    public CpuSet without(final int first) {
        final BitSet rest = new BitSet();
        cpus.stream().skip(first).forEach(rest::set);
        return new CpuSet(rest);
    }

    @Override
    public String toString() {
        return cpus.stream().mapToObj(Integer::toString).collect(Collectors.joining(","));
    }
}
