/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What takes work off the hardware and brings it back: the {@link dev.gpuseg.mechanisms.Mechanism} port and its
 * implementations. A new device is one class here and one line in
 * {@link dev.gpuseg.mechanisms.Mechanisms}.
 */
package dev.gpuseg.mechanisms;
