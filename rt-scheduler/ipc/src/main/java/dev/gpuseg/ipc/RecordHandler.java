/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

/** Receives the records of a client on the dispatcher thread. */
@FunctionalInterface
public interface RecordHandler {
    /**
     * One valid record.
     *
     * @param clientId whose it is
     * @param record   valid during the call only
     */
    void onRecord(int clientId, RecordView record);
}
