/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.agrona.collections.Int2ObjectHashMap;

/**
 * The processes that are followed, each once. The watch thread writes, and looks through them in every cycle without
 * making objects; other threads only {@link #find}.
 */
final class WatchedProcesses {
    /** W watch thread, R any thread. */
    private final Map<Integer, WatchedProcess> shared = new ConcurrentHashMap<>();
    private final Int2ObjectHashMap<WatchedProcess> byPid = new Int2ObjectHashMap<>();
    private final List<WatchedProcess> list = new ArrayList<>();

    /** Null if the process is not followed. Any thread. */
    WatchedProcess find(final int pid) {
        return shared.get(pid);
    }

    /** The same for the watch thread. */
    WatchedProcess get(final int pid) {
        return byPid.get(pid);
    }

    /** Not to be changed. One that is added meanwhile comes at the end, or in the place of that with the same pid. */
    List<WatchedProcess> list() {
        return list;
    }

    /** Adds a process; returns that of the same pid which it replaces, or null. */
    WatchedProcess put(final WatchedProcess p) {
        final WatchedProcess before = byPid.put(p.pid, p);
        shared.put(p.pid, p);
        if (before == null) {
            list.add(p);
        } else {
            list.set(list.indexOf(before), p);
        }
        return before;
    }

    /** Removes that at an index of the list; those behind it move. */
    void remove(final int index) {
        final WatchedProcess p = list.remove(index);
        byPid.remove(p.pid);
        shared.remove(p.pid);
    }
}
