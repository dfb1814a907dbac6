/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

/** {@code analyze --format report-text}: the numbers of the HTML report for a terminal. */
public final class FullTextFormat extends FullFormat {
    /** For the service loader. */
    public FullTextFormat() {
        super("report-text", TextReport::render);
    }
}
