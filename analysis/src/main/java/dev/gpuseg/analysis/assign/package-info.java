/* SPDX-License-Identifier: Apache-2.0 */
/** Priorities for task sets that come without, or that need better ones. */
package dev.gpuseg.analysis.assign;
