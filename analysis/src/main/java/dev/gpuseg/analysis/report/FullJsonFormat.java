/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

/** {@code analyze --format report-json}: the numbers of the HTML report for programs. */
public final class FullJsonFormat extends FullFormat {
    /** For the service loader. */
    public FullJsonFormat() {
        super("report-json", JsonReport::render);
    }
}
