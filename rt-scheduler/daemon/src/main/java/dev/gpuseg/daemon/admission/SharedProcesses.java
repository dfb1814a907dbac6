/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import java.util.List;

/**
 * Hypothesis M10 of the analyses of preemptive windows ({@code analysis/docs/window.md}): one GPU context for each
 * task. All tasks of a process share its context on a GPU, so that none of them can be preempted for another one. That
 * holds for best-effort tasks, too: they continue while a real-time task of their process has the GPU.
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
                    && (a.isRealTime() || b.isRealTime())) {
                    return "tasks " + describe(a) + " and " + describe(b) + " are both open in process " + a.pid()
                        + " and share its context on GPU " + a.request().gpu() + ", in which neither can be preempted "
                        + "for the other, so that nothing is proven; open them in different processes, or use the "
                        + "mechanism gate (level 1)";
                }
            }
        }
        return "";
    }

    private static String describe(final Admitted task) {
        return "\"" + task.request().name() + "\" (" + (task.isRealTime() ? "priority " + task.priority()
            : "best effort") + ")";
    }
}
