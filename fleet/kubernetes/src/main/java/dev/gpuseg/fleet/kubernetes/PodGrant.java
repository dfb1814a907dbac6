/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

/**
 * What a pod has.
 *
 * @param priority highest priority of its tasks, 0..99
 * @param weight   share among best effort
 * @param cap      bandwidth, null without one
 * @param protect  never disabled
 */
record PodGrant(int priority, int weight, Cap cap, boolean protect) {
}
