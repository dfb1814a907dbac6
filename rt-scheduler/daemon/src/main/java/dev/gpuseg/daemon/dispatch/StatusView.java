/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * What an asking process may see of clients and tasks.
 *
 * @param all   everything
 * @param uid   else what belongs to this user
 * @param group and runs in this control group, empty if that is not known; null for any
 */
public record StatusView(boolean all, int uid, String group) {
    /** Of administrators. */
    public static final StatusView ALL = new StatusView(true, -1, null);

    /** Of a user of this machine. */
    public static StatusView ofUser(final int uid) {
        return new StatusView(false, uid, null);
    }

    /** Of a process in a container: users of others, and of the machine, have the same numbers. */
    public static StatusView ofGroup(final int uid, final String group) {
        return new StatusView(false, uid, group);
    }

    /** Whether things of a user may be shown; with a group, some of them. */
    boolean covers(final int user) {
        return all || user == uid;
    }
}
