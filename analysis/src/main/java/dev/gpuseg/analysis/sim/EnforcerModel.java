/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.Reconciler;
import dev.gpuseg.core.Reservation;
import java.util.Arrays;

/**
 * The enforcers: one live {@link Reconciler} for each GPU, whose device takes epsilon for one update of all contexts.
 * What changes during an update is taken up by the next one.
 */
final class EnforcerModel {
    private final Run run;
    private final SimulatedSet set;
    private final One[] ofGpu;
    private final boolean[] desired;
    private final boolean[] applied;
    private long updates;
    /** Null if nothing is anticipated. */
    private Anticipator anticipator;

    EnforcerModel(final Run run) {
        this.run = run;
        set = run.set;
        desired = new boolean[set.taskCount];
        applied = new boolean[set.taskCount];
        ofGpu = new One[set.gpuCount];
        for (int g = 0; g < ofGpu.length; g++) {
            ofGpu[g] = new One(g, set.gpuTasks[g]);
        }
    }

    void reset() {
        updates = 0;
        Arrays.fill(desired, true);
        Arrays.fill(applied, true);
        for (final One one : ofGpu) {
            one.generation = 0;
            one.appliedGeneration = 0;
            one.reconciler.reset();
            one.reserved = 0;
            one.disabled = 0;
            Arrays.fill(one.spared, false);
        }
    }

    /** Who is told what updates cost; null = nobody. */
    void anticipator(final Anticipator ofRun) {
        anticipator = ofRun;
    }

    Reservation.Target[] targets() {
        return ofGpu.clone();
    }

    long updates() {
        return updates;
    }

    /** Counts the changes of the desired state. */
    long generation(final int gpu) {
        return ofGpu[gpu].generation;
    }

    /** The generation that is applied. */
    long appliedGeneration(final int gpu) {
        return ofGpu[gpu].appliedGeneration;
    }

    boolean isEnabled(final int task) {
        return applied[task];
    }

    boolean isUpdating(final int gpu) {
        return ofGpu[gpu].reconciler.isPending();
    }

    void desire(final int gpu, final int task, final boolean enabled) {
        if (desired[task] != enabled) {
            desired[task] = enabled;
            ofGpu[gpu].generation++;
        }
    }

    void enforceAll() {
        for (int g = 0; g < ofGpu.length; g++) {
            enforce(g);
        }
    }

    /** Brings one GPU to what is desired; while another update is in progress, its end does. */
    void enforce(final int gpu) {
        while (!run.newcomers.isUpdating(gpu) && ofGpu[gpu].reconciler.cycle(run.nowNs)) {
            continue;   // until it waits for the device or nothing is left to do
        }
        run.segments.deliverGrants(gpu);
    }

    void onUpdateComplete(final int gpu) {
        final One one = ofGpu[gpu];
        if (run.trace != null) {
            run.trace.onGpu(gpu, -1, TraceSink.Activity.UPDATE, one.updateSinceNs, run.nowNs);
        }
        run.device.account(gpu);   // contexts that were enabled until now have worked until now
        run.device.updated(gpu);
        one.reconciler.complete(run.nowNs);
        run.newcomers.onUpdated(gpu);
        run.segments.deliverGrants(gpu);
        enforce(gpu);
    }

    /** The GPU stands still for this long: an update in progress takes longer. */
    void delay(final int gpu, final long ns) {
        final One one = ofGpu[gpu];
        if (one.reconciler.isPending()) {
            one.updateEndNs = Math.addExact(one.updateEndNs, ns);
            run.queue.set(gpu, one.updateEndNs);
        }
    }

    /** One GPU; its reconciler numbers contexts as the GPU's list of tasks does. */
    private final class One implements Reconciler.Desired, Reconciler.Effects, Reservation.Target {
        private final int gpu;
        private final int[] tasks;
        private final Reconciler reconciler;
        private long generation;
        private long appliedGeneration;
        private long updateSinceNs;
        private long updateEndNs;
        /** The context for which the GPU is kept free, 0 = none. */
        private int reserved;
        /** By context. */
        private final boolean[] spared;
        private int disabled;

        One(final int gpu, final int[] tasks) {
            this.gpu = gpu;
            this.tasks = tasks;
            spared = new boolean[set.taskCount + 1];
            reconciler = new Reconciler(tasks.length, true, this, this);
            for (int k = 0; k < tasks.length; k++) {
                reconciler.attach(k);
            }
        }

        @Override
        public boolean isNewerThan(final long version) {
            return generation != version;
        }

        @Override
        public long snapshot(final boolean[] off) {
            boolean someOff = false;
            for (int k = 0; k < tasks.length; k++) {
                off[k] = !desired[tasks[k]];
                someOff |= off[k];
            }
            for (int k = 0; reserved != 0 && !someOff && k < tasks.length; k++) {
                final int context = set.contextOf[tasks[k]] + 1;
                off[k] = context != reserved && !spared[context];
            }
            return generation;
        }

        @Override
        public void reserve(final int contextId) {
            reserved = contextId;
            generation++;
        }

        @Override
        public void spare(final int contextId) {
            spared[contextId] = true;
        }

        @Override
        public void unreserve() {
            if (reserved != 0) {
                reserved = 0;
                generation++;
                Arrays.fill(spared, false);
            }
        }

        @Override
        public boolean hold(final int context) {
            return true;   // no process dies here
        }

        @Override
        public void clear(final int context) {
            // no held file
        }

        @Override
        public long apply(final int[] disable, final int disableCount, final int[] enable, final int enableCount) {
            updateSinceNs = run.nowNs;
            updates++;
            disabled = disableCount;
            final long epsilonNs = set.epsilonNs[gpu];
            final long costNs = run.drawsWorst() ? epsilonNs : run.random.nextLong(epsilonNs + 1);
            run.device.touch(gpu);
            if (costNs == 0) {
                run.device.account(gpu);   // as in onUpdateComplete
                run.device.updated(gpu);
                return run.nowNs;
            }
            updateEndNs = Math.addExact(run.nowNs, costNs) + run.device.stallLeftNs(gpu);
            run.queue.set(gpu, updateEndNs);
            return PENDING;
        }

        @Override
        public boolean succeeded(final int context) {
            return true;
        }

        @Override
        public void disabled(final int context) {
            applied[tasks[context]] = false;
            run.segments.switched(tasks[context], false);
        }

        @Override
        public void enabled(final int context) {
            applied[tasks[context]] = true;
            run.segments.switched(tasks[context], true);
        }

        @Override
        public void failed() {
            throw new IllegalStateException("a simulated update cannot fail");
        }

        @Override
        public void enforced(final long version, final boolean incomplete) {
            if (appliedGeneration != version) {
                appliedGeneration = version;
                if (anticipator != null) {
                    anticipator.enforced(gpu, disabled, disabled > 0 ? updateSinceNs : run.nowNs, run.nowNs);
                }
                disabled = 0;
                if (run.options.hold() == SimulationOptions.Hold.BOOST) {
                    for (final int task : tasks) {
                        run.cores.touch(task);
                    }
                }
            }
        }

        @Override
        public void settled(final long version) {
            // grants wait for enforced states only
        }
    }
}
