/* SPDX-License-Identifier: Apache-2.0 */
/** Charts and the report of an analysis: one HTML file that needs nothing else, with its text and JSON twins. */
package dev.gpuseg.analysis.report;
