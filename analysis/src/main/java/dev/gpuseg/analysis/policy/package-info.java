/* SPDX-License-Identifier: Apache-2.0 */
/** Policies from outside, with their parameters: as files state them, and the jar files that they come in. */
package dev.gpuseg.analysis.policy;
