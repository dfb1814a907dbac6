/* SPDX-License-Identifier: Apache-2.0 */
/**
 * How a decision reaches a GPU: {@code DesiredState}, which the dispatcher writes, {@code Enforcer}, the thread that
 * makes it true with a mechanism, and what it reports. Knows no client, task or record.
 */
package dev.gpuseg.daemon.enforce;
