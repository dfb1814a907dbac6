/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Starting the daemon: its options, its settings file and the program {@code gpuseg-daemon}. The command line of the
 * tools has the same commands and the same conventions from here.
 */
package dev.gpuseg.daemon.launch;
