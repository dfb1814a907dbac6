/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.google.protobuf.ByteString;
import com.google.protobuf.CodedInputStream;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.UnknownFieldSet;
import com.google.protobuf.WireFormat;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What Perfetto publishes about its format, as facts, and a reader that holds a file against them. It knows nothing of
 * the exporter's own descriptors: the file is decoded by tag and wire type alone.
 *
 * <p>Sources, all of github.com/google/perfetto: protos/perfetto/trace/trace.proto (016d1f43), trace_packet.proto
 * (02603952), clock_snapshot.proto (246b14de), track_event/track_event.proto (005055c9), counter_descriptor.proto
 * (9b959b7c), debug_annotation.proto (3e186c2c), common/builtin_clock.proto (4dba8e1f), track_descriptor.proto
 * (2b40f5e5) and, for its fields 11 and 12, the bindings generated from a later one (crate perfetto-sdk 0.2.0);
 * docs/reference/synthetic-track-event.md (03c02736); src/trace_processor/importers/proto/proto_trace_reader.cc
 * (02603952) for the order in which a packet's fields are looked at.
 */
public final class PerfettoFormat {
    /** What a file holds. */
    public record Contents(List<String> problems, Set<String> fields, Map<Long, String> tracks, int slices, int counts,
        int snapshots, int arrows, List<Span> spans) {
    }

    /** A slice that has ended. */
    public record Span(String track, String name, long fromNs, long toNs) {
    }

    private record Begun(String name, long timeNs) {
    }

    private enum Wire { VARINT, FIXED64, BYTES }

    private record Fact(String field, Wire wire, boolean repeated, String message, long max) {
    }

    private static final long ANY = -1;
    private static final Map<String, Map<Integer, Fact>> FACTS = new HashMap<>();

    static {
        fact("Trace", 1, "packet", Wire.BYTES, true, "TracePacket", ANY);
        fact("TracePacket", 6, "clock_snapshot", Wire.BYTES, false, "ClockSnapshot", ANY);
        fact("TracePacket", 8, "timestamp", Wire.VARINT, false, null, ANY);
        fact("TracePacket", 10, "trusted_packet_sequence_id", Wire.VARINT, false, null, 0xffffffffL);
        fact("TracePacket", 11, "track_event", Wire.BYTES, false, "TrackEvent", ANY);
        fact("TracePacket", 12, "interned_data", Wire.BYTES, false, "InternedData", ANY);
        fact("TracePacket", 13, "sequence_flags", Wire.VARINT, false, null, 3);
        fact("TracePacket", 58, "timestamp_clock_id", Wire.VARINT, false, null, 127);
        fact("TracePacket", 60, "track_descriptor", Wire.BYTES, false, "TrackDescriptor", ANY);
        fact("TracePacket", 87, "first_packet_on_sequence", Wire.VARINT, false, null, 1);
        fact("ClockSnapshot", 1, "clocks", Wire.BYTES, true, "Clock", ANY);
        fact("ClockSnapshot", 2, "primary_trace_clock", Wire.VARINT, false, null, 11);
        fact("Clock", 1, "clock_id", Wire.VARINT, false, null, 127);
        fact("Clock", 2, "timestamp", Wire.VARINT, false, null, ANY);
        fact("TrackDescriptor", 1, "uuid", Wire.VARINT, false, null, ANY);
        fact("TrackDescriptor", 2, "name", Wire.BYTES, false, null, ANY);
        fact("TrackDescriptor", 3, "process", Wire.BYTES, false, "ProcessDescriptor", ANY);
        fact("TrackDescriptor", 4, "thread", Wire.BYTES, false, "ThreadDescriptor", ANY);
        fact("TrackDescriptor", 5, "parent_uuid", Wire.VARINT, false, null, ANY);
        fact("TrackDescriptor", 8, "counter", Wire.BYTES, false, "CounterDescriptor", ANY);
        fact("TrackDescriptor", 11, "child_ordering", Wire.VARINT, false, null, 3);
        fact("TrackDescriptor", 12, "sibling_order_rank", Wire.VARINT, false, null, Integer.MAX_VALUE);
        fact("CounterDescriptor", 3, "unit", Wire.VARINT, false, null, 3);
        fact("TrackEvent", 4, "debug_annotations", Wire.BYTES, true, "DebugAnnotation", ANY);
        fact("TrackEvent", 9, "type", Wire.VARINT, false, null, 4);
        fact("TrackEvent", 11, "track_uuid", Wire.VARINT, false, null, ANY);
        fact("TrackEvent", 22, "categories", Wire.BYTES, true, null, ANY);
        fact("TrackEvent", 23, "name", Wire.BYTES, false, null, ANY);
        fact("TrackEvent", 30, "counter_value", Wire.VARINT, false, null, ANY);
        fact("TrackEvent", 47, "flow_ids", Wire.FIXED64, true, null, ANY);
        fact("TrackEvent", 48, "terminating_flow_ids", Wire.FIXED64, true, null, ANY);
        fact("DebugAnnotation", 2, "bool_value", Wire.VARINT, false, null, 1);
        fact("DebugAnnotation", 4, "int_value", Wire.VARINT, false, null, ANY);
        fact("DebugAnnotation", 6, "string_value", Wire.BYTES, false, null, ANY);
        fact("DebugAnnotation", 10, "name", Wire.BYTES, false, null, ANY);
    }

    private static void fact(final String message, final int number, final String field, final Wire wire,
        final boolean repeated, final String of, final long max) {
        FACTS.computeIfAbsent(message, m -> new TreeMap<>()).put(number, new Fact(field, wire, repeated, of, max));
    }

    private final List<String> problems = new ArrayList<>();
    private final Set<String> fields = new HashSet<>();
    private final Map<Long, String> tracks = new HashMap<>();
    private final Set<Long> parents = new HashSet<>();
    private final Set<Long> counters = new HashSet<>();
    private final Set<Long> explicit = new HashSet<>();
    private final Map<Long, Deque<Begun>> open = new HashMap<>();
    private final List<Span> spans = new ArrayList<>();
    private final Map<Long, Long> lastNs = new HashMap<>();
    private final Map<Long, Integer> flows = new HashMap<>();
    private final Set<Long> ended = new HashSet<>();
    private final Set<Long> clocks = new HashSet<>();
    private final Set<Long> cleared = new HashSet<>();
    private final Map<Long, Long> snapshotNs = new HashMap<>();
    private long primary = ANY;
    private int slices;
    private int counts;
    private int snapshots;
    private int at;

    private PerfettoFormat() {
    }

    /** The packets of a file, in order. */
    public static List<UnknownFieldSet> packets(final InputStream in) throws IOException {
        final List<UnknownFieldSet> all = new ArrayList<>();
        final CodedInputStream coded = CodedInputStream.newInstance(in);
        while (!coded.isAtEnd()) {
            final int tag = coded.readTag();
            if (WireFormat.getTagFieldNumber(tag) != 1
                || WireFormat.getTagWireType(tag) != WireFormat.WIRETYPE_LENGTH_DELIMITED) {
                throw new IOException("packet " + all.size() + ": tag " + tag + " is not that of Trace.packet");
            }
            all.add(UnknownFieldSet.parseFrom(coded.readBytes()));
        }
        return all;
    }

    /** Holds packets against all rules. */
    public static Contents read(final List<UnknownFieldSet> packets) throws InvalidProtocolBufferException {
        final PerfettoFormat format = new PerfettoFormat();
        for (final UnknownFieldSet packet : packets) {
            format.shape("TracePacket", packet);
            format.packet(packet);
            format.at++;
        }
        format.finish();
        return new Contents(format.problems, format.fields, format.tracks, format.slices, format.counts,
            format.snapshots, format.flows.size(), format.spans);
    }

    private void problem(final String text) {
        problems.add("packet " + at + ": " + text);
    }

    /** Every field that occurs is a published one, of its wire type, once unless repeated, in its range. */
    private void shape(final String message, final UnknownFieldSet set) throws InvalidProtocolBufferException {
        for (final Map.Entry<Integer, UnknownFieldSet.Field> entry : set.asMap().entrySet()) {
            final Fact fact = FACTS.getOrDefault(message, Map.of()).get(entry.getKey());
            final UnknownFieldSet.Field field = entry.getValue();
            if (fact == null) {
                problem(message + " has field " + entry.getKey() + ", which is not in the table");
                continue;
            }
            fields.add(message + "." + fact.field());
            final int varints = field.getVarintList().size();
            final int fixed = field.getFixed64List().size();
            final int bytes = field.getLengthDelimitedList().size();
            final int all = varints + fixed + bytes + field.getFixed32List().size() + field.getGroupList().size();
            final int right = fact.wire() == Wire.VARINT ? varints : fact.wire() == Wire.FIXED64 ? fixed : bytes;
            if (right != all) {
                problem(message + "." + fact.field() + " is not of wire type " + fact.wire());
                continue;
            }
            if (all > 1 && !fact.repeated()) {
                problem(message + "." + fact.field() + " occurs " + all + " times");
            }
            for (final long value : field.getVarintList()) {
                if (fact.max() != ANY && (value < 0 || value > fact.max())) {
                    problem(message + "." + fact.field() + " is " + value + ", beyond " + fact.max());
                }
            }
            for (final ByteString value : field.getLengthDelimitedList()) {
                if (fact.message() != null) {
                    shape(fact.message(), UnknownFieldSet.parseFrom(value));
                } else if (!value.isValidUtf8()) {
                    problem(message + "." + fact.field() + " is not UTF-8");
                }
            }
        }
    }

    private void packet(final UnknownFieldSet packet) throws InvalidProtocolBufferException {
        final long sequence = number(packet, 10, 0);
        if (sequence == 0) {
            problem("has no sequence");
        }
        if ((number(packet, 13, 0) & 1) != 0) {
            if (!cleared.add(sequence)) {
                problem("clears the sequence's state again");
            }
        } else if (!cleared.contains(sequence)) {
            problem("comes before its sequence's state is cleared");
        }
        int payloads = 0;
        for (final int kind : new int[] {6, 11, 60}) {
            payloads += packet.hasField(kind) ? 1 : 0;
        }
        if (payloads != 1) {
            problem("has " + payloads + " of clock_snapshot, track_event and track_descriptor");
        }
        if (packet.hasField(6)) {
            snapshot(message(packet, 6));   // read before the packet's own time is
        }
        if (packet.hasField(8) && !clocks.contains(number(packet, 58, 6))) {
            problem("is of clock " + number(packet, 58, 6) + ", which no snapshot before has");
        }
        if (packet.hasField(60)) {
            track(message(packet, 60));
        }
        if (packet.hasField(11)) {
            if (!packet.hasField(8)) {
                problem("is an event without a time");
            }
            event(message(packet, 11), number(packet, 8, 0));
        }
    }

    private void snapshot(final UnknownFieldSet snapshot) throws InvalidProtocolBufferException {
        final Set<Long> here = new HashSet<>();
        for (final ByteString bytes : snapshot.getField(1).getLengthDelimitedList()) {
            final UnknownFieldSet clock = UnknownFieldSet.parseFrom(bytes);
            final long id = number(clock, 1, 0);
            if (id < 1 || id > 6) {
                problem("clock " + id + " is none of the built-in ones");
            }
            if (!here.add(id)) {
                problem("has clock " + id + " twice");
            }
            final long timeNs = number(clock, 2, 0);
            if (id == 3 && timeNs < snapshotNs.getOrDefault(id, 0L)) {
                problem("CLOCK_MONOTONIC goes back");
            }
            snapshotNs.put(id, timeNs);
        }
        if (primary != ANY && primary != number(snapshot, 2, 6)) {
            problem("names another primary clock");
        }
        primary = number(snapshot, 2, 6);
        if (!here.contains(primary)) {
            problem("does not hold its primary clock");
        }
        clocks.addAll(here);
        snapshots++;
    }

    private void track(final UnknownFieldSet track) {
        final long uuid = number(track, 1, 0);
        if (uuid == 0 || tracks.containsKey(uuid)) {
            problem("track " + uuid + " is described twice, or is 0");
        }
        if (track.hasField(5)) {
            parents.add(number(track, 5, 0));
        }
        if (track.hasField(12) && !explicit.contains(number(track, 5, 0))) {
            problem("has a rank below a parent that does not ask for explicit order");
        }
        if (number(track, 11, 0) == 3) {
            explicit.add(uuid);
        }
        if (track.hasField(8)) {
            counters.add(uuid);
        }
        tracks.put(uuid, text(track, 2));
    }

    private void event(final UnknownFieldSet event, final long timeNs) {
        final long track = number(event, 11, 0);
        if (!tracks.containsKey(track)) {
            problem("is on track " + track + ", which was not described before");
        }
        if (timeNs < lastNs.getOrDefault(track, 0L)) {
            problem("goes back in time on track " + track);
        }
        lastNs.put(track, timeNs);
        final long type = number(event, 9, 0);
        if (counters.contains(track) != (type == 4)) {
            problem("type " + type + " on track " + track + " \"" + tracks.get(track) + "\"");
        }
        for (final int field : new int[] {47, 48}) {
            for (final long id : event.getField(field).getFixed64List()) {
                flows.merge(id, 1, Integer::sum);
                if (ended.contains(id)) {
                    problem("arrow " + id + " goes on after its end");
                }
                if (field == 48) {
                    ended.add(id);
                }
            }
        }
        if (type == 1) {
            open.computeIfAbsent(track, t -> new ArrayDeque<>()).push(new Begun(text(event, 23), timeNs));
            slices++;
        } else if (type == 2) {
            final Begun begun = open.getOrDefault(track, new ArrayDeque<>()).poll();
            if (begun == null) {
                problem("ends a slice that was not begun, on track " + track);
            } else {
                spans.add(new Span(tracks.get(track), begun.name(), begun.timeNs(), timeNs));
            }
        } else if (type == 4) {
            counts++;
            if (!event.hasField(30) || event.hasField(22) || event.hasField(23)) {
                problem("a counter has a value, and neither name nor categories");
            }
        } else if (type != 3) {
            problem("type " + type);
        }
        if ((type == 1 || type == 3) && !event.hasField(23)) {
            problem("has no name");
        }
    }

    private void finish() {
        open.forEach((track, begun) -> {
            if (!begun.isEmpty()) {
                problem("track " + track + " \"" + tracks.get(track) + "\" ends with " + begun.size() + " open slices");
            }
        });
        flows.forEach((id, count) -> {
            if (count < 2) {
                problem("arrow " + id + " has one end");
            }
        });
        parents.forEach(parent -> {
            if (!tracks.containsKey(parent)) {
                problem("parent " + parent + " is not described");
            }
        });
    }

    private static UnknownFieldSet message(final UnknownFieldSet in, final int field)
        throws InvalidProtocolBufferException {
        return UnknownFieldSet.parseFrom(in.getField(field).getLengthDelimitedList().get(0));
    }

    private static String text(final UnknownFieldSet in, final int field) {
        final List<ByteString> values = in.getField(field).getLengthDelimitedList();
        return values.isEmpty() ? "" : values.get(0).toString(StandardCharsets.UTF_8);
    }

    private static long number(final UnknownFieldSet in, final int field, final long otherwise) {
        final List<Long> values = in.getField(field).getVarintList();
        return values.isEmpty() ? otherwise : values.get(0);
    }
}
