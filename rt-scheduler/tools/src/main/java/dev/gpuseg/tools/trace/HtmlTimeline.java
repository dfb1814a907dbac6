/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.FilterWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A timeline as one HTML file that opens with a double click: no script, style, font or image from anywhere (a content
 * security policy in the page keeps it so). Times in the page are relative to the first event. Stateless.
 */
public final class HtmlTimeline {
    private static final String DATA = "@DATA@";
    private static final int OPTIMISTIC = 1;
    private static final int CANCELLED = 2;
    private static final int FORCED = 4;
    private static final int OPEN = 8;
    private static final int OVERRUN = 16;
    private static final double NS_PER_MS = 1e6;

    private final Trace trace;
    private final JsonGenerator out;
    private final List<String> policies = new ArrayList<>();

    private HtmlTimeline(final Trace trace, final JsonGenerator out) {
        this.trace = trace;
        this.out = out;
    }

    /**
     * Writes the page.
     *
     * @param trace    what happened
     * @param manifest of the recording; empty for a journal
     * @param to       where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void write(final Trace trace, final JsonNode manifest, final Writer to) throws IOException {
        final String page;
        try (InputStream in = HtmlTimeline.class.getResourceAsStream("timeline.html")) {
            page = new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
        final int at = page.indexOf(DATA);
        to.write(page, 0, at);
        try (JsonGenerator out = new JsonFactory().createGenerator(new ScriptWriter(to))) {
            new HtmlTimeline(trace, out).data(manifest);
        }
        to.write(page, at + DATA.length(), page.length() - at - DATA.length());
    }

    /** Within a script element no text may look like its end. */
    private static final class ScriptWriter extends FilterWriter {
        ScriptWriter(final Writer to) {
            super(to);
        }

        @Override
        public void write(final int c) throws IOException {
            if (c == '<') {
                out.write("\\u003c");
            } else {
                out.write(c);
            }
        }

        @Override
        public void write(final char[] text, final int offset, final int length) throws IOException {
            int from = offset;
            for (int i = offset; i < offset + length; i++) {
                if (text[i] == '<') {
                    out.write(text, from, i - from);
                    out.write("\\u003c");
                    from = i + 1;
                }
            }
            out.write(text, from, offset + length - from);
        }

        @Override
        public void write(final String text, final int offset, final int length) throws IOException {
            write(text.toCharArray(), offset, length);
        }

        @Override
        public void close() throws IOException {
            out.flush();   // the page goes on
        }
    }

    private long relative(final long timeNs) {
        return timeNs - trace.firstNs;
    }

    private int policy(final String name) {
        if (!policies.contains(name)) {
            policies.add(name);
        }
        return policies.indexOf(name);
    }

    private void data(final JsonNode manifest) throws IOException {
        out.writeStartObject();
        out.writeStringField("title", java.nio.file.Path.of(trace.title).getFileName().toString());
        out.writeBooleanField("simulated", trace.simulated);
        out.writeStringField("mechanism", trace.mechanism);
        out.writeNumberField("events", trace.events);
        out.writeNumberField("lost", trace.lost());
        out.writeNumberField("gpus", trace.gpus);
        out.writeNumberField("end_ns", relative(trace.lastNs));
        out.writeStringField("created", manifest.path("created_utc").asText());
        out.writeStringField("commit", manifest.path("commit").asText());
        final JsonNode host = manifest.path("host");
        out.writeStringField("host", host.isMissingNode() ? "" : host.path("os").asText() + ", "
            + host.path("cpus").asInt() + " CPUs, Java " + host.path("java").asText());
        if (!trace.clocks.isEmpty()) {
            final Trace.Clock clock = trace.clocks.get(0);
            out.writeNumberField("base_offset_ns", 0);
            out.writeObjectFieldStart("wall");
            out.writeNumberField("realtime_ms", clock.realtimeNs() / NS_PER_MS);
            out.writeNumberField("monotonic_offset_ns", relative(clock.monotonicNs()));
            out.writeEndObject();
        }
        out.writeArrayFieldStart("phases");
        for (final Trace.Phase phase : trace.phases) {
            out.writeStartArray();
            out.writeString(phase.policy());
            out.writeNumber(relative(phase.fromNs()));
            out.writeNumber(relative(phase.toNs()));
            out.writeEndArray();
        }
        out.writeEndArray();
        out.writeArrayFieldStart("tasks");
        for (final Trace.Task task : trace.tasks) {
            task(task);
        }
        out.writeEndArray();
        out.writeArrayFieldStart("contexts");
        for (final Trace.Context context : trace.contexts) {
            out.writeStartObject();
            out.writeStringField("name", context.name);
            out.writeNumberField("pid", context.pid);
            out.writeNumberField("gpu", context.gpu);
            out.writeStringField("kind", context.kind);
            spans("off", context.off);
            out.writeEndObject();
        }
        out.writeEndArray();
        marks();
        stats();
        out.writeArrayFieldStart("phaseNames");
        for (final String policy : policies) {
            out.writeString(policy);
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    private void spans(final String name, final List<Trace.Span> spans) throws IOException {
        out.writeArrayFieldStart(name);
        for (final Trace.Span span : spans) {
            out.writeNumber(relative(span.fromNs()));
            out.writeNumber(relative(span.toNs()));
        }
        out.writeEndArray();
    }

    private void task(final Trace.Task task) throws IOException {
        out.writeStartObject();
        out.writeStringField("name", task.name);
        out.writeNumberField("priority", task.priority);
        out.writeNumberField("gpu", task.gpu);
        out.writeNumberField("pid", task.pid);
        out.writeNumberField("period_ns", task.periodNs);
        out.writeNumberField("deadline_ns", task.deadlineNs);
        out.writeArrayFieldStart("segments");
        for (final Trace.Segment segment : task.segments) {
            segment(segment);
        }
        out.writeEndArray();
        out.writeArrayFieldStart("jobs");
        for (final Trace.Job job : task.jobs) {
            if (job.isComplete()) {
                out.writeStartArray();
                out.writeNumber(relative(job.releaseNs));
                out.writeNumber(relative(job.releaseNs + job.responseNs));
                out.writeNumber(job.isLate() ? 1 : 0);
                out.writeNumber(job.number);
                out.writeNumber(policy(job.policy));
                out.writeEndArray();
            }
        }
        out.writeEndArray();
        out.writeEndObject();
    }

    private void segment(final Trace.Segment s) throws IOException {
        out.writeStartArray();
        out.writeNumber(relative(s.beginNs));
        out.writeNumber(relative(s.goNs()));
        out.writeNumber(s.decidedNs == 0 ? -1 : relative(s.decidedNs));
        out.writeNumber(s.enforcedNs == 0 ? -1 : relative(s.enforcedNs));
        out.writeNumber(relative(Math.max(s.beginNs, s.endNs == 0 ? trace.lastNs : s.endNs)));
        out.writeNumber((s.optimistic ? OPTIMISTIC : 0) | (s.cancelled ? CANCELLED : 0) | (s.forced ? FORCED : 0)
            | (s.endNs == 0 ? OPEN : 0) | (s.overrunNs != 0 ? OVERRUN : 0));
        out.writeNumber(s.ticket);
        out.writeNumber(s.job == null ? 0 : s.job.number);
        out.writeNumber(s.deviceNs);
        out.writeNumber(s.deadlineNs == 0 ? -1 : relative(s.deadlineNs));
        out.writeStartArray();
        for (final Trace.Span hold : s.holds) {
            out.writeNumber(relative(hold.fromNs()));
            out.writeNumber(relative(hold.toNs()));
        }
        out.writeEndArray();
        out.writeStartArray();
        for (final Trace.Preemption preemption : s.preemptions) {
            out.writeNumber(relative(preemption.timeNs()));
            out.writeNumber(preemption.by() == null ? -1 : preemption.by().row);
        }
        out.writeEndArray();
        out.writeNumber(policy(s.policy));
        out.writeEndArray();
    }

    private void marks() throws IOException {
        out.writeArrayFieldStart("marks");
        for (final Trace.Mark mark : trace.marks) {
            out.writeStartArray();
            out.writeString(mark.kind());
            out.writeNumber(relative(mark.timeNs()));
            out.writeNumber(mark.durationNs());
            out.writeNumber(mark.task() == null ? -1 : mark.task().row);
            out.writeString(mark.text());
            out.writeEndArray();
        }
        out.writeEndArray();
    }

    private void stats() throws IOException {
        out.writeArrayFieldStart("stats");
        for (final TraceStats.Row row : TraceStats.of(trace)) {
            out.writeStartObject();
            out.writeStringField("task", row.task());
            out.writeStringField("policy", row.policy());
            out.writeNumberField("priority", row.priority());
            out.writeNumberField("jobs", row.jobs());
            out.writeNumberField("misses", row.misses());
            out.writeNumberField("p50", row.response().p50Ns());
            out.writeNumberField("p99", row.response().p99Ns());
            out.writeNumberField("max", row.response().maxNs());
            out.writeNumberField("wait99", row.waiting().p99Ns());
            out.writeNumberField("waitMax", row.waiting().maxNs());
            out.writeNumberField("preemptions", row.preemptions());
            out.writeNumberField("overruns", row.overruns());
            out.writeNumberField("share", row.gpuShare());
            out.writeEndObject();
        }
        out.writeEndArray();
    }
}
