/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import dev.gpuseg.mechanisms.Layouts;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The accounts of control groups, by the inode of their directory: as many as the kernel keeps, the last that changed.
 * Groups come and go with every pod and job, and the kernel drops an account that it has no place for without a word.
 * Any thread may call any method.
 */
final class GroupAccounts {
    /** {@code GPUSEG_OBSERVER_GROUPS_MAX}. */
    static final int MOST = Layouts.OBSERVER_GROUPS_MAX;

    /** In the order of their last change. */
    private final Map<Long, GroupAccount> accounts = new LinkedHashMap<>();

    synchronized void put(final GroupAccount account) {
        accounts.remove(account.cgroup());
        if (accounts.size() == MOST) {
            accounts.remove(accounts.keySet().iterator().next());
        }
        accounts.put(account.cgroup(), account);
    }

    synchronized void remove(final long cgroup) {
        accounts.remove(cgroup);
    }

    synchronized void clear() {
        accounts.clear();
    }

    /** Null if there is none. */
    synchronized GroupAccount get(final long cgroup) {
        return accounts.get(cgroup);
    }

    synchronized int size() {
        return accounts.size();
    }
}
