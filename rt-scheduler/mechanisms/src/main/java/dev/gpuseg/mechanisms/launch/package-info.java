/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Holds launches of programs under {@code gpuseg exec}: by itself ({@code launch}, any driver, no privilege), or beside
 * a mechanism that preempts running work.
 */
package dev.gpuseg.mechanisms.launch;
