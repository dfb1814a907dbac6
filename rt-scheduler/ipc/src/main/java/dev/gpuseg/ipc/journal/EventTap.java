/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

/** Receives every event of a running daemon on the journal's thread, off the hot path; used by metrics. */
@FunctionalInterface
public interface EventTap {
    /**
     * One event, in order. Must not block: meanwhile events collect in the ring, and are dropped when it is full. A tap
     * that throws is removed; the journal continues.
     *
     * @param event reused for the next one; {@link JournalEvent#copy} what must stay
     */
    void onEvent(JournalEvent event);
}
