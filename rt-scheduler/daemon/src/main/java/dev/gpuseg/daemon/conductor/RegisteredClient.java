/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import java.util.HashMap;
import java.util.Map;

/** What the conductor's thread knows of a client. */
final class RegisteredClient {
    final Client client;
    final Connection connection;
    final Map<Integer, String> namesByTask = new HashMap<>();
    /** By the names of open tasks and of those being opened: {@link TaskRights#load}. */
    final Map<String, Long> loads = new HashMap<>();
    boolean removing;
    /** Why it is being removed: one of {@link Removal}. */
    int reason;

    RegisteredClient(final Client client, final Connection connection) {
        this.client = client;
        this.connection = connection;
    }
}
