/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/**
 * Decides whether a task may be opened. Runs on a thread of its own (one decision at a time, in order), so it may take
 * its time; the client waits for it, nobody else does.
 */
@FunctionalInterface
public interface AdmissionControl {
    /** Admits everything. */
    AdmissionControl ALL = request -> null;

    /**
     * Judges a request that is valid by itself.
     *
     * @param request the task
     * @return null to admit it, else one line why not, with value and remedy
     */
    String refuse(TaskOpen request);
}
