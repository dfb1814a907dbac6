/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the commands of daemon and tools share: how they end, how they read a duration, a size and a directory, and
 * where the C programs are. Knows nothing of either.
 */
package dev.gpuseg.command;
