/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The daemon's threads and how they are wired.
 *
 * <pre>
 *   conductor --(commands)--&gt; DispatcherAgent --(DesiredState)--&gt; Enforcer, one per GPU --&gt; Mechanism
 *                                  |   ^                             |
 *                                  |   +-------(results ring)--------+
 *                                  +--(JournalRing)--&gt; JournalAgent
 * </pre>
 *
 * Each arrow has one writer and one reader. The dispatcher alone drives the scheduler, reads client queues and writes
 * sessions; an enforcer alone calls its mechanism.
 */
package dev.gpuseg.daemon.dispatch;
