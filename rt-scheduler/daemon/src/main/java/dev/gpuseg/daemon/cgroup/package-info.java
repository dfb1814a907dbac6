/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Control groups: which process is in which, what the administrator's rules say of it (weight, cap, protection), and
 * how much GPU time each group has had. Works on the background and the journal's threads, never on the dispatcher's.
 */
package dev.gpuseg.daemon.cgroup;
