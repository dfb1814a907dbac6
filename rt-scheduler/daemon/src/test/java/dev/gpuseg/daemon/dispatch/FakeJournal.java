/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventWriter;
import java.util.ArrayList;
import java.util.List;

/** Keeps events; drops them while it is full. */
public final class FakeJournal implements EventWriter {
    /** One event; the text is empty where there is none. */
    record Event(EventKind kind, long timeNs, int gpu, int flags, int taskId, long ticket, int contextId, int clientId,
        long arg0, long arg1, long arg2, String text) {
    }

    final List<Event> events = new ArrayList<>();
    boolean full;

    @Override
    public boolean write(final EventKind kind, final long timeNs, final int gpu, final int flags, final int taskId,
        final long ticket, final int contextId, final int clientId, final long arg0, final long arg1,
        final long arg2) {
        return add(new Event(kind, timeNs, gpu, flags, taskId, ticket, contextId, clientId, arg0, arg1, arg2, ""));
    }

    @Override
    public boolean writeText(final EventKind kind, final long timeNs, final int gpu, final int taskId,
        final int contextId, final int clientId, final long arg0, final long arg1, final String text) {
        return add(new Event(kind, timeNs, gpu, 0, taskId, 0, contextId, clientId, arg0, arg1, 0, text));
    }

    private boolean add(final Event event) {
        if (!full) {
            events.add(event);
        }
        return !full;
    }

    public List<EventKind> kinds() {
        return events.stream().map(Event::kind).toList();
    }

    public List<String> texts() {
        return events.stream().map(Event::text).filter(text -> !text.isEmpty()).toList();
    }

    Event last() {
        return events.get(events.size() - 1);
    }
}
