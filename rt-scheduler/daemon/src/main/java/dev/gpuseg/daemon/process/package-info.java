/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The daemon as a process: how its threads are wired, started, warmed up, watched, asked and stopped, its locks, and
 * what a dead daemon left.
 *
 * <pre>
 *   conductor --(commands)--&gt; DispatcherAgent --(DesiredState)--&gt; Enforcer, one per GPU --&gt; Mechanism
 *                                  |   ^                             |
 *                                  |   +-------(results ring)--------+
 *                                  +--(JournalRing)--&gt; JournalAgent
 * </pre>
 *
 * Each arrow has one writer and one reader.
 */
package dev.gpuseg.daemon.process;
