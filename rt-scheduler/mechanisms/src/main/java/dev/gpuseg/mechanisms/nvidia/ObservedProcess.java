/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.observer.Observation;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * What the observer saw one process do with RM: the descriptors of the control device that it opened, and the objects
 * that exist. The process can have made any of it up, save the descriptors: RM is asked for a client before it is used,
 * and for everything once it has refused something. Watch thread only.
 */
final class ObservedProcess {
    /** A process with more is searched: it may only want this memory. */
    private static final int OBJECTS_MAX = 4_096;

    private final int pid;
    private final long startTicks;
    private final Map<Long, Observation> objects = new LinkedHashMap<>();
    private final Set<Integer> opened = new HashSet<>();
    private final Deque<Observation> news = new ArrayDeque<>();
    /** Channel groups and channels that it had scheduled. */
    private final Set<Long> scheduled = new HashSet<>();
    private boolean whole;
    private boolean filesChanged;

    ObservedProcess(final Observation first) {
        pid = first.pid();
        startTicks = first.startTicks();
        whole = first.whole();
    }

    /** Takes a record of this process. */
    void take(final Observation o) {
        switch (o.kind()) {
            case OPEN -> {
                opened.add(o.fd());
                filesChanged = true;
            }
            case CLOSE, EXEC -> {
                if (o.fd() >= 0) {
                    opened.remove(o.fd());
                }
                filesChanged = true;
            }
            case ALLOC -> {
                objects.put(key(o.client(), o.handle()), o);
                whole &= objects.size() <= OBJECTS_MAX;
                news.add(o);
            }
            case FREE -> {
                free(o);
                news.add(o);
            }
            case SCHEDULED -> {
                if (objects.containsKey(key(o.client(), o.handle()))) {
                    scheduled.add(key(o.client(), o.handle()));
                }
            }
            case UNSEEN -> whole = false;
            default -> {
                // nothing that concerns RM
            }
        }
        if (!whole) {
            forget();
        }
    }

    private void forget() {
        objects.clear();
        news.clear();
        scheduled.clear();
    }

    private void free(final Observation o) {
        objects.remove(key(o.client(), o.handle()));
        scheduled.remove(key(o.client(), o.handle()));
        if (o.client() == o.handle()) {
            objects.values().removeIf(x -> x.client() == o.client());
            scheduled.removeIf(x -> (int) (x >> Integer.SIZE) == o.client());
            return;
        }
        final Set<Integer> gone = new HashSet<>(Set.of(o.handle()));
        objects.values().removeIf(x -> {   // a parent was made before what is below it
            final boolean below = x.client() == o.client() && gone.contains(x.parent()) && gone.add(x.handle());
            if (below) {
                scheduled.remove(key(x.client(), x.handle()));
            }
            return below;
        });
    }

    private static long key(final int client, final int handle) {
        return (long) client << Integer.SIZE | handle & 0xffffffffL;
    }

    static boolean isClient(final Observation o) {
        return o.classId() == RmClass.CLIENT;
    }

    /** Whether it is the group of a context, or a channel: what is known then is to be acted upon at once. */
    static boolean beginsContext(final Observation o) {
        return o.kind() == Observation.Kind.ALLOC && (RmClass.isTsg(o.classId()) && o.engine() == RmClient.ENGINE_GR0
            || RmClass.isChannel(o.classId()));
    }

    long startTicks() {
        return startTicks;
    }

    /** Whether nothing that it made can be missing here. */
    boolean isWhole() {
        return whole;
    }

    /** It has something that was not seen, or that cannot be explained. For good: it is scanned from now on. */
    void giveUp() {
        whole = false;
        forget();
    }

    /** It has closed all descriptors through which it has made something so far, and with them what it made. */
    void forgetClosed() {
        forget();
    }

    /** Whether a channel can run: it, or its group, was scheduled. */
    boolean runs(final int client, final int channel, final int group) {
        return scheduled.contains(key(client, channel)) || scheduled.contains(key(client, group));
    }

    /** Whether it has seen this scheduled, or seen it no more. */
    boolean knows(final RmContext.Scheduled what) {
        final long key = key(what.client(), what.handle());
        return scheduled.contains(key) || !objects.containsKey(key);
    }

    /** From now on, all that exists counts as scheduled, in case nobody saw it. */
    void assumeScheduled() {
        scheduled.addAll(objects.keySet());
    }

    /** Whether the process itself opened the control device under this number. */
    boolean opened(final int fd) {
        return opened.contains(fd);
    }

    /** Whether descriptors were opened or closed since the last call. */
    boolean takeFilesChanged() {
        final boolean changed = filesChanged;
        filesChanged = false;
        return changed;
    }

    /** The next object that was made or freed, in order; null if there is none. */
    Observation nextNews() {
        return news.poll();
    }

    boolean hasNews() {
        return !news.isEmpty();
    }

    /** All that exists is going to be asked for: what is new is among it. */
    void clearNews() {
        news.clear();
    }

    /** Objects that exist, in the order in which they were made. */
    Collection<Observation> objects() {
        return objects.values();
    }
}
