/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

/** A request that waits for the admission test or for the dispatcher. */
record PendingRequest(Connection connection, int type, int seq, String name, int taskId, TaskOpen request) {
}
