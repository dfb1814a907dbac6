/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The scheduler core: segments, priorities, policies and the {@link dev.gpuseg.core.SegmentScheduler}. It opens
 * nothing, starts nothing and reads no clock: events and their times come in, decisions go out through a
 * {@link dev.gpuseg.core.DecisionSink}. Nothing here is thread-safe unless it says so; one thread drives a scheduler.
 */
package dev.gpuseg.core;
