/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.conductor.TaskOpen;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The accounts of users whose real-time segments may use a share of each GPU only: one for each user, with the most
 * generous share that any open task of his has by its groups. An account outlives its tasks: closing and opening them
 * does not renew its credit. When all are taken, the one goes that was without tasks for longest. Dispatcher thread
 * only; rare, may allocate.
 */
final class ShareAccounts {
    /** No account: no limit. */
    static final int NONE = 0;

    private static final class Account {
        final int id;
        int tasks;
        int percent = TaskOpen.WHOLE_GPU;

        Account(final int id) {
            this.id = id;
        }
    }

    private final SegmentScheduler scheduler;
    private final DispatcherJournal journal;
    private final CycleClock clock;
    private final int most;
    /** By user; those without tasks in the order in which they lost the last one. */
    private final Map<Integer, Account> accounts = new LinkedHashMap<>();

    /**
     * @param scheduler charges them
     * @param most      highest account
     * @param journal   where shares are written down
     * @param clock     of the duty cycle
     */
    ShareAccounts(final SegmentScheduler scheduler, final int most, final DispatcherJournal journal,
        final CycleClock clock) {
        this.scheduler = scheduler;
        this.most = most;
        this.journal = journal;
        this.clock = clock;
    }

    /**
     * A task is about to be opened; decisions may follow.
     *
     * @param uid   its user
     * @param share percent of each GPU
     * @return its account, {@link #NONE} if it has no limit
     */
    int open(final int uid, final int share) {
        if (share >= TaskOpen.WHOLE_GPU) {
            return NONE;
        }
        Account account = accounts.get(uid);
        if (account == null) {
            account = new Account(freeId());
            accounts.put(uid, account);
        }
        account.tasks++;
        if (account.tasks == 1 || share > account.percent) {
            account.percent = share;
            limit(account.id, share);
        }
        return account.id;
    }

    /** A task of this user and account was closed. */
    void close(final int uid, final int id) {
        final Account account = accounts.get(uid);
        if (id != NONE && account != null && --account.tasks == 0) {
            accounts.remove(uid);
            accounts.put(uid, account);   // the last to be reused
        }
    }

    /** More users than contexts cannot have open tasks, so that one is without. */
    private int freeId() {
        if (accounts.size() < most) {
            return accounts.size() + 1;
        }
        final Iterator<Account> all = accounts.values().iterator();
        while (all.hasNext()) {
            final Account account = all.next();
            if (account.tasks == 0) {
                all.remove();
                limit(account.id, TaskOpen.WHOLE_GPU);   // whoever has it next begins with a whole credit
                return account.id;
            }
        }
        throw new IllegalStateException("all " + most + " accounts have open tasks");
    }

    private void limit(final int id, final int percent) {
        scheduler.setShare(id, percent, clock.nowNs());
        journal.share(id, percent);
    }
}
