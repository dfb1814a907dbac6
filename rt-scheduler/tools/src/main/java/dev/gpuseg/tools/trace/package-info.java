/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What a journal shows: recordings, figures, checks against a task set, exports for viewers, and replay.
 *
 * <pre>
 *   journal --&gt; RecordingWriter --&gt; recording --&gt; Source --&gt; Trace --&gt; stats, check, task set, exports
 *                                                        `-----&gt; DecisionReplay (the core again)
 * </pre>
 *
 * Every reader takes a recording or a journal's directory. Nothing here runs in the daemon.
 */
package dev.gpuseg.tools.trace;
