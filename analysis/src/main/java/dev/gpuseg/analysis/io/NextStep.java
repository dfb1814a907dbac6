/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.TaskSet;

/** The last sentence of a report: what its reader does next. Stateless. */
final class NextStep {
    private NextStep() {
    }

    /**
     * Advises.
     *
     * @param set     the analysed set
     * @param verdict of the report
     * @param dossier what is known besides
     * @return one line, without a line end
     */
    static String of(final TaskSet set, final Verdict verdict, final Dossier dossier) {
        final String file = dossier.provenance() == null || dossier.provenance().files().isEmpty() ? "SET"
            : dossier.provenance().files().get(0).name();
        final String check = "`gpuseg trace check RECORDING --taskset " + file + "`";
        return "next: " + switch (verdict.kind()) {
            case NO_PROOF -> "leave out --analysis: what is sound for this set is analysed then";
            case REFUSED -> "make one of the changes that would help, or let --assign opa choose other priorities, and "
                + "analyse again; without a proof `gpuseg run --admission enforce` refuses the task that does not fit";
            case CONTRADICTED -> check + " says which declared time or which hypothesis does not hold; correct the "
                + "file, or what breaks the hypothesis";
            case HOLDS, CONDITIONAL -> (usesGpu(set) && set.platform().profile() == null
                ? "measure epsilon with `gpuseg calibrate` on the machine, unless you have, and analyse again; then "
                : "") + (verdict.kind() == Verdict.Kind.CONDITIONAL ? "see to the conditions of the verdict, " : "")
                + "start `gpuseg run --admission enforce --taskset " + file + "`, let the tasks run, record them with "
                + "`gpuseg trace record`, and see with " + check + " whether they keep what they declare";
        };
    }

    private static boolean usesGpu(final TaskSet set) {
        return set.tasks().stream().anyMatch(task -> task.gpuSegmentCount() > 0);
    }
}
