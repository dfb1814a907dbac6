/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/**
 * What the dispatcher answers to the conductor. Calls enqueue, wake the conductor and return at once; they may come
 * from the dispatcher thread and from others. They allocate, and are made for rare events only.
 */
public interface ConductorProxy {
    /**
     * Answers {@link DispatcherProxy#openTask}.
     *
     * @param correlation of the request
     * @param status      0, or a negative errno
     * @param taskId      the task's id, 0 if refused
     * @param slot        its slot in the session
     * @param text        one line: why it was refused, value and remedy; else empty
     */
    void taskOpened(long correlation, int status, int taskId, int slot, String text);

    /**
     * Answers {@link DispatcherProxy#closeTask}.
     *
     * @param correlation of the request
     * @param status      0, or a negative errno
     * @param text        one line, or empty
     */
    void taskClosed(long correlation, int status, String text);

    /**
     * A client broke the rules. The dispatcher has called {@code session.poison} and polls it no more; the conductor
     * hangs up and asks for its removal ({@link Removal#POISONED}).
     *
     * @param clientId which
     * @param code     {@code Abi.POISON_*}
     * @param text     one line: what it did
     */
    void poisoned(int clientId, int code, String text);

    /** Answers {@link DispatcherProxy#removeClient}: the dispatcher has let go of all objects of the client. */
    void clientRemoved(int clientId);

    /**
     * Answers {@link DispatcherProxy#admin}.
     *
     * @param correlation of the request
     * @param status      0, or a negative errno
     * @param json        any length; sent in as many packets as needed
     */
    void adminReply(long correlation, int status, String json);
}
