/* SPDX-License-Identifier: Apache-2.0 */
/** Where the policies of a run come from, and what is kept of them for the next daemon. */
package dev.gpuseg.daemon.policy;
