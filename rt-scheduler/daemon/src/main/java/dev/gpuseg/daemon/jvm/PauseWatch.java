/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import com.sun.management.GarbageCollectionNotificationInfo;
import com.sun.management.GcInfo;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.management.ListenerNotFoundException;
import javax.management.Notification;
import javax.management.NotificationEmitter;
import javax.management.NotificationListener;
import javax.management.openmbean.CompositeData;

/**
 * Tells when garbage collections stopped the JVM. The JVM reports after the pause, on a thread of its own, in whole
 * milliseconds since its start; a pause shorter than that has a duration of 0.
 */
public final class PauseWatch implements AutoCloseable {
    /** Receives pauses on the JVM's notification thread. */
    @FunctionalInterface
    public interface Listener {
        void onPause(long beganNs, long durationNs);
    }

    private final List<NotificationEmitter> emitters = new ArrayList<>();
    private final NotificationListener listener;

    public PauseWatch(final Listener told) {
        final long jvmStartNs = System.nanoTime()
            - TimeUnit.MILLISECONDS.toNanos(ManagementFactory.getRuntimeMXBean().getUptime());
        listener = (notification, ignored) -> onNotification(notification, jvmStartNs, told);
        for (final GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            // concurrent cycles of ZGC and Shenandoah stop nothing; their pauses have a bean of their own
            if (collector instanceof NotificationEmitter emitter && !collector.getName().endsWith("Cycles")) {
                emitter.addNotificationListener(listener, null, null);
                emitters.add(emitter);
            }
        }
    }

    private static void onNotification(final Notification notification, final long jvmStartNs, final Listener told) {
        if (GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION.equals(notification.getType())) {
            final GcInfo info =
                GarbageCollectionNotificationInfo.from((CompositeData) notification.getUserData()).getGcInfo();
            told.onPause(jvmStartNs + TimeUnit.MILLISECONDS.toNanos(info.getStartTime()),
                TimeUnit.MILLISECONDS.toNanos(info.getDuration()));
        }
    }

    @Override
    public void close() {
        for (final NotificationEmitter emitter : emitters) {
            try {
                emitter.removeNotificationListener(listener);
            } catch (final ListenerNotFoundException e) {
                throw new IllegalStateException(e);   // it was added to exactly these
            }
        }
        emitters.clear();
    }
}
