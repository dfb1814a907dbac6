/* SPDX-License-Identifier: Apache-2.0 */
/** Policies from outside: the jar files that they come in. */
package dev.gpuseg.analysis.policy;
