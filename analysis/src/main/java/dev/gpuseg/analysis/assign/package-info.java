/* SPDX-License-Identifier: Apache-2.0 */
/** Assignment of priorities to task sets that have none, or need better ones. */
package dev.gpuseg.analysis.assign;
