/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/**
 * Whether a mechanism works on this machine.
 *
 * @param usable true if the daemon would start with it
 * @param level  what it would reach here, 0..3; see {@link Capabilities}
 * @param reason one line: what was found, or what is missing and what to do
 */
public record MechanismVerdict(boolean usable, int level, String reason) {
}
