/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The command line: one class per command. Exit status: 0 yes, 1 failure, 2 usage, 3 the answer is no.
 */
package dev.gpuseg.tools.cli;
