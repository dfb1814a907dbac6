/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * A client's request to close a task, until its records are read.
 *
 * @param correlation of the request
 * @param task        to close
 */
record Closing(long correlation, TaskEntry task) {
}
