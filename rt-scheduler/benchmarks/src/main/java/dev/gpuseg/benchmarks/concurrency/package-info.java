/* SPDX-License-Identifier: Apache-2.0 */
/** jcstress tests of the words that the daemon shares with its clients, see {@code gpuseg_abi.h}. */
package dev.gpuseg.benchmarks.concurrency;
