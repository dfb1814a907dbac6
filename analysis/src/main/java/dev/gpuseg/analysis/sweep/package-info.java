/* SPDX-License-Identifier: Apache-2.0 */
/** Sweeps over many random task sets: the published figures, and bounds compared with simulated responses. */
package dev.gpuseg.analysis.sweep;
