/* SPDX-License-Identifier: Apache-2.0 */
/** Charts, and the report of an analysis as one self-contained HTML file, as text and as JSON. */
package dev.gpuseg.analysis.report;
