/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.conductor.Client;
import java.util.ArrayList;
import java.util.List;

/** One registered client, as the dispatcher keeps it. Dispatcher thread only. */
final class ClientEntry {
    /** No request waits until the records are read. */
    static final int STAYS = -1;

    final Client client;
    final ProcessEntry process;
    final List<TaskEntry> tasks = new ArrayList<>();
    /** Null: its records are taken as fast as they come. */
    final RecordRate rate;
    boolean poisoned;
    /** Its bell is not listened to: its user has to wait. */
    boolean muted;
    /** It has left or died; removed when its records are read. */
    boolean leaving;
    int removalReason;
    /** Tasks to close when the records before that request are read. */
    List<Closing> closings = new ArrayList<>();
    /** While a command waits until its records are read: how many more are read before it. */
    int recordsLeft = STAYS;

    ClientEntry(final Client client, final ProcessEntry process, final RecordRate rate) {
        this.client = client;
        this.process = process;
        this.rate = rate;
    }
}
