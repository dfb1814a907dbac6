/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

/**
 * The peer of a Unix socket, as the kernel knows it.
 *
 * @param pid the process that connected
 * @param uid its effective user then
 * @param gid its effective group then
 */
public record PeerCredentials(int pid, int uid, int gid) {
}
