/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * GCAPS, threads spin, exactly as printed: CPU-only tasks are not charged for the spinning of local tasks.
 *
 * <p>Kept to show the error of the printed Eq. 10-12; its bounds are exceeded even in the paper's own model. Use
 * {@link GcapsBusy}, or {@link GcapsWindow} for the mechanism that really runs.
 */
final class GcapsBusyPrinted extends GcapsBusy {
    GcapsBusyPrinted(final AnalysisDescription description) {
        super(description, false, false);
    }
}
