/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import java.util.EnumSet;
import java.util.Set;

/** What the conductor counts. */
public enum ConductorCounter {
    CLIENTS_OPENED("clients registered"),
    CLIENTS_CLOSED("clients that disconnected"),
    CLIENTS_DIED("clients whose process died"),
    CLIENTS_POISONED("clients dropped because of invalid records or memory"),
    CLIENTS_REFUSED("registrations refused: quota, name, version or space"),
    TASKS_OPENED("tasks opened"),
    TASKS_REFUSED("tasks refused: invalid, quota or admission"),
    TASKS_NOT_ADMITTED("tasks refused by admission"),
    LIMITS_REFUSED("tasks refused because of a limit of their user"),
    TASKS_CLOSED("tasks closed by their client"),
    QUEUE_FILES("files of their queues handed to clients that cannot open them by path"),
    PROTOCOL_ERRORS("malformed packets, each ending its connection"),
    ADMIN_REQUESTS("administrators' commands"),
    ADMIN_REFUSED("commands refused because too many of their user, or of all, wait or were not read"),
    UNREAD_DROPPED("connections closed because their unread replies need too much memory"),
    CONNECTIONS_REFUSED("connections refused because their user has too many"),
    RATE_LIMITED("requests refused because their user sends too many"),
    ACCEPT_ERRORS("connections that could not be accepted for lack of descriptors or memory"),
    CLEANUP_ERRORS("files or descriptors of a closed client that could not be removed");

    /** What rises where all goes well. */
    private static final Set<ConductorCounter> ORDINARY = EnumSet.of(CLIENTS_OPENED, CLIENTS_CLOSED, TASKS_OPENED,
        TASKS_CLOSED, QUEUE_FILES, ADMIN_REQUESTS);

    private final String description;

    ConductorCounter(final String description) {
        this.description = description;
    }

    /** What it counts. */
    public String description() {
        return description;
    }

    /** Whether it says that something went wrong: it stays 0 where all goes well. */
    public boolean isTrouble() {
        return !ORDINARY.contains(this);
    }
}
