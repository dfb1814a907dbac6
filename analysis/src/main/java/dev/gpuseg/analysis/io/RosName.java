/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.core.TaskName;
import java.nio.charset.StandardCharsets;

/** Names of ROS 2 nodes and callback groups as names of tasks. Stateless. */
final class RosName {
    /** Of a long name: what stands beside {@code ~hash~}. */
    private static final int SHOWN = TaskName.BYTES_MAX - 10;
    private static final int HALF_HASH = 32;
    private static final long HASH_BASIS = 0xcbf29ce484222325L;
    private static final long HASH_PRIME = 0x100000001b3L;

    private RosName() {
    }

    /**
     * The name under which {@code gpuseg_ros2.hpp} registers: one that is too long becomes {@code head~hash~tail},
     * still readable, and another one for another name. By {@code task_name} there.
     *
     * @param text any name
     * @return the same if it has at most {@link TaskName#BYTES_MAX} bytes of UTF-8, else one of at most so many
     */
    static String shortened(final String text) {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= TaskName.BYTES_MAX) {
            return text;
        }
        long hash = HASH_BASIS;
        for (final byte b : bytes) {
            hash = (hash ^ (b & 0xff)) * HASH_PRIME;
        }
        int head = SHOWN / 2;
        while (head > 0 && isWithinCharacter(bytes[head])) {
            head--;
        }
        int tail = bytes.length - (SHOWN - SHOWN / 2);
        while (tail < bytes.length && isWithinCharacter(bytes[tail])) {
            tail++;
        }
        return new String(bytes, 0, head, StandardCharsets.UTF_8)
            + String.format("~%08x~", (int) (hash ^ hash >>> HALF_HASH))
            + new String(bytes, tail, bytes.length - tail, StandardCharsets.UTF_8);
    }

    private static boolean isWithinCharacter(final byte b) {
        return (b & 0xc0) == 0x80;
    }
}
