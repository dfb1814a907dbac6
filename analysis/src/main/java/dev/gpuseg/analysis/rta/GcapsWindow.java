/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * Exclusive windows as the daemon runs them: a task holds its GPU from begin to end, host part included.
 *
 * <p>Hypotheses (theorem 1 of {@code docs/window.md}, where they are numbered; {@link Hypotheses} checks them):
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T, a task uses one GPU;</li>
 * <li>per GPU, the begun window with the highest GPU priority is the holder, and every other context is disabled.
 *     Contexts of idle higher-priority tasks may stay enabled if real-time tasks use their GPU only inside windows
 *     (theorem 7);</li>
 * <li>each change of the holder starts an update of at most epsilon; updates of a GPU run one after the other, an
 *     update in progress is completed; the new holder's device part may run from the end of its update at the
 *     latest;</li>
 * <li>a thread needs its core, at its own priority, for the host part and to call end; begin may sleep until granted
 *     or return at once (optimistic). The bound covers both. Updates run on no core of a task;</li>
 * <li>busy: the thread keeps its core from the return of begin to end;</li>
 * <li>local order agrees: of two tasks on one core and GPU, the one with the higher CPU priority has the strictly
 *     higher GPU priority; equal CPU priorities are allowed, but not for threads that spin for one GPU;</li>
 * <li>no real-time task shares its GPU context (process) with another task;</li>
 * <li>declared blocking happens outside of windows;</li>
 * <li>best-effort tasks run below all real-time tasks, on cores and GPUs.</li>
 * </ul>
 * Recurrence, eps = epsilon of the GPU: {@code R_i = C_i + G_i + 2 eps eta_i + B_i}
 * <pre>
 *  + sum_{h in hpp(i), eta_h = 0}             ceil((R_i + jc_h) / T_h) C_h
 *  + sum_{h in hpp(i), same GPU (busy: any)}  ceil((R_i + Jl_h) / T_h) (C_h + G_h + 2 eps eta_h)
 *  + sum_{h in hpp(i), another GPU, or eta_i = 0 (suspend)} ceil((R_i + Jc_h) / T_h) (C_h + Gm_h + 2 eps eta_h)
 *  + sum_{h in X(i)} ceil((R_i + Jw_h) / T_h) (G_h + 2 eps eta_h)
 *  + sum_{c} min( sum_{h in X(i), c in hpp(h)} ceil((R_i + Jw_h) / T_h) k_hc,  ceil((R_i + R_c - Y_c) / T_c) ) Y_c
 * </pre>
 * X(i) = tasks on other cores that outrank i on its GPU; in busy mode also those that outrank a GPU task of hpp(i)
 * on its GPU. k_hc = jobs of c that can stop the windows of one job of h ({@link Windows#refine}); Y_c = C_c for a
 * CPU-only task or one of the same GPU (its own windows outrank h and are charged as such), C_c + Gm_c for one of the
 * same GPU and the same CPU priority. jc_h = Jr_h, but R_h - C_h if h declares a blocking.
 * Jw_h = R_h + 2 eps - (G_h + 2 eps eta_h), Jl_h = R_h + 2 eps - (C_h + G_h + 2 eps eta_h), Jc_h = R_h - (C_h + Gm_h).
 * Tasks of one core, GPU and CPU priority: host + device in place of a smaller total. With separate GPU priorities D
 * replaces R.
 *
 * <p>Source: this project; corrects GCAPS (ECRTS 2024), Eq. 9-14, which charge other cores the device part alone.
 */
final class GcapsWindow extends ExclusiveWindow {
    GcapsWindow(final AnalysisDescription description) {
        super(description, false);
    }
}
