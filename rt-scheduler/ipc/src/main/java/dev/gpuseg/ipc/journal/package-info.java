/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The journal: what the daemon decided and did, in the order in which it did it, as a Chronicle queue of
 * {@code struct gpuseg_event} (see {@code gpuseg_abi.h}).
 *
 * <pre>
 *   dispatcher --(events)--&gt; JournalRing (mapped file) --&gt; JournalAgent (thread) --&gt; JournalWriter (Chronicle)
 * </pre>
 *
 * The dispatcher pays a copy of one cache line per event; page faults, rolling and a slow disk are the journal
 * thread's. The ring is a file, so that events of a killed daemon are appended by its successor.
 */
package dev.gpuseg.ipc.journal;
