/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import dev.gpuseg.daemon.conductor.Client;
import java.util.ArrayList;
import java.util.List;

/** One registered client, as the dispatcher keeps it. Dispatcher thread only. */
final class ClientEntry {
    final Client client;
    final ProcessEntry process;
    final List<TaskEntry> tasks = new ArrayList<>();
    boolean poisoned;

    ClientEntry(final Client client, final ProcessEntry process) {
        this.client = client;
        this.process = process;
    }
}
