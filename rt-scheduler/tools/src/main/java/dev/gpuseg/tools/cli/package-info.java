/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The commands of {@code gpuseg}: one class per command with its options, the checks of its arguments, its output and
 * its exit status (0 yes, 1 failure, 2 usage, 3 the answer is no). The work of a command is in the other packages,
 * which know nothing of the command line.
 */
package dev.gpuseg.tools.cli;
