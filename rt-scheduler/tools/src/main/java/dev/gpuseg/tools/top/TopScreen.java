/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.top;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jline.utils.AttributedString;
import org.jline.utils.AttributedStringBuilder;
import org.jline.utils.AttributedStyle;

/** Draws an answer to {@code live} as lines of exactly the terminal's width. Nothing here touches a terminal. */
public final class TopScreen {
    private static final AttributedStyle PLAIN = AttributedStyle.DEFAULT;
    private static final AttributedStyle BOLD = PLAIN.bold();
    private static final AttributedStyle DIM = PLAIN.foreground(AttributedStyle.BRIGHT);
    private static final AttributedStyle GREEN = PLAIN.foreground(AttributedStyle.GREEN);
    private static final AttributedStyle YELLOW = PLAIN.foreground(AttributedStyle.YELLOW);
    private static final AttributedStyle MAGENTA = PLAIN.foreground(AttributedStyle.MAGENTA);
    private static final AttributedStyle CYAN = PLAIN.foreground(AttributedStyle.CYAN);
    private static final AttributedStyle RED = PLAIN.foreground(AttributedStyle.RED).bold();
    private static final AttributedStyle HEADING = PLAIN.foreground(AttributedStyle.BLACK)
        .background(AttributedStyle.GREEN);
    private static final AttributedStyle SELECTED = PLAIN.foreground(AttributedStyle.BLACK)
        .background(AttributedStyle.CYAN);
    private static final int BAR = 30;
    private static final int NAME_MIN = 12;
    private static final int NAME_MAX = 32;
    private static final int BY_MIN = 10;
    private static final double NS_PER_MS = 1e6;
    private static final double NS_PER_S = 1e9;
    private static final int PERCENT = 100;

    /** Below this width only the columns that matter most are shown. */
    private static final int ROOMY = 120;
    private static final int FIXED = 5 + 11 + 9 + 9 + 9 + 6 + 6 + 8 + 2;
    private static final int FIXED_ROOMY = FIXED + 7 + 4 + 8 + 9;

    private final int width;
    private final boolean roomy;

    public TopScreen(final int width) {
        this.width = Math.max(40, width);
        roomy = width >= ROOMY;
    }

    private int fixed() {
        return roomy ? FIXED_ROOMY : FIXED;
    }

    /** A column that only a wide terminal has. */
    private String wide(final String text, final int columns) {
        return roomy ? right(text, columns) : "";
    }

    /** Four to five lines about the daemon, then one per GPU. */
    public List<AttributedString> header(final JsonNode view) {
        final JsonNode daemon = view.path("daemon");
        final List<AttributedString> lines = new ArrayList<>();
        final AttributedStringBuilder first = new AttributedStringBuilder();
        first.styled(BOLD, "gpuseg").append("  policy ").styled(BOLD, view.path("policy").asText())
            .append("  mechanism ").styled(BOLD, daemon.path("mechanism").asText() + " ("
            + daemon.path("level_name").asText() + ")");
        if (daemon.path("simulated").asBoolean()) {
            first.append("  ").styled(YELLOW.inverse(), " SIMULATED GPU ");
        }
        first.append("  up ").append(age(daemon.path("uptime_ns").asLong())).append("  pid ")
            .append(daemon.path("pid").asText());
        lines.add(cut(first));
        for (final JsonNode gpu : view.path("gpus")) {
            lines.add(cut(gpuLine(view, gpu)));
        }
        final JsonNode counters = view.path("counters");
        final AttributedStringBuilder last = new AttributedStringBuilder();
        number(last, "begins ", counters.path("begins").asLong(), PLAIN);
        number(last, "  preemptions ", counters.path("preemptions").asLong(), PLAIN);
        number(last, "  misses ", counters.path("job_misses").asLong(), RED);
        if (counters.path("bounds_broken").asLong() > 0) {
            number(last, "  above bound ", counters.path("bounds_broken").asLong(), RED);
        }
        number(last, "  overruns ", counters.path("overruns").asLong(), RED);
        number(last, "  held contexts ", daemon.path("held_contexts").asLong(), YELLOW);
        last.append("  cycle max ").append(ms(counters.path("max_cycle_ns").asLong())).append(" ms");
        lines.add(cut(last));
        return lines;
    }

    private static void number(final AttributedStringBuilder to, final String label, final long value,
        final AttributedStyle style) {
        to.append(label).styled(value == 0 ? PLAIN : style, Long.toString(value));
    }

    private AttributedStringBuilder gpuLine(final JsonNode view, final JsonNode gpu) {
        final double share = Math.max(0, Math.min(1, gpu.path("busy_share").asDouble()));
        final int full = (int) Math.round(share * BAR);
        final String text = String.format(Locale.ROOT, "%.1f%%", share * PERCENT);
        final AttributedStringBuilder line = new AttributedStringBuilder();
        line.styled(CYAN, "GPU " + gpu.path("gpu").asInt()).append(" ").styled(BOLD, "[");
        final String bar = "|".repeat(full) + " ".repeat(BAR - full);
        line.styled(GREEN, bar.substring(0, BAR - text.length())).styled(DIM, text).styled(BOLD, "]");
        line.append("  held by ");
        String holder = gpu.path("running").asInt() > 0 ? "best effort" : "no task";
        for (final JsonNode task : view.path("tasks")) {
            if (task.path("key").asInt() == gpu.path("holder").asInt()) {
                holder = task.path("name").asText() + " (" + task.path("priority").asInt() + ")";
            }
        }
        line.styled(GREEN, holder).append("  running ").append(gpu.path("running").asText()).append(" waiting ")
            .append(gpu.path("waiting").asText()).append(" preempted ").append(gpu.path("preempted").asText());
        final JsonNode enforcement = gpu.path("enforcement_ns");
        if (enforcement.path("count").asLong() > 0) {
            line.append("  enforce p50/p99/max ").append(ms(enforcement.path("p50").asLong())).append("/")
                .append(ms(enforcement.path("p99").asLong())).append("/")
                .append(ms(enforcement.path("max").asLong())).append(" ms");
        }
        return line;
    }

    /** The table's heading; the column of the order is marked. */
    public AttributedString heading(final TopRow.Sort sort, final boolean reversed) {
        final String mark = reversed ? "\u25b3" : "\u25bd";
        final AttributedStringBuilder line = new AttributedStringBuilder();
        line.style(HEADING);
        line.append(left(sort == TopRow.Sort.NAME ? "TASK" + mark : "TASK", nameWidth()));
        line.append(wide("PID", 7)).append(wide("GPU", 4)).append(mark("PRIO", 5, sort, TopRow.Sort.PRIORITY, mark))
            .append(" ").append(left(sort == TopRow.Sort.STATE ? "STATE" + mark : "STATE", 10))
            .append(wide(sort == TopRow.Sort.RATE ? "RATE/s" + mark : "RATE/s", 8))
            .append(mark("p50 ms", 9, sort, TopRow.Sort.P50,
            mark)).append(mark("p99 ms", 9, sort, TopRow.Sort.P99, mark))
            .append(mark("max ms", 9, sort, TopRow.Sort.MAX, mark)).append(wide("D ms", 9))
            .append(mark("MISS", 6, sort, TopRow.Sort.MISSES, mark))
            .append(mark("GPU%", 6, sort, TopRow.Sort.SHARE, mark))
            .append(mark("PREEMPT", 8, sort, TopRow.Sort.PREEMPTIONS, mark)).append("  ")
            .append(left("LAST BY", Math.max(0, width - nameWidth() - fixed())));
        return cut(line);
    }

    private static String mark(final String text, final int columns, final TopRow.Sort sort, final TopRow.Sort own,
        final String mark) {
        return right(sort == own ? text + mark : text, columns);
    }

    private int nameWidth() {
        return Math.max(NAME_MIN, Math.min(NAME_MAX, width - fixed() - (roomy ? BY_MIN : 0)));
    }

    /** One task. */
    public AttributedString row(final TopRow row, final boolean selected) {
        final AttributedStringBuilder line = new AttributedStringBuilder();
        if (selected) {
            line.style(SELECTED);
        }
        line.append(left(row.name(), nameWidth())).append(wide(Integer.toString(row.pid()), 7))
            .append(wide(Integer.toString(row.gpu()), 4))
            .append(right(row.priority() == 0 ? "BE" : Integer.toString(row.priority()), 5)).append(" ");
        styled(line, selected, stateStyle(row.state()), left(row.state(), 10));
        line.append(wide(String.format(Locale.ROOT, "%.1f", row.rate()), 8));
        line.append(right(ms(row.p50Ns()), 9));
        styled(line, selected, over(row.p99Ns(), row.deadlineNs()), right(ms(row.p99Ns()), 9));
        styled(line, selected, over(row.maxNs(), row.deadlineNs()), right(ms(row.maxNs()), 9));
        line.append(wide(row.deadlineNs() == 0 ? "-" : ms(row.deadlineNs()), 9));
        styled(line, selected, row.misses() > 0 ? RED : DIM, right(count(row.misses()), 6));
        line.append(right(String.format(Locale.ROOT, "%.1f", row.share() * PERCENT), 6));
        line.append(right(count(row.preemptions()), 8)).append("  ");
        line.append(left(row.preemptions() == 0 ? "" : (row.preemptedBy().isEmpty() ? "?" : row.preemptedBy()) + " "
            + age(row.preemptAgoNs()) + " ago", Math.max(0, width - nameWidth() - fixed())));
        return cut(line);
    }

    private static void styled(final AttributedStringBuilder to, final boolean selected, final AttributedStyle style,
        final String text) {
        if (selected) {
            to.append(text);
        } else {
            to.styled(style, text);
        }
    }

    private static AttributedStyle over(final long ns, final long deadlineNs) {
        return deadlineNs > 0 && ns > deadlineNs ? RED : PLAIN;
    }

    private static AttributedStyle stateStyle(final String state) {
        switch (state) {
            case "running":
                return GREEN.bold();
            case "waiting":
                return YELLOW;
            case "preempted":
                return MAGENTA;
            default:
                return DIM;
        }
    }

    /** A bar over the whole width. */
    AttributedString bar(final String text, final boolean alarm) {
        final AttributedStringBuilder line = new AttributedStringBuilder();
        line.styled(alarm ? PLAIN.foreground(AttributedStyle.WHITE).background(AttributedStyle.RED) : HEADING,
            left(text, width));
        return cut(line);
    }

    AttributedString text(final String text) {
        return cut(new AttributedStringBuilder().append(text));
    }

    private AttributedString cut(final AttributedStringBuilder line) {
        return line.columnLength() <= width ? line.toAttributedString() : line.columnSubSequence(0, width);
    }

    private static String left(final String text, final int columns) {
        final AttributedString string = new AttributedString(text);
        final int length = string.columnLength();
        return length <= columns - 1 ? text + " ".repeat(columns - length)
            : string.columnSubSequence(0, Math.max(0, columns - 1)) + (columns > 0 ? " " : "");
    }

    private static String right(final String text, final int columns) {
        return " ".repeat(Math.max(1, columns - text.length())) + text;
    }

    private static String count(final long value) {
        return value < 100_000 ? Long.toString(value) : value / 1_000 + "k";
    }

    /** Two digits behind the point, three below 1 ms, none above 10 s; "-" for a negative number. */
    static String ms(final long ns) {
        if (ns < 0) {
            return "-";
        }
        final double ms = ns / NS_PER_MS;
        return String.format(Locale.ROOT, ms < 1 ? "%.3f" : ms < 10_000 ? "%.2f" : "%.0f", ms);
    }

    /** Seconds with a tenth below a minute, then minutes, hours, days. */
    static String age(final long ns) {
        final Duration d = Duration.ofNanos(Math.max(0, ns));
        if (d.toMinutes() == 0) {
            return String.format(Locale.ROOT, "%.1fs", ns / NS_PER_S);
        }
        if (d.toHours() == 0) {
            return String.format(Locale.ROOT, "%dm%02ds", d.toMinutes(), d.toSecondsPart());
        }
        return d.toDays() == 0 ? String.format(Locale.ROOT, "%dh%02dm", d.toHours(), d.toMinutesPart())
            : String.format(Locale.ROOT, "%dd%02dh", d.toDays(), d.toHoursPart());
    }
}
