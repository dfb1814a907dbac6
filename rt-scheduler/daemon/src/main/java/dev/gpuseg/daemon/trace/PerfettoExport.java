/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.trace;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Perfetto's own format: TrackEvents on tracks for each GPU, task, context and the daemon, arrows from begin over grant
 * and run to end, counters. Timestamps are CLOCK_MONOTONIC, and the clock snapshots of the recording are written with
 * them, so that a trace of another tool that has such snapshots too can be laid beside it. Stateless.
 */
public final class PerfettoExport {
    private static final int SEQUENCE = 1;
    private static final int STATE_CLEARED = 1;
    private static final int CLOCK_REALTIME = 1;
    private static final int CLOCK_MONOTONIC = 3;
    private static final int CLOCK_BOOTTIME = 6;
    private static final int SLICE_BEGIN = 1;
    private static final int SLICE_END = 2;
    private static final int INSTANT = 3;
    private static final int COUNTER = 4;
    private static final int EXPLICIT_ORDER = 3;
    private static final int UNIT_COUNT = 2;
    private static final int PACKET_FIELD = 1;

    private record Packet(long timeNs, DynamicMessage message) {
    }

    private PerfettoExport() {
    }

    /**
     * Writes a trace.
     *
     * @param trace what happened
     * @param to    where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void write(final Trace trace, final OutputStream to) throws IOException {
        final Timeline timeline = Timeline.of(trace);
        final CodedOutputStream out = CodedOutputStream.newInstance(to);
        boolean first = true;
        for (final Trace.Clock clock : trace.clocks) {
            out.writeMessage(PACKET_FIELD, snapshot(clock, first));
            first = false;
        }
        int rank = 0;
        for (final Timeline.Track track : timeline.tracks) {
            out.writeMessage(PACKET_FIELD, descriptor(track, rank++, first));
            first = false;
        }
        final List<Packet> packets = new ArrayList<>();
        for (final Timeline.Slice slice : timeline.slices) {
            add(packets, slice);
        }
        for (final Timeline.Instant instant : timeline.instants) {
            final DynamicMessage.Builder event = event(INSTANT, instant.track());
            set(event, "name", instant.name());
            addTo(event, "categories", instant.category());
            if (instant.flow() != 0) {
                addTo(event, "terminating_flow_ids", instant.flow());
            }
            annotate(event, instant.arguments());
            packets.add(packet(instant.timeNs(), event));
        }
        for (final Timeline.Count count : timeline.counts) {
            final DynamicMessage.Builder event = event(COUNTER, count.track());
            set(event, "counter_value", count.value());
            packets.add(packet(count.timeNs(), event));
        }
        packets.sort(Comparator.comparingLong(Packet::timeNs));   // stable: what nests stays nested
        for (final Packet packet : packets) {
            out.writeMessage(PACKET_FIELD, packet.message());
        }
        out.flush();
    }

    private static void add(final List<Packet> packets, final Timeline.Slice slice) {
        final DynamicMessage.Builder begin = event(SLICE_BEGIN, slice.track());
        set(begin, "name", slice.name());
        addTo(begin, "categories", slice.category());
        if (slice.flow() != 0) {
            addTo(begin, "flow_ids", slice.flow());
        }
        annotate(begin, slice.arguments());
        packets.add(packet(slice.fromNs(), begin));
        for (final Timeline.Slice child : slice.children()) {
            add(packets, child);
        }
        packets.add(packet(slice.toNs(), event(SLICE_END, slice.track())));
    }

    private static DynamicMessage.Builder event(final int type, final int track) {
        final DynamicMessage.Builder event = DynamicMessage.newBuilder(PerfettoSchema.TRACK_EVENT);
        set(event, "type", type);
        set(event, "track_uuid", (long) track);
        return event;
    }

    private static void annotate(final DynamicMessage.Builder event, final Map<String, Object> arguments) {
        arguments.forEach((name, value) -> {
            final DynamicMessage.Builder annotation = DynamicMessage.newBuilder(PerfettoSchema.ANNOTATION);
            set(annotation, "name", name);
            if (value instanceof Boolean bool) {
                set(annotation, "bool_value", bool);
            } else if (value instanceof Number number) {
                set(annotation, "int_value", number.longValue());
            } else {
                set(annotation, "string_value", value.toString());
            }
            addTo(event, "debug_annotations", annotation.build());
        });
    }

    private static Packet packet(final long timeNs, final DynamicMessage.Builder event) {
        final DynamicMessage.Builder packet = newPacket(timeNs);
        set(packet, "track_event", event.build());
        return new Packet(timeNs, packet.build());
    }

    private static DynamicMessage.Builder newPacket(final long timeNs) {
        final DynamicMessage.Builder packet = DynamicMessage.newBuilder(PerfettoSchema.PACKET);
        set(packet, "timestamp", timeNs);
        set(packet, "timestamp_clock_id", CLOCK_MONOTONIC);
        set(packet, "trusted_packet_sequence_id", SEQUENCE);
        return packet;
    }

    private static DynamicMessage snapshot(final Trace.Clock clock, final boolean first) {
        final DynamicMessage.Builder snapshot = DynamicMessage.newBuilder(PerfettoSchema.CLOCK_SNAPSHOT);
        addTo(snapshot, "clocks", clock(CLOCK_MONOTONIC, clock.monotonicNs()));
        addTo(snapshot, "clocks", clock(CLOCK_REALTIME, clock.realtimeNs()));
        if (clock.boottimeNs() != 0) {
            addTo(snapshot, "clocks", clock(CLOCK_BOOTTIME, clock.boottimeNs()));
        }
        set(snapshot, "primary_trace_clock", CLOCK_MONOTONIC);
        final DynamicMessage.Builder packet = newPacket(clock.monotonicNs());
        if (first) {
            set(packet, "sequence_flags", STATE_CLEARED);
        }
        set(packet, "clock_snapshot", snapshot.build());
        return packet.build();
    }

    private static DynamicMessage clock(final int id, final long timeNs) {
        final DynamicMessage.Builder clock = DynamicMessage.newBuilder(PerfettoSchema.CLOCK);
        set(clock, "clock_id", id);
        set(clock, "timestamp", timeNs);
        return clock.build();
    }

    private static DynamicMessage descriptor(final Timeline.Track track, final int rank, final boolean first) {
        final DynamicMessage.Builder descriptor = DynamicMessage.newBuilder(PerfettoSchema.TRACK_DESCRIPTOR);
        set(descriptor, "uuid", (long) track.id());
        set(descriptor, "name", track.name());
        if (track.parent() != Timeline.ROOT) {
            set(descriptor, "parent_uuid", (long) track.parent());
        }
        if (track.counter()) {
            final DynamicMessage.Builder counter = DynamicMessage.newBuilder(PerfettoSchema.COUNTER_DESCRIPTOR);
            set(counter, "unit", UNIT_COUNT);
            set(descriptor, "counter", counter.build());
        }
        set(descriptor, "child_ordering", EXPLICIT_ORDER);
        set(descriptor, "sibling_order_rank", rank);
        final DynamicMessage.Builder packet = DynamicMessage.newBuilder(PerfettoSchema.PACKET);
        set(packet, "trusted_packet_sequence_id", SEQUENCE);
        if (first) {
            set(packet, "sequence_flags", STATE_CLEARED);
        }
        set(packet, "track_descriptor", descriptor.build());
        return packet.build();
    }

    private static void set(final DynamicMessage.Builder builder, final String field, final Object value) {
        final Descriptor type = builder.getDescriptorForType();
        builder.setField(type.findFieldByName(field), value);
    }

    private static void addTo(final DynamicMessage.Builder builder, final String field, final Object value) {
        final Descriptor type = builder.getDescriptorForType();
        builder.addRepeatedField(type.findFieldByName(field), value);
    }
}
