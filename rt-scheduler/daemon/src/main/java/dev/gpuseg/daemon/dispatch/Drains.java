/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * How long it takes until contexts whose launches are held have nothing in flight any more. Where a mechanism only
 * holds launches, this is what disabling costs a segment, and what an expected begin has to be ahead of.
 *
 * <p>One measurement of a GPU at a time. It begins with the decision to disable and ends when the last of the contexts
 * has drained, as their programs say, or is enabled again: so long it took at least. Contexts that are disabled while
 * others drain belong to the same measurement, which then says nothing about one alone.
 *
 * <p>Dispatcher thread only, allocates nothing.
 */
final class Drains {
    private final TaskTable tasks;
    /** By GPU: disabled, and not known to have drained. */
    private final int[][] pending;
    private final int[] count;
    /** By context: its launches are held; and how many are on each GPU. */
    private final boolean[] isHeld;
    private final int[] heldCount;
    private final boolean[] open;
    private final int[] contexts;
    private final long[] sinceNs;
    private final long[] doneNs;

    /**
     * @param tasks       what their programs say
     * @param gpus        how many
     * @param maxContexts highest context id
     */
    Drains(final TaskTable tasks, final int gpus, final int maxContexts) {
        this.tasks = tasks;
        pending = new int[gpus][maxContexts + 1];
        count = new int[gpus];
        isHeld = new boolean[maxContexts + 1];
        heldCount = new int[gpus];
        open = new boolean[gpus];
        contexts = new int[gpus];
        sinceNs = new long[gpus];
        doneNs = new long[gpus];
    }

    /** Launches of a context are held. */
    void disabled(final int gpu, final int contextId) {
        remove(gpu, contextId);
        pending[gpu][count[gpu]++] = contextId;
        hold(gpu, contextId, true);
    }

    /** They go on. */
    void enabled(final int gpu, final int contextId, final long atNs) {
        if (remove(gpu, contextId)) {
            doneNs[gpu] = Math.max(doneNs[gpu], atNs);
        }
        hold(gpu, contextId, false);
    }

    /** The context is gone, and its id may be used again. */
    void forget(final int gpu, final int contextId) {
        remove(gpu, contextId);
        hold(gpu, contextId, false);
    }

    private void hold(final int gpu, final int contextId, final boolean held) {
        if (isHeld[contextId] != held) {
            isHeld[contextId] = held;
            heldCount[gpu] += held ? 1 : -1;
        }
    }

    private boolean remove(final int gpu, final int contextId) {
        for (int i = 0; i < count[gpu]; i++) {
            if (pending[gpu][i] == contextId) {
                pending[gpu][i] = pending[gpu][--count[gpu]];
                return true;
            }
        }
        return false;
    }

    /**
     * All launches that were to be held are held.
     *
     * @param some      whether some were disabled for it, and how long that took says something
     * @param decidedNs when that was decided
     * @param atNs      when the last one was held
     */
    void enforced(final int gpu, final boolean some, final long decidedNs, final long atNs) {
        if (open[gpu]) {
            contexts[gpu] = some ? 0 : contexts[gpu];
        } else {
            open[gpu] = true;
            contexts[gpu] = some ? heldCount[gpu] : 0;
            sinceNs[gpu] = decidedNs;
            doneNs[gpu] = 0;
        }
        doneNs[gpu] = Math.max(doneNs[gpu], atNs);
    }

    /**
     * Looks whether the contexts have drained.
     *
     * @return true once for each measurement, when it is over
     */
    boolean poll(final int gpu, final long nowNs) {
        if (!open[gpu]) {
            return false;
        }
        for (int i = count[gpu] - 1; i >= 0; i--) {
            final int contextId = pending[gpu][i];
            if (!tasks.isInFlight(contextId)) {
                // what the client says counts within what can be
                doneNs[gpu] = Math.max(doneNs[gpu], Math.min(nowNs, tasks.drainedNs(contextId)));
                pending[gpu][i] = pending[gpu][--count[gpu]];
            }
        }
        open[gpu] = count[gpu] > 0;
        return !open[gpu];
    }

    /** Whether some context of a GPU is being waited for. */
    boolean isOpen(final int gpu) {
        return open[gpu];
    }

    /**
     * How many contexts were held by then, those included that had been before: as many as an expected begin would have
     * to find held. 0: the measurement that is over says nothing about a number of contexts.
     */
    int contexts(final int gpu) {
        return contexts[gpu];
    }

    /** When it was decided to disable them, ns. */
    long sinceNs(final int gpu) {
        return sinceNs[gpu];
    }

    /** When the last one had drained, ns. */
    long doneNs(final int gpu) {
        return doneNs[gpu];
    }
}
