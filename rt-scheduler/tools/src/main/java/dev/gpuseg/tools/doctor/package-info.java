/* SPDX-License-Identifier: Apache-2.0 */
/** What this machine offers to the daemon, and what would improve it. */
package dev.gpuseg.tools.doctor;
