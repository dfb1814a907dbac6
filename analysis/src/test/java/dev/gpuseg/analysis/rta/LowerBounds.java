/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The bounds of an analysis, lower where an error makes them so, for mutation tests. A set that is refused with the
 * error or without is as the right analysis says.
 *
 * @param right the right analysis
 * @param error the bounds of a set with the error
 */
record LowerBounds(Analysis right, Function<TaskSet, AnalysisResult> error) implements Analysis {
    @Override
    public AnalysisDescription description() {
        return right.description();
    }

    @Override
    public boolean needsPriorities() {
        return right.needsPriorities();
    }

    @Override
    public AnalysisResult analyse(final PreparedSet set) {
        throw new UnsupportedOperationException("only sets are analysed here");
    }

    @Override
    public boolean isSchedulable(final PreparedSet set) {
        return right.isSchedulable(set);
    }

    @Override
    public AnalysisResult analyse(final TaskSet set) {
        final AnalysisResult whole = right.analyse(set);
        final AnalysisResult less = error.apply(set);
        if (!whole.schedulable() || !less.schedulable()) {
            return whole;
        }
        final List<TaskResult> tasks = new ArrayList<>();
        for (int i = 0; i < whole.tasks().size(); i++) {
            final TaskResult same = whole.tasks().get(i);
            final Long bound = less.tasks().get(i).wcrtNs();
            tasks.add(bound == null || bound > same.wcrtNs() ? same : new TaskResult(same.name(), bound,
                same.deadlineNs(), true, same.terms()));
        }
        return new AnalysisResult(whole.analysis(), whole.taskSetId(), true, tasks);
    }
}
