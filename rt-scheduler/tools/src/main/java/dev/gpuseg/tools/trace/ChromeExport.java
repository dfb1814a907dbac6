/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.Writer;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;

/**
 * The Trace Event format of Chrome (JSON), which Perfetto, Speedscope and others read as well: {@code ts} and {@code
 * dur} in microseconds of CLOCK_MONOTONIC with three decimals. Groups are shown as processes, tracks as threads.
 * Stateless.
 */
public final class ChromeExport {
    private static final int NS_DIGITS = 3;

    private ChromeExport() {
    }

    /**
     * Writes a trace.
     *
     * @param trace what happened
     * @param to    where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void write(final Trace trace, final Writer to) throws IOException {
        final Timeline timeline = Timeline.of(trace);
        final Map<Integer, Integer> groups = new HashMap<>();
        final JsonGenerator out = new JsonFactory().disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET)
            .createGenerator(to);
        out.writeStartObject();
        out.writeStringField("displayTimeUnit", "ms");
        out.writeObjectFieldStart("otherData");
        out.writeStringField("source", trace.title);
        out.writeStringField("clock", "CLOCK_MONOTONIC");
        out.writeBooleanField("simulated", trace.simulated);
        out.writeEndObject();
        out.writeArrayFieldStart("traceEvents");
        for (final Timeline.Track track : timeline.tracks) {
            final boolean group = track.parent() == Timeline.ROOT;
            groups.put(track.id(), group ? track.id() : track.parent());
            name(out, group ? "process_name" : "thread_name", groups.get(track.id()), track.id(), track.name());
            sort(out, group ? "process_sort_index" : "thread_sort_index", groups.get(track.id()), track.id());
        }
        for (final Timeline.Slice slice : timeline.slices) {
            slice(out, slice, groups);
        }
        for (final Timeline.Instant instant : timeline.instants) {
            start(out, "i", groups.get(instant.track()), instant.track(), instant.timeNs());
            out.writeStringField("name", instant.name());
            out.writeStringField("cat", instant.category());
            out.writeStringField("s", "t");
            arguments(out, instant.arguments());
            out.writeEndObject();
            if (instant.flow() != 0) {
                flow(out, "f", groups.get(instant.track()), instant.track(), instant.timeNs(), instant.flow());
            }
        }
        final Map<Integer, String> names = new HashMap<>();
        timeline.tracks.forEach(t -> names.put(t.id(), t.name()));
        for (final Timeline.Count count : timeline.counts) {
            start(out, "C", groups.get(count.track()), count.track(), count.timeNs());
            out.writeStringField("name", names.get(count.track()));
            arguments(out, Map.of("value", count.value()));
            out.writeEndObject();
        }
        out.writeEndArray();
        out.writeEndObject();
        out.flush();
    }

    private static void slice(final JsonGenerator out, final Timeline.Slice slice, final Map<Integer, Integer> groups)
        throws IOException {
        final int group = groups.get(slice.track());
        start(out, "X", group, slice.track(), slice.fromNs());
        out.writeNumberField("dur", BigDecimal.valueOf(slice.toNs() - slice.fromNs(), NS_DIGITS));
        out.writeStringField("name", slice.name());
        out.writeStringField("cat", slice.category());
        arguments(out, slice.arguments());
        out.writeEndObject();
        if (slice.flow() != 0) {
            // the slice of the whole segment is where the arrow comes from
            flow(out, slice.children().isEmpty() ? "t" : "s", group, slice.track(), slice.fromNs(), slice.flow());
        }
        for (final Timeline.Slice child : slice.children()) {
            slice(out, child, groups);
        }
    }

    private static void start(final JsonGenerator out, final String phase, final int pid, final int tid,
        final long timeNs) throws IOException {
        out.writeStartObject();
        out.writeStringField("ph", phase);
        out.writeNumberField("pid", pid);
        out.writeNumberField("tid", tid);
        out.writeNumberField("ts", BigDecimal.valueOf(timeNs, NS_DIGITS));
    }

    private static void name(final JsonGenerator out, final String what, final int pid, final int tid,
        final String name) throws IOException {
        start(out, "M", pid, tid, 0);
        out.writeStringField("name", what);
        arguments(out, Map.of("name", name));
        out.writeEndObject();
    }

    private static void sort(final JsonGenerator out, final String what, final int pid, final int tid)
        throws IOException {
        start(out, "M", pid, tid, 0);
        out.writeStringField("name", what);
        arguments(out, Map.of("sort_index", tid));
        out.writeEndObject();
    }

    private static void flow(final JsonGenerator out, final String phase, final int pid, final int tid,
        final long timeNs, final long id) throws IOException {
        start(out, phase, pid, tid, timeNs);
        out.writeStringField("name", "segment");
        out.writeStringField("cat", "flow");
        out.writeNumberField("id", id);
        if (phase.equals("f")) {
            out.writeStringField("bp", "e");
        }
        out.writeEndObject();
    }

    private static void arguments(final JsonGenerator out, final Map<String, Object> arguments) throws IOException {
        out.writeObjectFieldStart("args");
        for (final Map.Entry<String, Object> entry : arguments.entrySet()) {
            out.writeFieldName(entry.getKey());
            if (entry.getValue() instanceof Boolean bool) {
                out.writeBoolean(bool);
            } else if (entry.getValue() instanceof Number number) {
                out.writeNumber(number.longValue());
            } else {
                out.writeString(entry.getValue().toString());
            }
        }
        out.writeEndObject();
    }
}
