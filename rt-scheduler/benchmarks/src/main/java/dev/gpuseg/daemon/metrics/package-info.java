/* SPDX-License-Identifier: Apache-2.0 */
/** Benchmarks of the figures that the journal's thread keeps. */
package dev.gpuseg.daemon.metrics;
