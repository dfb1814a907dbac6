/* SPDX-License-Identifier: Apache-2.0 */
/** The running daemon's tasks in a terminal. */
package dev.gpuseg.tools.top;
