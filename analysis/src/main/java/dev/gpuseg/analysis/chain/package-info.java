/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Chains of tasks: bounds on reaction time and data age ({@code analysis/docs/chains.md}), and what a run shows of
 * them. {@link dev.gpuseg.analysis.chain.ChainAnalysis} is called by every analysis whose set has chains.
 */
package dev.gpuseg.analysis.chain;
