/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/**
 * A request to open a task: validated, admitted, durations already defaulted ({@code gpuPriority}, {@code deadlineNs}).
 *
 * @param correlation to be repeated in {@link ConductorProxy#taskOpened}
 * @param clientId    who asks
 * @param name        printable, unique within the client
 * @param priority    0 best effort, 1..99
 * @param gpuPriority 0..99, at the GPU
 * @param gpu         index, from 0
 * @param optimistic  whether begin may return before enforcement
 * @param periodNs    0 = not periodic
 * @param deadlineNs  relative, 0 = none
 * @param budgetNs    longest window per segment, 0 = none
 */
public record TaskOpen(long correlation, int clientId, String name, int priority, int gpuPriority, int gpu,
    boolean optimistic, long periodNs, long deadlineNs, long budgetNs) {
}
