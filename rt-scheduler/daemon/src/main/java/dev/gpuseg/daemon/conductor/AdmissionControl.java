/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/**
 * Decides whether a task may be opened. All methods are called on a thread of their own (one at a time, in order), so
 * they may take their time; only the client waits for it.
 */
@FunctionalInterface
public interface AdmissionControl {
    /** Admits everything. */
    AdmissionControl ALL = (request, client) -> null;

    /**
     * Judges a request that is valid by itself.
     *
     * @param request the task
     * @param client  the client that asks; pid, uid and gid are the kernel's
     * @return null to admit it, else one line why not, with value and remedy
     */
    String refuse(TaskOpen request, Client client);

    /**
     * An admitted task was opened. Its client is told when this returns.
     *
     * @param request as admitted
     * @param taskId  its id
     */
    default void opened(final TaskOpen request, final int taskId) {
    }

    /** An admitted task was closed, or could not be opened after all. */
    default void closed(final int clientId, final String name) {
    }

    /** A client and all its tasks are gone; the reason is one of {@link Removal}. */
    default void clientGone(final int clientId, final int reason) {
    }
}
