/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

/**
 * Takes events for the journal, in the order of the calls. Never blocks: an event that finds no room is lost, and the
 * caller is told. Implemented by {@link JournalRing}; one thread.
 */
public interface EventWriter {
    /**
     * Writes an event without text. Allocates nothing.
     *
     * @param kind      what happened
     * @param timeNs    when, CLOCK_MONOTONIC ns
     * @param gpu       index of the GPU or 0
     * @param flags     record flags or 0
     * @param taskId    task or 0
     * @param ticket    segment or 0
     * @param contextId context or 0
     * @param clientId  client or 0
     * @param arg0      see {@link EventKind}
     * @param arg1      see {@link EventKind}
     * @param arg2      see {@link EventKind}
     * @return false if there was no room and the event is lost
     */
    boolean write(EventKind kind, long timeNs, int gpu, int flags, int taskId, long ticket, int contextId, int clientId,
        long arg0, long arg1, long arg2);

    /**
     * Writes an event with text. Allocates, so not for the hot path.
     *
     * @param kind      what happened
     * @param timeNs    when, CLOCK_MONOTONIC ns
     * @param gpu       index of the GPU or 0
     * @param taskId    task or 0
     * @param contextId context or 0
     * @param clientId  client or 0
     * @param arg0      see {@link EventKind}
     * @param arg1      see {@link EventKind}
     * @param text      what a human should read; cut after {@link JournalRing#TEXT_MAX} bytes
     * @return false if there was no room and the event is lost
     */
    boolean writeText(EventKind kind, long timeNs, int gpu, int taskId, int contextId, int clientId, long arg0,
        long arg1, String text);
}
