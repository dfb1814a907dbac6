/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a running daemon does now, derived from the journal's events on the journal's thread: figures per task and per
 * GPU, the last seconds as spans, the last misses, and their exposition to Prometheus. Nothing here touches the
 * dispatcher.
 */
package dev.gpuseg.daemon.metrics;
