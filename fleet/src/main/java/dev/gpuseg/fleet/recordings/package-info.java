/* SPDX-License-Identifier: Apache-2.0 */
/** Recordings of many robots: to Parquet, to figures, to a report. */
package dev.gpuseg.fleet.recordings;
