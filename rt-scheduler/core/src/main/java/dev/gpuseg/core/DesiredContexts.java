/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Which contexts of a GPU are to be enabled. The answer for all is one bit, the background; contexts with begun
 * segments for which it does not hold are exceptions, and contexts of idle tasks above a ceiling are enabled whatever
 * it says. A decision thus costs as much as changes with it, not as many contexts as there are.
 */
final class DesiredContexts {
    private static final int NONE = SegmentScheduler.NONE;

    private final SegmentTable segments;
    private final ContextTable contexts;
    private final PregrantTable pregrants;
    private final DecisionSink sink;

    /** Whether contexts without begun segments are desired on; the exceptions are the ones that differ. */
    private final boolean[] background;
    private final boolean[] wasBackground;
    private final int[][] exceptions;
    private final int[][] exceptionsBefore;
    private final int[] exceptionCount;
    private final int[] wasExceptions;
    /**
     * Contexts of idle tasks that qualify for pre-grants and are above this priority stay enabled; {@link Priority#MAX}
     * = none. It is the bound for pre-grants of all but the leader, whose own pre-grant has a lower one.
     */
    private final int[] readyCeiling;
    private final int[] wasReady;
    private final long[] decisionOf;
    /** To be looked at in the decision being made although its segments and the ceiling do not say so. */
    private int touched = NONE;

    DesiredContexts(final SegmentTable segments, final ContextTable contexts, final PregrantTable pregrants,
        final DecisionSink sink, final int maxContexts, final int gpus) {
        this.segments = segments;
        this.contexts = contexts;
        this.pregrants = pregrants;
        this.sink = sink;
        background = new boolean[gpus];
        wasBackground = new boolean[gpus];
        exceptions = new int[gpus][maxContexts + 1];
        exceptionsBefore = new int[gpus][maxContexts + 1];
        exceptionCount = new int[gpus];
        wasExceptions = new int[gpus];
        readyCeiling = new int[gpus];
        wasReady = new int[gpus];
        decisionOf = new long[gpus];
        Arrays.fill(background, true);
        Arrays.fill(readyCeiling, Priority.MAX);
    }

    /** A new decision of a GPU: as before, but without exceptions and without contexts that are enabled besides. */
    void start(final int gpu, final long decision) {
        decisionOf[gpu] = decision;
        wasBackground[gpu] = background[gpu];
        wasExceptions[gpu] = exceptionCount[gpu];
        wasReady[gpu] = readyCeiling[gpu];
        exceptionCount[gpu] = 0;
        readyCeiling[gpu] = Priority.MAX;
    }

    /** Looks at a context in the decision that follows; {@link SegmentScheduler#NONE} ends that. */
    void touch(final int c) {
        touched = c;
    }

    boolean background(final int gpu) {
        return background[gpu];
    }

    void background(final int gpu, final boolean enabled) {
        background[gpu] = enabled;
    }

    boolean wasBackground(final int gpu) {
        return wasBackground[gpu];
    }

    /** Contexts of idle tasks above this priority are enabled besides. */
    void enableAbove(final int gpu, final int ceiling) {
        readyCeiling[gpu] = ceiling;
    }

    /** One context for which the background does not hold. */
    void except(final int gpu, final int c, final long decision) {
        contexts.exception[c] = decision;
        exceptions[gpu][exceptionCount[gpu]++] = c;
    }

    /** The decision is made and told. */
    void finish(final int gpu) {
        final int[] spare = exceptionsBefore[gpu];
        exceptionsBefore[gpu] = exceptions[gpu];
        exceptions[gpu] = spare;
    }

    /** The contexts with begun segments for which the background of their GPU does not hold. */
    void except(final int gpu, final int[] order, final int count, final long decision) {
        final int[] list = exceptions[gpu];
        int n = 0;
        for (int i = 0; i < count; i++) {
            final int c = segments.contextId[order[i]];
            if (contexts.admitted[c] != background[gpu] && contexts.exception[c] != decision) {
                contexts.exception[c] = decision;
                list[n++] = c;
            }
        }
        exceptionCount[gpu] = n;
    }

    /** Tells the sink what is to be enabled, or disabled, of what can have changed; everything, if all is true. */
    void apply(final int gpu, final boolean all, final boolean enable) {
        if (all) {
            for (int i = 0; i < contexts.steerableCount(gpu); i++) {
                applyContext(contexts.steerable(gpu, i), enable);
            }
            return;
        }
        if (touched != NONE) {
            applyContext(touched, enable);
        }
        final int[] before = exceptionsBefore[gpu];
        for (int i = 0; i < wasExceptions[gpu]; i++) {
            applyContext(before[i], enable);
        }
        final int[] now = exceptions[gpu];
        for (int i = 0; i < exceptionCount[gpu]; i++) {
            applyContext(now[i], enable);
        }
        final int high = Math.max(wasReady[gpu], readyCeiling[gpu]);
        final int low = Math.min(wasReady[gpu], readyCeiling[gpu]);
        for (int p = pregrants.levelFrom(gpu, low + 1); p <= high; p = pregrants.levelFrom(gpu, p + 1)) {
            for (int t = pregrants.first(gpu, p); t != NONE; t = pregrants.next(t)) {
                applyContext(segments.contextId[t], enable);
            }
        }
    }

    private void applyContext(final int c, final boolean enable) {
        // An exception of the decision before may have been removed since.
        if (contexts.open[c] && wants(c) == enable) {
            set(c, enable);
        }
    }

    /** Whether a context is to be enabled by the last decision, if nothing but the policy's order holds back. */
    boolean wants(final int c) {
        final int gpu = contexts.gpu[c];
        final boolean isException = contexts.exception[c] != 0 && contexts.exception[c] == decisionOf[gpu];
        return background[gpu] != isException || isReady(c);
    }

    private boolean isReady(final int c) {
        final int ceiling = readyCeiling[contexts.gpu[c]];
        if (ceiling == Priority.MAX || contexts.taskCount[c] != 1) {
            return false;
        }
        final int t = contexts.firstTask(c);
        return segments.state[t] == SegmentState.IDLE && pregrants.isListed(t)
            && Priority.isHigherThan(segments.gpuPriority[t], ceiling);
    }

    /** Tells the sink if this is new; what may not be disabled is enabled. */
    void set(final int c, final boolean wanted) {
        final boolean enabled = wanted || !contexts.isSteerable(c);
        if (contexts.desired[c] != enabled) {
            contexts.desired[c] = enabled;
            sink.onContextDesired(contexts.gpu[c], c, enabled);
        }
    }
}
