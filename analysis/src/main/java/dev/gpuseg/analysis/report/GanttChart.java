/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.sim.TraceSink.Activity;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * A schedule: one row for each task, with its thread above and its segment below, and one row for each GPU. Arrivals
 * are marked above the row, deadlines below it; the worst job is shaded.
 */
public final class GanttChart {
    /** Width in CSS pixels. */
    public static final int WIDTH = 1000;
    private static final int LEFT = 130;
    private static final int RIGHT = 14;
    private static final int TOP = 46;
    private static final int ROW = 40;
    private static final int INK = 0x1f2933;
    private static final int GREY = 0x5f6b7a;
    private static final int FAINT = 0xe1e5ea;
    private static final int SHADE = 0xfff3d6;
    private static final int CPU = 0x2f6fb5;
    private static final int HOST = 0x1b9e8a;
    private static final int SPIN = 0xb9c4d0;
    private static final int DEVICE = 0xe07b1a;
    private static final int SWITCH = 0x8d6e63;
    private static final int UPDATE = 0x4a4f57;
    private static final int WAITING = 0xd9c9ec;
    private static final int HOLDING = 0xfad9b5;
    private static final int PREEMPTED = 0xc0392b;

    private final WorstCase worst;
    private final List<Integer> order = new ArrayList<>();
    private final int gpus;

    /**
     * A chart.
     *
     * @param worst the run to show
     */
    public GanttChart(final WorstCase worst) {
        this.worst = worst;
        for (int i = 0; i < worst.set().tasks().size(); i++) {
            order.add(i);
        }
        order.sort(Comparator.comparingInt((Integer i) -> -worst.set().tasks().get(i).priority()));
        gpus = worst.set().platform().gpus().size();
    }

    /** Height of this chart; CSS pixels. */
    public int height() {
        return TOP + ROW * (order.size() + gpus) + 44;
    }

    /**
     * Draws it.
     *
     * @param canvas at least {@link #WIDTH} by {@link #height()}
     */
    public void draw(final Canvas canvas) {
        legend(canvas);
        final int bottom = TOP + ROW * (order.size() + gpus);
        if (worst.task() >= 0) {
            final int row = TOP + ROW * order.indexOf(worst.task());
            final double x = x(worst.arrivalNs());
            canvas.rectangle(x, row, x(worst.arrivalNs() + worst.responseNs()) - x, ROW, SHADE, "worst job: response "
                + Durations.format(worst.responseNs()));
        }
        axis(canvas, bottom);
        for (int k = 0; k < order.size(); k++) {
            final Task task = worst.set().tasks().get(order.get(k));
            final int y = TOP + ROW * k;
            canvas.line(LEFT, y + ROW, WIDTH - RIGHT, y + ROW, FAINT, 1, false);
            canvas.text(LEFT - 8, y + 18, 12, Canvas.Anchor.END, true, INK, shorten(task.name()));
            canvas.text(LEFT - 8, y + 32, 10.5, Canvas.Anchor.END, false, GREY, "cpu " + task.cpu()
                + (task.bestEffort() ? ", best effort" : ", prio " + task.priority()));
        }
        for (int g = 0; g < gpus; g++) {
            final int y = TOP + ROW * (order.size() + g);
            canvas.line(LEFT, y + ROW, WIDTH - RIGHT, y + ROW, FAINT, 1, false);
            canvas.text(LEFT - 8, y + 24, 12, Canvas.Anchor.END, true, INK, "GPU " + g);
        }
        // states first, then work over them, then marks
        for (final WorstCase.Interval i : worst.intervals()) {
            if (i.lane() == WorstCase.Lane.SEGMENT) {
                segment(canvas, i);
            }
        }
        for (final WorstCase.Interval i : worst.intervals()) {
            if (i.lane() == WorstCase.Lane.CPU || i.lane() == WorstCase.Lane.GPU) {
                work(canvas, i);
            }
        }
        for (final WorstCase.Interval i : worst.intervals()) {
            if (i.lane() == WorstCase.Lane.JOB) {
                job(canvas, i);
            }
        }
    }

    private void legend(final Canvas canvas) {
        final String[] names = {"CPU segment", "host part", "spins", "device part", "runlist update", "switch",
            "waits for grant", "holds the GPU", "preempted", "arrival", "deadline"};
        final int[] colours = {CPU, HOST, SPIN, DEVICE, UPDATE, SWITCH, WAITING, HOLDING, PREEMPTED, INK, INK};
        double x = 6;
        for (int i = 0; i < names.length; i++) {
            if (i >= 9) {
                canvas.line(x + 5, 8, x + 5, 20, colours[i], 1.6, i == 10);
            } else {
                canvas.rectangle(x, 9, 11, 11, colours[i], null);
            }
            canvas.text(x + 15, 19, 11, Canvas.Anchor.START, false, INK, names[i]);
            x += 29 + names[i].length() * 6.2;
        }
    }

    private void axis(final Canvas canvas, final int bottom) {
        final double spanMs = (worst.toNs() - worst.fromNs()) / 1e6;
        final double raw = spanMs / 12;
        final double power = Math.pow(10, Math.floor(Math.log10(raw)));
        final double step = raw / power < 2 ? 2 * power : raw / power < 5 ? 5 * power : 10 * power;
        for (double at = Math.ceil(worst.fromNs() / 1e6 / step) * step; at <= worst.toNs() / 1e6; at += step) {
            final double x = x(Math.round(at * 1e6));
            canvas.line(x, TOP, x, bottom + 4, FAINT, 1, false);
            canvas.text(x, bottom + 18, 11, Canvas.Anchor.MIDDLE, false, GREY, tidy(at));
        }
        canvas.line(LEFT, bottom, WIDTH - RIGHT, bottom, GREY, 1, false);
        canvas.text((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36, 12, Canvas.Anchor.MIDDLE, false, INK,
            "time (ms), simulated");
    }

    private void segment(final Canvas canvas, final WorstCase.Interval i) {
        final int y = TOP + ROW * order.indexOf(i.task());
        final int colour = i.activity() == Activity.WAITING ? WAITING : i.activity() == Activity.HOLDING ? HOLDING
            : PREEMPTED;
        final double height = i.activity() == Activity.PREEMPTED ? 4 : 12;
        block(canvas, i, y + 22 + (12 - height) / 2, height, colour);
    }

    private void work(final Canvas canvas, final WorstCase.Interval i) {
        if (i.lane() == WorstCase.Lane.CPU) {
            final int y = TOP + ROW * order.indexOf(i.task());
            block(canvas, i, y + 6, 13, i.activity() == Activity.CPU ? CPU : i.activity() == Activity.HOST
                ? HOST : SPIN);
            return;
        }
        final int lane = TOP + ROW * (order.size() + i.resource());
        final int colour = i.activity() == Activity.DEVICE ? DEVICE : i.activity() == Activity.SWITCH ? SWITCH : UPDATE;
        final double width = block(canvas, i, lane + 8, 22, colour);
        if (i.activity() == Activity.DEVICE) {
            block(canvas, i, TOP + ROW * order.indexOf(i.task()) + 22, 12, DEVICE);
            final String name = worst.set().tasks().get(i.task()).name();
            if (width > 7.0 * name.length() + 6) {
                canvas.text((clamp(i.fromNs()) + clamp(i.toNs())) / 2, lane + 23, 11, Canvas.Anchor.MIDDLE, false,
                    0xffffff,
                    name);
            }
        }
    }

    private void job(final Canvas canvas, final WorstCase.Interval i) {
        final int y = TOP + ROW * order.indexOf(i.task());
        if (i.fromNs() >= worst.fromNs() && i.fromNs() <= worst.toNs()) {
            canvas.line(x(i.fromNs()), y + 1, x(i.fromNs()), y + 20, INK, 1.6, false);
        }
        final Task task = worst.set().tasks().get(i.task());
        final long deadline = i.fromNs() + task.deadlineNs();
        if (!task.bestEffort() && deadline >= worst.fromNs() && deadline <= worst.toNs()) {
            canvas.line(x(deadline), y + 2, x(deadline), y + ROW - 2, i.resource() == 1 ? PREEMPTED : INK, 1.6, true);
        }
    }

    private double block(final Canvas canvas, final WorstCase.Interval i, final double y, final double height,
        final int colour) {
        final double from = clamp(i.fromNs());
        final double width = clamp(i.toNs()) - from;
        final String who = i.task() < 0 ? "" : worst.set().tasks().get(i.task()).name() + ": ";
        canvas.rectangle(from, y, Math.max(width, 0.5), height, colour, who
            + i.activity().name().toLowerCase(Locale.ROOT) + " " + Durations.milliseconds(i.fromNs()) + " to "
            + Durations.milliseconds(i.toNs()) + " ms");
        return width;
    }

    private double clamp(final long ns) {
        return x(Math.max(worst.fromNs(), Math.min(worst.toNs(), ns)));
    }

    private double x(final long ns) {
        return LEFT + (double) (Math.min(ns, worst.toNs()) - worst.fromNs()) / (worst.toNs() - worst.fromNs())
            * (WIDTH - LEFT - RIGHT);
    }

    private static String shorten(final String name) {
        return name.length() <= 16 ? name : name.substring(0, 15) + "\u2026";
    }

    private static String tidy(final double ms) {
        final String text = String.format(Locale.ROOT, "%.4f", ms);
        return text.replaceAll("0+$", "").replaceAll("\\.$", "");
    }
}
