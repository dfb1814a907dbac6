/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/** Judges a copied record. */
interface RecordCheck {
    /**
     * One record.
     *
     * @return {@link RecordValidator#VALID}, {@link RecordValidator#STALE} or {@code Abi.POISON_*}
     */
    int check(RecordView view, long nowNs);

    /** Why the last one was refused. */
    String reason();
}
