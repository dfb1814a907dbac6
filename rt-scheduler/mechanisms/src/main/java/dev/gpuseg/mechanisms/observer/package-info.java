/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a BPF program in the kernel sees of GPU processes: gpuseg-observer (rt-scheduler/native/observer) sends it, and
 * {@link dev.gpuseg.mechanisms.observer.Observer} passes it to the mechanisms.
 */
package dev.gpuseg.mechanisms.observer;
