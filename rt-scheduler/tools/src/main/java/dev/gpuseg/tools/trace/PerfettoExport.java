/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.google.protobuf.CodedOutputStream;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.DynamicMessage;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * Perfetto's own format: TrackEvents on tracks for each GPU, task, context and the daemon, arrows from begin over grant
 * and run to end, counters. Timestamps are CLOCK_MONOTONIC, and the clock snapshots of the recording are written with
 * them, so that a trace of another tool that has such snapshots too can be laid beside it: identifiers of tracks and
 * arrows, which are global in Perfetto, and that of the packet sequence are drawn from the trace's name and first time,
 * so that two traces appended to each other do not clash, and the same trace gives the same file. One thread.
 */
public final class PerfettoExport {
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
    private static final int ROOT_TRACK = Integer.MAX_VALUE;
    private static final String SEGMENT = "segment";

    /** Arrows follow time; of events at the same time, a task's come before what they cause on another track. */
    private record Packet(long timeNs, int rank, DynamicMessage message) {
        private static final Comparator<Packet> ORDER =
            Comparator.comparingLong(Packet::timeNs).thenComparingInt(Packet::rank);
    }

    private static final int RANK_TASK = 0;
    private static final int RANK_OTHER = 1;
    private static final int RANK_INSTANT = 2;
    /** Track and arrow numbers of one trace stay below. */
    private static final int NUMBER_BITS = 31;

    private final Timeline timeline;
    private final List<Packet> packets = new ArrayList<>();
    private final Set<Long> arrows = new HashSet<>();
    private final int sequence;
    private final long base;
    private boolean first = true;

    private PerfettoExport(final Trace trace) {
        timeline = Timeline.of(trace);
        final CRC32 name = new CRC32();
        name.update((trace.title + " " + trace.firstNs).getBytes(StandardCharsets.UTF_8));
        sequence = (int) name.getValue() | 1;   // 0 is no sequence
        base = name.getValue() << NUMBER_BITS;
        final Map<Long, Integer> touches = new HashMap<>();
        timeline.slices.forEach(slice -> touch(slice, touches));
        timeline.instants.forEach(instant -> touches.merge(instant.flow(), 1, Integer::sum));
        touches.forEach((flow, count) -> {
            if (flow != 0 && count > 1) {   // of an arrow with one end nothing can be drawn
                arrows.add(flow);
            }
        });
    }

    private static void touch(final Timeline.Slice slice, final Map<Long, Integer> touches) {
        touches.merge(slice.flow(), 1, Integer::sum);
        slice.children().forEach(child -> touch(child, touches));
    }

    /**
     * Writes a trace.
     *
     * @param trace what happened
     * @param to    where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void write(final Trace trace, final OutputStream to) throws IOException {
        new PerfettoExport(trace).writeTo(trace, to);
    }

    private void writeTo(final Trace trace, final OutputStream to) throws IOException {
        final CodedOutputStream out = CodedOutputStream.newInstance(to);
        for (final Trace.Clock clock : trace.clocks) {
            out.writeMessage(PACKET_FIELD, snapshot(clock));
        }
        if (trace.clocks.isEmpty()) {   // a clock that is used must have been read
            out.writeMessage(PACKET_FIELD, snapshot(new Trace.Clock(trace.firstNs, 0, 0, 0)));
        }
        // Order can be asked for among the children of a track only: one track holds all of them.
        out.writeMessage(PACKET_FIELD, descriptor(new Timeline.Track(ROOT_TRACK, ROOT_TRACK,
            "gpuseg" + (trace.simulated ? " (simulated)" : ""), 0, false), 0));
        int rank = 0;
        for (final Timeline.Track track : timeline.tracks) {
            out.writeMessage(PACKET_FIELD, descriptor(track, rank++));
        }
        timeline.slices.stream().sorted(Comparator.comparingLong(Timeline.Slice::fromNs)).forEach(this::add);
        for (final Timeline.Instant instant : timeline.instants) {
            final DynamicMessage.Builder event = event(INSTANT, instant.track());
            set(event, "name", instant.name());
            addTo(event, "categories", instant.category());
            if (arrows.contains(instant.flow())) {
                addTo(event, "terminating_flow_ids", base + instant.flow());
            }
            annotate(event, instant.arguments());
            add(instant.timeNs(), RANK_INSTANT, event);
        }
        for (final Timeline.Count count : timeline.counts) {
            final DynamicMessage.Builder event = event(COUNTER, count.track());
            set(event, "counter_value", count.value());
            add(count.timeNs(), RANK_OTHER, event);
        }
        packets.sort(Packet.ORDER);   // stable, and one track has one rank: what nests stays nested
        for (final Packet packet : packets) {
            out.writeMessage(PACKET_FIELD, packet.message());
        }
        out.flush();
    }

    private void add(final Timeline.Slice slice) {
        final int rank = SEGMENT.equals(slice.category()) ? RANK_TASK : RANK_OTHER;
        final DynamicMessage.Builder begin = event(SLICE_BEGIN, slice.track());
        set(begin, "name", slice.name());
        addTo(begin, "categories", slice.category());
        if (arrows.contains(slice.flow())) {
            addTo(begin, "flow_ids", base + slice.flow());
        }
        annotate(begin, slice.arguments());
        add(slice.fromNs(), rank, begin);
        for (final Timeline.Slice child : slice.children()) {
            add(child);
        }
        add(slice.toNs(), rank, event(SLICE_END, slice.track()));
    }

    private DynamicMessage.Builder event(final int type, final int track) {
        final DynamicMessage.Builder event = DynamicMessage.newBuilder(PerfettoSchema.TRACK_EVENT);
        set(event, "type", type);
        set(event, "track_uuid", base + track);
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

    private void add(final long timeNs, final int rank, final DynamicMessage.Builder event) {
        final DynamicMessage.Builder packet = newPacket(timeNs);
        set(packet, "track_event", event.build());
        packets.add(new Packet(timeNs, rank, packet.build()));
    }

    private DynamicMessage.Builder newPacket(final long timeNs) {
        final DynamicMessage.Builder packet = newPacket();
        set(packet, "timestamp", timeNs);
        set(packet, "timestamp_clock_id", CLOCK_MONOTONIC);
        return packet;
    }

    private DynamicMessage.Builder newPacket() {
        final DynamicMessage.Builder packet = DynamicMessage.newBuilder(PerfettoSchema.PACKET);
        set(packet, "trusted_packet_sequence_id", sequence);
        if (first) {
            set(packet, "sequence_flags", STATE_CLEARED);
            set(packet, "first_packet_on_sequence", true);
            first = false;
        }
        return packet;
    }

    private DynamicMessage snapshot(final Trace.Clock clock) {
        final DynamicMessage.Builder snapshot = DynamicMessage.newBuilder(PerfettoSchema.CLOCK_SNAPSHOT);
        addTo(snapshot, "clocks", clock(CLOCK_MONOTONIC, clock.monotonicNs()));
        if (clock.realtimeNs() != 0) {
            addTo(snapshot, "clocks", clock(CLOCK_REALTIME, clock.realtimeNs()));
        }
        if (clock.boottimeNs() != 0) {
            addTo(snapshot, "clocks", clock(CLOCK_BOOTTIME, clock.boottimeNs()));
        }
        set(snapshot, "primary_trace_clock", CLOCK_MONOTONIC);
        final DynamicMessage.Builder packet = newPacket(clock.monotonicNs());
        set(packet, "clock_snapshot", snapshot.build());
        return packet.build();
    }

    private static DynamicMessage clock(final int id, final long timeNs) {
        final DynamicMessage.Builder clock = DynamicMessage.newBuilder(PerfettoSchema.CLOCK);
        set(clock, "clock_id", id);
        set(clock, "timestamp", timeNs);
        return clock.build();
    }

    private DynamicMessage descriptor(final Timeline.Track track, final int rank) {
        final DynamicMessage.Builder descriptor = DynamicMessage.newBuilder(PerfettoSchema.TRACK_DESCRIPTOR);
        set(descriptor, "uuid", base + track.id());
        set(descriptor, "name", track.name());
        if (track.id() != ROOT_TRACK) {
            set(descriptor, "parent_uuid", base + (track.parent() == Timeline.ROOT ? ROOT_TRACK : track.parent()));
            set(descriptor, "sibling_order_rank", rank);
        }
        if (track.counter()) {
            final DynamicMessage.Builder counter = DynamicMessage.newBuilder(PerfettoSchema.COUNTER_DESCRIPTOR);
            set(counter, "unit", UNIT_COUNT);
            set(descriptor, "counter", counter.build());
        } else {
            set(descriptor, "child_ordering", EXPLICIT_ORDER);
        }
        final DynamicMessage.Builder packet = newPacket();
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
