/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The agent of a Kubernetes node. It watches the pods of its node and writes what they say of themselves, within what
 * their namespaces may, as rules of control groups for the daemon.
 */
package dev.gpuseg.fleet.kubernetes;
