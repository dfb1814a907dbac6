/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Mechanisms that never touch a device, so they work with every GPU: {@code observe} records segments, {@code gate}
 * delays begins. They cannot disable the work of a process that does not mark its segments.
 */
package dev.gpuseg.mechanisms.gate;
