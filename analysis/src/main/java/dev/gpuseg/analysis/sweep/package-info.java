/* SPDX-License-Identifier: Apache-2.0 */
/** Many random task sets: the published figures drawn again, and the comparison of bounds with simulated responses. */
package dev.gpuseg.analysis.sweep;
