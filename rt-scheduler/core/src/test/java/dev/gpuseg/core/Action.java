/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** One step of a random history, in raw numbers; {@link Rig} gives them a meaning that fits the moment. */
record Action(Op op, int pick, int priority, int length, int spice, int stepNs) {
    enum Op {
        BEGIN, END, CANCEL, TIMER, ADD_TASK, REMOVE_TASK, ADD_CONTEXT, REMOVE_CONTEXT, SET_KIND, SET_PRIORITY,
        SET_POLICY
    }
}
