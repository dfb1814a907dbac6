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
    private static final String GAP = "  ";
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

    /** Whether all columns and keys are shown. */
    boolean isRoomy() {
        return roomy;
    }

    private int fixed() {
        return roomy ? FIXED_ROOMY : FIXED;
    }

    /** A column that only a wide terminal has. */
    private String wide(final String text, final int columns) {
        return roomy ? right(text, columns) : "";
    }

    /** About the daemon and each GPU: items side by side, on the next line where one does not fit. */
    public List<AttributedString> header(final JsonNode view) {
        final JsonNode daemon = view.path("daemon");
        final List<AttributedStringBuilder> first = new ArrayList<>();
        first.add(item("", "gpuseg", BOLD));
        first.add(item("policy ", view.path("policy").asText(), BOLD));
        first.add(item("mechanism ", daemon.path("mechanism").asText() + " (" + daemon.path("level_name").asText()
            + ")", BOLD));
        if (daemon.path("simulated").asBoolean()) {
            first.add(item("", " SIMULATED GPU ", YELLOW.inverse()));
        }
        first.add(item("up ", age(daemon.path("uptime_ns").asLong()), PLAIN));
        first.add(item("pid ", daemon.path("pid").asText(), PLAIN));
        final List<AttributedString> lines = new ArrayList<>(flow(first));
        for (final JsonNode gpu : view.path("gpus")) {
            lines.addAll(flow(gpu(view, gpu)));
        }
        final JsonNode counters = view.path("counters");
        final List<AttributedStringBuilder> last = new ArrayList<>();
        last.add(number("begins ", counters.path("begins").asLong(), PLAIN));
        last.add(number("preemptions ", counters.path("preemptions").asLong(), PLAIN));
        last.add(number("misses ", counters.path("job_misses").asLong(), RED));
        if (counters.path("bounds_broken").asLong() > 0) {
            last.add(number("above bound ", counters.path("bounds_broken").asLong(), RED));
        }
        if (counters.path("constants_broken").asLong() > 0) {
            last.add(number("above constant ", counters.path("constants_broken").asLong(), RED));
        }
        last.add(number("overruns ", counters.path("overruns").asLong(), RED));
        last.add(number("held contexts ", daemon.path("held_contexts").asLong(), YELLOW));
        last.add(item("cycle max ", ms(counters.path("max_cycle_ns").asLong()) + " ms", PLAIN));
        lines.addAll(flow(last));
        return lines;
    }

    private static AttributedStringBuilder item(final String label, final String value, final AttributedStyle style) {
        return new AttributedStringBuilder().append(label).styled(style, value);
    }

    private static AttributedStringBuilder number(final String label, final long value, final AttributedStyle style) {
        return item(label, Long.toString(value), value == 0 ? PLAIN : style);
    }

    /** As many items on a line as fit whole. */
    private List<AttributedString> flow(final List<AttributedStringBuilder> items) {
        final List<AttributedString> lines = new ArrayList<>();
        AttributedStringBuilder line = new AttributedStringBuilder();
        for (final AttributedStringBuilder item : items) {
            if (line.length() > 0 && line.columnLength() + GAP.length() + item.columnLength() > width) {
                lines.add(cut(line));
                line = new AttributedStringBuilder();
            }
            line.append(line.length() == 0 ? "" : GAP).append(item.toAttributedString());
        }
        lines.add(cut(line));
        return lines;
    }

    private List<AttributedStringBuilder> gpu(final JsonNode view, final JsonNode gpu) {
        final double share = Math.max(0, Math.min(1, gpu.path("busy_share").asDouble()));
        final int full = (int) Math.round(share * BAR);
        final String text = String.format(Locale.ROOT, "%.1f%%", share * PERCENT);
        final String bar = "|".repeat(full) + " ".repeat(BAR - full);
        final List<AttributedStringBuilder> items = new ArrayList<>();
        items.add(new AttributedStringBuilder().styled(CYAN, "GPU " + gpu.path("gpu").asInt()).append(" ")
            .styled(BOLD, "[").styled(GREEN, bar.substring(0, BAR - text.length())).styled(DIM, text)
            .styled(BOLD, "]"));
        String holder = gpu.path("running").asInt() > 0 ? "best effort" : "no task";
        for (final JsonNode task : view.path("tasks")) {
            if (task.path("key").asInt() == gpu.path("holder").asInt()) {
                holder = task.path("name").asText() + " (" + task.path("priority").asInt() + ")";
            }
        }
        items.add(item("held by ", holder, GREEN));
        items.add(item("running ", gpu.path("running").asText() + " waiting " + gpu.path("waiting").asText()
            + " preempted " + gpu.path("preempted").asText(), PLAIN));
        final JsonNode enforcement = gpu.path("enforcement_ns");
        if (enforcement.path("count").asLong() > 0) {
            items.add(item("enforce p50/p99/max ", ms(enforcement.path("p50").asLong()) + "/"
                + ms(enforcement.path("p99").asLong()) + "/" + ms(enforcement.path("max").asLong()) + " ms", PLAIN));
        }
        return items;
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
        final long deadlineNs = row.priority() == 0 ? 0 : row.deadlineNs();   // best effort is never late
        styled(line, selected, over(row.p99Ns(), deadlineNs), right(ms(row.p99Ns()), 9));
        styled(line, selected, over(row.maxNs(), deadlineNs), right(ms(row.maxNs()), 9));
        line.append(wide(deadlineNs == 0 ? "-" : ms(deadlineNs), 9));
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

    /** Bars over the whole width, as many as the words need. */
    List<AttributedString> bars(final String text, final boolean alarm) {
        final List<AttributedString> bars = new ArrayList<>();
        String line = "";
        for (final String word : text.strip().split(" +")) {
            if (!line.isEmpty() && new AttributedString(line + " " + word).columnLength() >= width - 1) {
                bars.add(bar(line, alarm));
                line = "";
            }
            line += " " + word;
        }
        bars.add(bar(line, alarm));
        return bars;
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
