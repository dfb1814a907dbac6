/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.ContextRef;
import java.util.Arrays;

/**
 * The words of one GPU by which launches are held: those of the sessions of each context. A session that joins a held
 * context is held from the start. Enforcer thread only; {@link #hold} and {@link #go} allocate nothing.
 */
final class HeldLaunches implements AutoCloseable {
    private static final Context[] NONE = new Context[0];

    /** By context id; null where there is none. */
    private Context[] contexts = NONE;

    /** The sessions of one context. */
    private static final class Context {
        Session[] sessions = new Session[0];
        LaunchHold[] words = new LaunchHold[0];
        boolean held;
    }

    void attach(final ContextRef context) {
        final int id = context.contextId();
        if (id >= contexts.length) {
            contexts = Arrays.copyOf(contexts, id + 1);
        }
        contexts[id] = new Context();
    }

    void joined(final ContextRef context, final Session session, final LaunchHold word) {
        final Context c = find(context);
        if (c == null) {
            word.close();
            return;
        }
        c.sessions = Arrays.copyOf(c.sessions, c.sessions.length + 1);
        c.words = Arrays.copyOf(c.words, c.words.length + 1);
        c.sessions[c.sessions.length - 1] = session;
        c.words[c.words.length - 1] = word;
        if (c.held) {
            word.hold();
        }
    }

    void left(final ContextRef context, final Session session) {
        final Context c = find(context);
        final int at = c == null ? -1 : Arrays.asList(c.sessions).indexOf(session);
        if (at < 0) {
            return;
        }
        final int last = c.sessions.length - 1;
        c.words[at].go();
        c.words[at].close();
        c.sessions[at] = c.sessions[last];
        c.words[at] = c.words[last];
        c.sessions = Arrays.copyOf(c.sessions, last);
        c.words = Arrays.copyOf(c.words, last);
    }

    /** Launches of the context wait from here on. Returns the number of sessions that were told. */
    int hold(final ContextRef context) {
        return set(context, true);
    }

    /** Launches of the context go on. Returns the number of sessions that were told. */
    int go(final ContextRef context) {
        return set(context, false);
    }

    private int set(final ContextRef context, final boolean held) {
        final Context c = find(context);
        if (c == null) {
            return 0;
        }
        c.held = held;
        for (final LaunchHold word : c.words) {
            if (held) {
                word.hold();
            } else {
                word.go();
            }
        }
        return c.words.length;
    }

    /** Whether a session of the context has work in flight, as far as its program says. */
    boolean isInFlight(final ContextRef context) {
        final Context c = find(context);
        for (int i = 0; c != null && i < c.words.length; i++) {
            if (c.words[i].isInFlight()) {
                return true;
            }
        }
        return false;
    }

    /** The number of sessions. */
    int count(final ContextRef context) {
        final Context c = find(context);
        return c == null ? 0 : c.words.length;
    }

    void detach(final ContextRef context) {
        final Context c = find(context);
        if (c == null) {
            return;
        }
        for (final LaunchHold word : c.words) {
            word.go();
            word.close();
        }
        contexts[context.contextId()] = null;
    }

    private Context find(final ContextRef context) {
        return context.contextId() < contexts.length ? contexts[context.contextId()] : null;
    }

    @Override
    public void close() {
        for (int i = 0; i < contexts.length; i++) {
            if (contexts[i] != null) {
                for (final LaunchHold word : contexts[i].words) {
                    word.go();
                    word.close();
                }
                contexts[i] = null;
            }
        }
    }
}
