/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import java.util.List;

/**
 * Hypothesis M10 of the analyses of preemptive windows ({@code analysis/docs/window.md}): all tasks of a process share
 * its context on a GPU, so that none of them can be preempted for another one. Declared real-time tasks may share one:
 * the analysis then contains the waiting ({@code analysis/docs/processes.md}), or refuses the set. A best-effort task
 * may not, because it continues while a real-time task of its process has the GPU, and nothing bounds its windows. A
 * task that is known by its budget alone may not either: demotion at its end does not take the context from it.
 */
final class SharedProcesses {
    private SharedProcesses() {
    }

    /**
     * What speaks against the hypothesis.
     *
     * @param admitted every open task with the process that registered it; of kept places the process is not known
     * @return one line, empty if it holds
     */
    static String conflict(final List<Admitted> admitted) {
        for (int i = 0; i < admitted.size(); i++) {
            final Admitted a = admitted.get(i);
            for (int k = i + 1; k < admitted.size(); k++) {
                final Admitted b = admitted.get(k);
                if (a.pid() > 0 && a.pid() == b.pid() && a.request().gpu() == b.request().gpu()
                    && (a.isRealTime() || b.isRealTime()) && !(isBounded(a) && isBounded(b))) {
                    return "tasks " + describe(a) + " and " + describe(b) + " are both open in process " + a.pid()
                        + " and share its context on GPU " + a.request().gpu() + ", where neither preempts the other; "
                        + "use two processes, declare both in the task-set file, or use mechanism gate";
                }
            }
        }
        return "";
    }

    private static boolean isBounded(final Admitted task) {
        return task.isRealTime() && task.source() == Admitted.Source.DECLARED;
    }

    private static String describe(final Admitted task) {
        return "\"" + task.request().name() + "\" (" + (task.isRealTime() ? "priority " + task.priority()
            : "best effort") + ")";
    }
}
