/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What the daemon has to know of the JVM that runs it: its threads and compilers, its collections, what it allocates
 * and how it ends. Knows no other package of the daemon.
 */
package dev.gpuseg.daemon.jvm;
