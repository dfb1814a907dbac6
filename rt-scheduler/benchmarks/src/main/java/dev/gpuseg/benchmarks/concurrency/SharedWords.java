/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks.concurrency;

import org.agrona.concurrent.UnsafeBuffer;

/** One slot, the sleeping flag and a queue's next header, at the distances they have in shared memory. */
class SharedWords {
    static final int GRANT = 0;
    static final int TASK_ID = 16;
    static final int GPU = 20;
    static final int WAITING = 64;
    static final int SLEEPING = 128;
    static final int HEADER = 192;
    static final int RECORD = 196;

    final UnsafeBuffer words = new UnsafeBuffer(new byte[256]);
}
