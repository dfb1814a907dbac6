/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What is on the way of a record, on the dispatcher's thread: registered clients and processes, open tasks, decisions,
 * grants, hints and the journal's events. The dispatcher alone drives the scheduler, reads client queues and
 * writes sessions.
 */
package dev.gpuseg.daemon.dispatch;
