/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** What a context (all the work of one process on one GPU) is to the scheduler. */
public enum ContextKind {
    /** Of a process that registered: it may have tasks, and is disabled while it does not hold the GPU. */
    MANAGED,
    /** Of a process that never registered: best effort, or left alone, as {@link Unmanaged} says. It has no tasks. */
    UNMANAGED,
    /** Never disabled: display servers, compositors, a configured list. */
    PROTECTED
}
