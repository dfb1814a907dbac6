/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

/**
 * The control group of a process that asks for something.
 *
 * @param path of the group, empty if it is not known
 * @param rule what the administrator says of it
 */
public record AskingGroup(String path, GroupRule rule) {
    /** One of which no rule speaks. */
    public static final AskingGroup FREE = new AskingGroup("/", GroupRule.DEFAULT);

    /**
     * Whether a rule says which priorities its tasks may have. Its processes then belong to a container, or to somebody
     * else who is no user of this machine: their numbers of users say nothing here, and root is no administrator.
     */
    public boolean isRuled() {
        return rule.limitsPriority();
    }
}
