/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

/** {@code analyze --format html}. */
public final class HtmlFormat extends FullFormat {
    /** For the service loader. */
    public HtmlFormat() {
        super("html", HtmlReport::render);
    }
}
