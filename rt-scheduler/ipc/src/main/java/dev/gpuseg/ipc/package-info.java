/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Memory shared with applications, the watchdog and tools, laid out by {@code gpuseg_abi.h}: queues, sessions, the
 * status page, the held file. Clients are not trusted: everything they can write is copied, validated, then used.
 */
package dev.gpuseg.ipc;
