/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import org.agrona.collections.IntArrayList;
import org.agrona.collections.IntHashSet;

/**
 * What a thread that examines processes keeps from one to the next, so that an examination leaves no garbage: it would
 * make the JVM collect it, which stops the dispatcher. One process is examined at a time; only one of which everything
 * was observed may come between, and uses neither report nor handles. Not thread-safe.
 */
final class RmScan {
    final GpuIndex gpus;
    final Scope scope;
    final RmControl rm;
    final ControlLinks links = new ControlLinks();
    final CaptureReport report = new CaptureReport();
    final ContextBuilder contexts;
    /** Handles of clients that were known before. */
    final IntArrayList known = new IntArrayList();
    /** Handles of clients that the report names and that were asked for. */
    final IntHashSet named = new IntHashSet();

    RmScan(final GpuIndex gpus, final Scope scope, final RmControl rm) {
        this.gpus = gpus;
        this.scope = scope;
        this.rm = rm;
        contexts = new ContextBuilder(gpus, scope, rm);
    }
}
