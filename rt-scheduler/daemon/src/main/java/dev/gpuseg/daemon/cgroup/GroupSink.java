/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

/** Where a follower's findings go. Called on the follower's thread; a group is defined before it is assigned. */
public interface GroupSink {
    /**
     * A group exists, or its rule is another one.
     *
     * @param groupId from 1; used again once the group is empty
     * @param rule    its weight and cap
     */
    void define(int groupId, GroupRule rule);

    /**
     * A process is in a group now.
     *
     * @param process   which
     * @param groupId   its group
     * @param isProtected whether its contexts are never to be disabled
     */
    void assign(ProcessView process, int groupId, boolean isProtected);
}
