/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

/** Sees every event of a running daemon on the journal's thread: metrics and accounts hang here, off the hot path. */
@FunctionalInterface
public interface EventTap {
    /**
     * One event, in order. Must not block: while it does, events pile up in the ring and are dropped when that is full.
     * A tap that throws is taken away; the journal goes on.
     *
     * @param event reused for the next one; {@link JournalEvent#copy} what must stay
     */
    void onEvent(JournalEvent event);
}
