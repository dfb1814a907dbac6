/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/** Checks a copied record. */
interface RecordCheck {
    /** Checks one record: {@link RecordValidator#VALID}, {@link RecordValidator#STALE} or {@code Abi.POISON_*}. */
    int check(RecordView view, long nowNs);

    /** Why the last one was refused. */
    String reason();
}
