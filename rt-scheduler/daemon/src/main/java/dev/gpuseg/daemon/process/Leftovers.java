/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.ArrayList;
import java.util.List;

/** Enables what a dead daemon left disabled, before another one does anything else. */
final class Leftovers {
    private final HeldFile held;
    private final List<Mechanism> mechanisms;
    private final Runnable releaseTool;
    private final RuntimeDirectory directory;

    /**
     * @param held        what is written down as disabled
     * @param mechanisms  one per GPU, of one kind
     * @param releaseTool enables what is another mechanism's; throws {@link StartUpException} if it does not start
     * @param directory   of the daemon, for advice
     */
    Leftovers(final HeldFile held, final List<Mechanism> mechanisms, final Runnable releaseTool,
        final RuntimeDirectory directory) {
        this.held = held;
        this.mechanisms = mechanisms;
        this.releaseTool = releaseTool;
        this.directory = directory;
    }

    /**
     * Enables all of it.
     *
     * @throws StartUpException if a context stays disabled
     */
    void enable() {
        final Mechanism first = mechanisms.get(0);
        final List<List<Integer>> ours = new ArrayList<>();
        final List<List<ContextRef>> contexts = new ArrayList<>();
        for (int gpu = 0; gpu < mechanisms.size(); gpu++) {
            ours.add(new ArrayList<>());
            contexts.add(new ArrayList<>());
        }
        held.forEach((index, id, pid, startTicks, gpu, contextId, payload) -> {
            if (startTicks != 0 && !ProcessStatus.isAlive(pid, startTicks)) {
                held.release(index);   // its contexts died with it
            } else if (id == first.id() && gpu >= 0 && gpu < mechanisms.size()) {
                ours.get(gpu).add(index);
                contexts.get(gpu).add(new ContextRef(contextId, gpu, pid, startTicks, "held"));
            }
        });
        for (int gpu = 0; gpu < mechanisms.size(); gpu++) {
            enable(mechanisms.get(gpu), contexts.get(gpu).toArray(new ContextRef[0]), ours.get(gpu));
        }
        if (held.count() + held.timeslices() > 0) {
            releaseTool.run();   // it knows the form of every mechanism's time slices
        }
        if (held.timeslices() > 0) {
            System.err.println("gpuseg: time slices of " + held.timeslices() + " contexts are still those of an "
                + "earlier daemon; they keep them until they end");
        }
        if (held.count() > 0) {
            throw new StartUpException("held file " + directory.held() + ": " + held.count()
                + " contexts are still disabled and could not be enabled (" + first.lastError()
                + "); run `gpuseg release --dir " + directory.root() + "`");
        }
    }

    /** A mechanism switches contexts of its own GPU only. */
    private void enable(final Mechanism mechanism, final ContextRef[] enable, final List<Integer> entries) {
        if (enable.length == 0) {
            return;
        }
        for (final ContextRef context : enable) {
            mechanism.attach(context);
        }
        mechanism.apply(new ContextRef[0], 0, enable, enable.length);
        for (int i = 0; i < enable.length; i++) {
            if (enable[i].result() == ContextRef.SwitchResult.DONE) {   // what is ABSENT here is left to the tool
                held.release(entries.get(i));
            }
            mechanism.detach(enable[i]);
        }
    }
}
