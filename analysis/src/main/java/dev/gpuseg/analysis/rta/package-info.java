/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Response-time analyses: one theorem, one class. Each class names its hypotheses, its recurrence and its source. An
 * analysis is a pure function of a task set; the ones that claim soundness for the live mechanism are compared with
 * the simulator in tests.
 */
package dev.gpuseg.analysis.rta;
