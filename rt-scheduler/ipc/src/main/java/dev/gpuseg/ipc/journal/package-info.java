/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The journal: the daemon's decisions and actions in the order in which they happened, as a Chronicle queue of
 * {@code struct gpuseg_event} (see {@code gpuseg_abi.h}).
 *
 * <pre>
 *   dispatcher --(events)--&gt; JournalRing (mapped file) --&gt; JournalAgent (thread) --&gt; JournalWriter (Chronicle)
 * </pre>
 *
 * The dispatcher copies one cache line per event. Page faults, rolling and a slow disk affect the journal thread only.
 * The ring is a file, so that the next daemon can append the events of a killed one.
 */
package dev.gpuseg.ipc.journal;
