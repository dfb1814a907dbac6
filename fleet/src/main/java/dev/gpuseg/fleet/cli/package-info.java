/* SPDX-License-Identifier: Apache-2.0 */
/** The command line {@code gpuseg-fleet}: one class per command. */
package dev.gpuseg.fleet.cli;
