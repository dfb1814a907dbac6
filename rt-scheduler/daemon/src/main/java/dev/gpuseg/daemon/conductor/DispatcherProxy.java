/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.ipc.platform.PeerCredentials;

/**
 * What the conductor asks of the dispatcher. Implementations enqueue, wake the dispatcher and return at once; called on
 * the conductor's threads only. Commands of one client arrive in the order of the calls.
 */
public interface DispatcherProxy {
    /**
     * Why a process cannot register, as far as is known now. Answers at once.
     *
     * @param pid a process that is about to register
     * @return one line; null if nothing speaks against it
     */
    default String refusal(final int pid) {
        return null;
    }

    /**
     * A client has registered: poll its queue, listen to its doorbell. It is the dispatcher's until {@link
     * ConductorProxy#clientRemoved}.
     */
    void addClient(Client client);

    /**
     * A client is gone or must go: read what is left in its queue (if it was not poisoned), drop its tasks and
     * contexts, forget its objects, then answer with {@link ConductorProxy#clientRemoved}. Asked exactly once per
     * client.
     *
     * @param clientId which
     * @param reason   one of {@link Removal}
     */
    void removeClient(int clientId, int reason);

    /**
     * Assigns id and slot, tells the client's queue ({@code openTask}) and answers with
     * {@link ConductorProxy#taskOpened}.
     *
     * @param request validated and admitted
     */
    void openTask(TaskOpen request);

    /**
     * Reads what is left in the client's queue, ends the task's segment, frees id and slot, and answers with
     * {@link ConductorProxy#taskClosed}. An id that the client does not own is answered with {@code -EINVAL}.
     *
     * @param correlation to be repeated in the answer
     * @param clientId    the client that asks
     * @param taskId      as the client sent it, not checked yet
     */
    void closeTask(long correlation, int clientId, int taskId);

    /**
     * An administrator's command; answered with {@link ConductorProxy#adminReply}.
     *
     * @param correlation to be repeated in the answer
     * @param peer        the process that asks
     * @param group       its control group
     * @param json        the text as received
     */
    void admin(long correlation, PeerCredentials peer, AskingGroup group, String json);
}
