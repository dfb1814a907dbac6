/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** One call that a sink received. */
record Call(Kind kind, int gpu, int id, long ticket, long detail) {
    enum Kind { MISS, OVERRUN, DISABLE, PREEMPT, ENABLE, RESUME, GRANT, PREGRANT }

    static Call desired(final int gpu, final int contextId, final boolean enabled) {
        return new Call(enabled ? Kind.ENABLE : Kind.DISABLE, gpu, contextId, 0, 0);
    }

    static Call pregrant(final int taskId, final boolean pregranted) {
        return new Call(Kind.PREGRANT, -1, taskId, 0, pregranted ? 1 : 0);
    }
}
