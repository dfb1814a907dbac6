/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.CallChoice;
import dev.gpuseg.core.Priority;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.metrics.JobAccount;

/** One open task, as the dispatcher keeps it. Dispatcher thread only. */
final class TaskEntry {
    final int id;
    final ClientEntry client;
    final TaskSlot slot;
    final int contextId;
    final TaskOpen request;
    /** Whose share it uses, {@link ShareAccounts#NONE} if its user has no limit. */
    final int shareAccount;
    /** What the task was opened with or an administrator set; a demotion by the scheduler changes neither. */
    int priority;
    int gpuPriority;
    /** Its begin waits for a grant that is decided but not enforced yet. */
    boolean grantPending;
    /** The begun segment did not wait. */
    boolean optimistic;
    /** A segment of it was begun without waiting. */
    boolean begunUnasked;
    /** Whether best effort, or a lower task that has the GPU, is disabled for its segments. */
    final CallChoice calls = new CallChoice();
    /** How long the begun segment may go without, ns from {@link #beganNs}; 0 not at all. */
    long patienceNs;
    /** When it began, CLOCK_MONOTONIC ns. */
    long beganNs;
    /** What it takes says whether segments need the call: nothing but best effort can disturb it. */
    boolean isTrial;
    /** About the shortest of its latest segments, from begin to end, ns. */
    long shortestNs = Long.MAX_VALUE / 2;
    /** A lower task had the GPU then. */
    boolean meetsLower;
    long preemptionsBefore;
    long ticket;
    /** A segment that the daemon ended or refused without its client's doing: its END is no offence. */
    long forcedTicket;
    long jobReleaseNs;
    /** What counts as a job and as a miss. */
    final JobAccount account = new JobAccount();
    long segments;
    long preemptions;
    long overruns;
    /** Jobs above the bound of its admission. */
    long boundsBroken;
    /** Begins for which lower work was disabled ahead of time; of these, those that did not come. */
    long anticipated;
    long anticipationsWasted;
    /** Expected begins for which the budget did not allow it. */
    long anticipationsOverBudget;
    /** For how long the GPU was reserved for its begins, ns. */
    long reservedNs;
    /** Response times of jobs, ns; a longer one counts as an hour. */
    final ResponseTimes responses;

    TaskEntry(final int id, final ClientEntry client, final TaskSlot slot, final int contextId,
        final TaskOpen request) {
        this(id, client, slot, contextId, request, ShareAccounts.NONE, new ResponsePages());
    }

    TaskEntry(final int id, final ClientEntry client, final TaskSlot slot, final int contextId,
        final TaskOpen request, final int shareAccount, final ResponsePages pages) {
        this.shareAccount = shareAccount;
        responses = new ResponseTimes(pages);
        this.id = id;
        this.client = client;
        this.slot = slot;
        this.contextId = contextId;
        this.request = request;
        priority = request.priority();
        gpuPriority = request.gpuPriority();
    }

    int clientId() {
        return client.client.clientId();
    }

    int gpu() {
        return request.gpu();
    }

    boolean isRealTime() {
        return Priority.isRealTime(priority);
    }

    /** The rank that counts on the GPU: 0 best effort, or room of its own, 1..99. */
    int gpuRank() {
        return isRealTime() && request.reserve() == 0 ? gpuPriority > 0 ? gpuPriority : priority : 0;
    }

    /** A response time of the account, which may be {@link JobAccount#NONE}. */
    void responded(final long responseNs) {
        if (responseNs != JobAccount.NONE) {
            responses.record(responseNs);
        }
    }
}
