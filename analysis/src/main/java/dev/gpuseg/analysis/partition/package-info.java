/* SPDX-License-Identifier: Apache-2.0 */
/** Placement of tasks on cores and GPUs. */
package dev.gpuseg.analysis.partition;
