/* SPDX-License-Identifier: Apache-2.0 */
/** Checks a policy before it is used: properties over random questions and random events, with counterexamples. */
package dev.gpuseg.analysis.conformance;
