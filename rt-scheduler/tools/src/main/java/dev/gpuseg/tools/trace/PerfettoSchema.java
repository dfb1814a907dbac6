/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Label;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;

/**
 * The few messages of a Perfetto trace that are written here. Names, numbers and types are those of Perfetto's public
 * definitions; {@code PerfettoFormat} of the tests states them again, with their sources, and is compared with a real
 * export. Enumerations are declared as int32, which is the same on the wire.
 */
final class PerfettoSchema {
    static final Descriptor TRACE;
    static final Descriptor PACKET;
    static final Descriptor CLOCK_SNAPSHOT;
    static final Descriptor CLOCK;
    static final Descriptor TRACK_DESCRIPTOR;
    static final Descriptor COUNTER_DESCRIPTOR;
    static final Descriptor TRACK_EVENT;
    static final Descriptor ANNOTATION;

    static {
        final FileDescriptorProto.Builder file = FileDescriptorProto.newBuilder().setName("gpuseg/perfetto.proto")
            .setPackage("perfetto.protos").setSyntax("proto2");
        file.addMessageType(message("Trace", many("packet", 1, "TracePacket")));
        file.addMessageType(message("TracePacket",
            one("timestamp", 8, Type.TYPE_UINT64),
            one("timestamp_clock_id", 58, Type.TYPE_UINT32),
            one("trusted_packet_sequence_id", 10, Type.TYPE_UINT32),
            one("sequence_flags", 13, Type.TYPE_UINT32),
            one("first_packet_on_sequence", 87, Type.TYPE_BOOL),
            one("clock_snapshot", 6, "ClockSnapshot"),
            one("track_event", 11, "TrackEvent"),
            one("track_descriptor", 60, "TrackDescriptor")));
        file.addMessageType(message("ClockSnapshot", many("clocks", 1, "Clock"),
            one("primary_trace_clock", 2, Type.TYPE_INT32)));
        file.addMessageType(message("Clock", one("clock_id", 1, Type.TYPE_UINT32),
            one("timestamp", 2, Type.TYPE_UINT64)));
        file.addMessageType(message("TrackDescriptor",
            one("uuid", 1, Type.TYPE_UINT64),
            one("name", 2, Type.TYPE_STRING),
            one("parent_uuid", 5, Type.TYPE_UINT64),
            one("counter", 8, "CounterDescriptor"),
            one("child_ordering", 11, Type.TYPE_INT32),
            one("sibling_order_rank", 12, Type.TYPE_INT32)));
        file.addMessageType(message("CounterDescriptor", one("unit", 3, Type.TYPE_INT32)));
        file.addMessageType(message("TrackEvent",
            many("categories", 22, Type.TYPE_STRING),
            one("name", 23, Type.TYPE_STRING),
            one("type", 9, Type.TYPE_INT32),
            one("track_uuid", 11, Type.TYPE_UINT64),
            one("counter_value", 30, Type.TYPE_INT64),
            many("flow_ids", 47, Type.TYPE_FIXED64),
            many("terminating_flow_ids", 48, Type.TYPE_FIXED64),
            many("debug_annotations", 4, "DebugAnnotation")));
        file.addMessageType(message("DebugAnnotation",
            one("name", 10, Type.TYPE_STRING),
            one("bool_value", 2, Type.TYPE_BOOL),
            one("int_value", 4, Type.TYPE_INT64),
            one("string_value", 6, Type.TYPE_STRING)));
        try {
            final FileDescriptor built = FileDescriptor.buildFrom(file.build(), new FileDescriptor[0]);
            TRACE = built.findMessageTypeByName("Trace");
            PACKET = built.findMessageTypeByName("TracePacket");
            CLOCK_SNAPSHOT = built.findMessageTypeByName("ClockSnapshot");
            CLOCK = built.findMessageTypeByName("Clock");
            TRACK_DESCRIPTOR = built.findMessageTypeByName("TrackDescriptor");
            COUNTER_DESCRIPTOR = built.findMessageTypeByName("CounterDescriptor");
            TRACK_EVENT = built.findMessageTypeByName("TrackEvent");
            ANNOTATION = built.findMessageTypeByName("DebugAnnotation");
        } catch (final DescriptorValidationException e) {
            throw new IllegalStateException(e);
        }
    }

    private PerfettoSchema() {
    }

    private static DescriptorProto message(final String name, final FieldDescriptorProto... fields) {
        final DescriptorProto.Builder builder = DescriptorProto.newBuilder().setName(name);
        for (final FieldDescriptorProto field : fields) {
            builder.addField(field);
        }
        return builder.build();
    }

    private static FieldDescriptorProto one(final String name, final int number, final Type type) {
        return FieldDescriptorProto.newBuilder().setName(name).setNumber(number).setType(type)
            .setLabel(Label.LABEL_OPTIONAL).build();
    }

    private static FieldDescriptorProto many(final String name, final int number, final Type type) {
        return one(name, number, type).toBuilder().setLabel(Label.LABEL_REPEATED).build();
    }

    private static FieldDescriptorProto one(final String name, final int number, final String message) {
        return one(name, number, Type.TYPE_MESSAGE).toBuilder().setTypeName(".perfetto.protos." + message).build();
    }

    private static FieldDescriptorProto many(final String name, final int number, final String message) {
        return one(name, number, message).toBuilder().setLabel(Label.LABEL_REPEATED).build();
    }
}
