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
        final Provenance.Input read = dossier.provenance() == null || dossier.provenance().files().isEmpty() ? null
            : dossier.provenance().files().get(0);
        final boolean changed = read != null && !read.remark().isEmpty();
        final String file = read == null || changed ? "SET" : read.name();
        final String check = "`gpuseg trace check RECORDING --taskset " + file + "`";
        return "next: " + switch (verdict.kind()) {
            case NO_PROOF -> "leave out --analysis: what is sound for this set is analysed then";
            case REFUSED -> "make one of the changes that would help" + (hasOrders(read, dossier)
                ? ", or let --assign opa choose other priorities," : "") + " and analyse again; without a proof "
                + "`gpuseg run --admission enforce` refuses the task that does not fit";
            case CONTRADICTED -> check + " says which declared time or which hypothesis does not hold; correct the "
                + "file, or what breaks the hypothesis";
            case HOLDS, CONDITIONAL -> (usesGpu(set) && set.platform().profile() == null
                ? "measure epsilon with `gpuseg calibrate` on the machine, unless you have, and analyse again; then "
                : "") + (verdict.kind() == Verdict.Kind.CONDITIONAL ? "see to the conditions of the verdict, " : "")
                + (changed ? "write what was analysed to a file SET (the same options, `--format taskset --out SET`), "
                : "") + "start `gpuseg run " + (set.platform().space().isNone()
                ? "--admission enforce --taskset " + file : "--space") + "`, let the tasks run, record them with "
                + "`gpuseg trace record`, and see with " + check + " whether they keep what they declare";
        };
    }

    /** Are there priorities that were not searched for yet? By deadlines there are none. */
    private static boolean hasOrders(final Provenance.Input read, final Dossier dossier) {
        return dossier.refusals().keySet().stream().anyMatch(name -> !name.startsWith("edf-edf-"))
            && (read == null || !read.remark().matches(".*priorities by (opa|audsley)"));
    }

    private static boolean usesGpu(final TaskSet set) {
        return set.tasks().stream().anyMatch(task -> task.gpuSegmentCount() > 0);
    }
}
