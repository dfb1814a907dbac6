/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Small task sets in which one term of a theorem is a large part of a bound: two to five tasks with few segments, in a
 * shape that makes the term decide, and drawn times. Together with the search of a {@link Campaign} they exceed a bound
 * that lacks the term, which the larger sets of {@link CampaignSets} rarely do. Set k of a seed is a function of both.
 */
public final class WitnessSets {
    private static final int POINT = 1_100;
    private static final long MS = 1_000_000L;
    private static final long UNIT = MS / 4;

    /** What a set is made for. */
    public enum Shape {
        /** Tasks that wait for declared blocking for longer than they work. */
        BLOCKED,
        /** Updates take longer than windows. */
        UPDATES,
        /** Host and device parts overlap, unless a tied task of the core has the GPU. */
        OVERLAP,
        /** Switches of the hardware take longer than windows; device parts of several tasks follow each other. */
        SWITCHES,
        /** Short tasks of any kind on one or two cores: a job that waits long, and the next one at once. */
        CARRY_IN,
        /** A late release of a task of the core, and the next one soon after it. */
        LATE_LOCAL,
        /** A late release on one core, a long job on another one. */
        LATE_REMOTE,
        /** The same behind a gate: windows of others keep the GPU from the long job until the next late one comes. */
        LATE_AT_GATE,
        /** A thread keeps its core, by CPU work or a window on another GPU, while one below it has the GPU. */
        STOPPED,
        /** A thread that is late by another one meets a window of a lower one twice. */
        LATE_BY_FIRST,
        /** A short window of one task, a long one of a lower task of its process. */
        SHARED,
        /** Boosted host parts of lower tasks, one before the window of a higher one and one after it. */
        BLOCKERS,
        /** Two to four tasks of similar periods and much load, in whole milliseconds. */
        TINY
    }

    private WitnessSets() {
    }

    /**
     * One set of any shape.
     *
     * @param seed of the campaign
     * @param k    number of the set
     * @return the set
     */
    public static TaskSet generate(final long seed, final long k) {
        final Shape[] shapes = Shape.values();
        return generate(shapes[Seeds.random(seed, POINT, k).nextInt(shapes.length)], seed, k);
    }

    /**
     * One set of one shape.
     *
     * @param shape what the set is made for
     * @param seed  of the campaign
     * @param k     number of the set
     * @return the set
     */
    public static TaskSet generate(final Shape shape, final long seed, final long k) {
        final SplittableRandom random = Seeds.random(seed, POINT + 1 + shape.ordinal(), k);
        final Draw draw = new Draw(random);
        switch (shape) {
            case BLOCKED -> blocked(draw);
            case UPDATES -> updates(draw);
            case OVERLAP -> overlap(draw);
            case SWITCHES -> switches(draw);
            case CARRY_IN -> carryIn(draw);
            case LATE_LOCAL -> lateLocal(draw);
            case LATE_REMOTE -> lateRemote(draw);
            case LATE_AT_GATE -> lateAtGate(draw);
            case STOPPED -> stopped(draw);
            case LATE_BY_FIRST -> lateByFirst(draw);
            case SHARED -> shared(draw);
            case BLOCKERS -> blockers(draw);
            default -> tiny(draw);
        }
        return draw.set("w" + shape.ordinal() + "-" + seed + "-" + k);
    }

    private static void blocked(final Draw draw) {
        final int count = draw.between(1, 3);
        draw.cpus = draw.between(1, 2);
        for (int i = 0; i < count; i++) {
            final List<Segment> work = new ArrayList<>(List.of(draw.cpu(0, 4)));
            if (draw.coin()) {
                work.add(draw.window(0, 3, 1, 4));
            }
            draw.blockingNs = draw.units(4, 40);
            draw.task(draw.units(80, 200) * (i + 1), work);
        }
    }

    private static void updates(final Draw draw) {
        draw.cpus = 3;
        draw.epsilonNs = draw.units(4, 16);
        final int count = draw.between(2, 3);
        final boolean local = draw.coin();
        for (int i = 0; i < count; i++) {
            draw.onCpu = local ? 1 : i + 1;
            draw.task(draw.units(200, 400) * (i + 1), List.of(draw.cpu(0, 2), draw.window(0, 4, 1, 4)));
        }
    }

    /** The first task waits for its grant, then for the core of the second one, which cannot use the GPU meanwhile. */
    private static void overlap(final Draw draw) {
        draw.epsilonNs = draw.units(1, 3);
        final long period = draw.units(120, 200);
        draw.task(period, List.of(draw.cpu(0, 2), draw.window(1, 3, 1, 8)));
        draw.priority += draw.between(0, 3) == 0 ? 0 : 1;
        final long host = draw.units(12, 24);
        final long device = draw.units(12, 24);
        draw.task(period + draw.units(0, 80), List.of(draw.cpu(0, 2), new Segment.Gpu(host, device, Math.max(host,
            device))));
    }

    private static void switches(final Draw draw) {
        draw.cpus = 3;
        draw.thetaNs = draw.units(4, 16);
        final int count = draw.between(2, 3);
        for (int i = 0; i < count; i++) {
            draw.onCpu = i + 1;
            final List<Segment> work = new ArrayList<>();
            for (int windows = draw.between(1, 3); windows > 0; windows--) {
                work.add(draw.window(0, 1, 1, 3));
            }
            draw.task(draw.units(300, 600) * (i + 1), work);
        }
    }

    private static void carryIn(final Draw draw) {
        final long[] periods = {6, 8, 10, 12, 16, 20, 30, 60};
        draw.cpus = draw.between(1, 2);
        draw.gpus = draw.between(1, 2);
        final int count = draw.between(3, 4);
        final Integer[] drawn = new Integer[count];
        Arrays.setAll(drawn, i -> draw.between(0, periods.length - 1));
        Arrays.sort(drawn);
        for (int i = 0; i < count; i++) {
            final long period = periods[drawn[i]] * MS;
            final long unit = period / 20;
            final List<Segment> segments = new ArrayList<>();
            segments.add(new Segment.Cpu(unit * draw.between(0, 3)));
            if (draw.between(0, 3) != 0) {
                segments.add(new Segment.Gpu(unit * draw.between(0, 2), unit * draw.between(1, 6)));
                segments.add(new Segment.Cpu(unit * draw.between(0, 2)));
            }
            draw.jitterNs = draw.coin() ? 0 : unit * draw.between(0, 11);
            draw.onGpu = draw.between(0, draw.gpus - 1);
            draw.onCpu = draw.between(1, draw.cpus);
            draw.task(period, segments);
        }
    }

    private static void lateLocal(final Draw draw) {
        final long period = draw.between(6, 15) * MS;
        final long unit = period / 20;
        draw.jitterNs = unit * draw.between(8, 14);
        final long late = unit * draw.between(2, 5);
        draw.task(period, draw.coin() ? List.of(new Segment.Cpu(late)) : List.of(new Segment.Cpu(late / 2),
            new Segment.Gpu(late / 2, unit * draw.between(0, 1))));
        draw.jitterNs = 0;
        final Segment work = new Segment.Cpu(unit * draw.between(2, 10));
        draw.task(period * draw.between(2, 5), draw.coin() ? List.of(work) : List.of(work, draw.window(0, 1, 1, 1)));
    }

    private static void lateRemote(final Draw draw) {
        draw.cpus = 2;
        final long period = draw.between(6, 15) * MS;
        final long unit = period / 20;
        draw.onCpu = 1;
        draw.jitterNs = unit * draw.between(4, 12);
        draw.task(period, List.of(new Segment.Cpu(unit * draw.between(0, 1)), new Segment.Gpu(unit * draw.between(0,
            1), unit * draw.between(2, 5))));
        draw.onCpu = 2;
        draw.jitterNs = 0;
        draw.task(period * draw.between(2, 5), List.of(new Segment.Gpu(unit * draw.between(0, 1), unit * draw.between(2,
            10))));
    }

    /**
     * The late window ends before its deadline; two longer ones of other tasks between it and the next one keep the GPU
     * from the lowest task.
     */
    private static void lateAtGate(final Draw draw) {
        draw.cpus = 4;
        final long period = draw.between(6, 15) * MS;
        final long unit = period / 20;
        final long window = unit * draw.between(2, 5);
        final long between = unit * draw.between(4, 7);
        draw.onCpu = 1;
        draw.jitterNs = Math.max(0, period - window - between - unit * draw.between(0, 3));
        draw.task(period, List.of(new Segment.Gpu(0, window)));
        draw.jitterNs = 0;
        for (int i = 2; i <= 3; i++) {
            draw.onCpu = i;
            draw.task(period * draw.between(4, 6), List.of(new Segment.Gpu(0, between)));
        }
        draw.onCpu = 4;
        draw.task(period * draw.between(6, 8), List.of(new Segment.Gpu(0, unit * draw.between(1, 4))));
    }

    private static void stopped(final Draw draw) {
        draw.cpus = 2;
        draw.epsilonNs = draw.coin() ? 0 : draw.units(1, 3);
        draw.gpus = draw.between(1, 2);
        draw.onCpu = 1;
        final long period = draw.units(200, 400);
        if (draw.gpus == 2) {
            draw.onGpu = 1;
            draw.task(period, List.of(draw.window(12, 32, 1, 3)));
        } else {
            draw.task(period, List.of(draw.cpu(12, 32)));
        }
        draw.onGpu = 0;
        draw.task(period + draw.units(0, 40), List.of(draw.window(4, 12, 2, 8)));
        draw.onCpu = 2;
        draw.task(2 * period, List.of(draw.cpu(0, 4), draw.window(0, 2, 2, 12)));
    }

    private static void lateByFirst(final Draw draw) {
        draw.cpus = 2;
        final long window = draw.units(12, 28);
        final long first = draw.units(16, 40);
        draw.onCpu = 1;
        draw.task((window + first) * draw.between(6, 9), List.of(new Segment.Cpu(first)));
        draw.task(first + window + draw.units(4, 12), List.of(new Segment.Gpu(0, window)));
        draw.onCpu = draw.between(1, 2);
        draw.task((window + first) * draw.between(10, 20), List.of(draw.cpu(32, 64), draw.window(0, 0, 8, 16)));
    }

    private static void shared(final Draw draw) {
        draw.cpus = draw.between(1, 3);
        final int count = draw.between(2, 3);
        for (int i = 0; i < count; i++) {
            draw.onCpu = i + 1;
            draw.process = i > 0 && draw.between(0, 3) == 0 ? null : "p";
            draw.task(draw.units(120, 200) * (i + 1), List.of(draw.cpu(0, 4), draw.window(0, 4, 1, 8 * (i + 1))));
        }
    }

    private static void blockers(final Draw draw) {
        draw.gpus = 2;
        final long often = draw.units(36, 60);
        draw.task(often * draw.between(6, 18), List.of(draw.cpu(1, 8), new Segment.Gpu(0, often * 2 - draw.units(2,
            20)), draw.cpu(1, 8)));
        draw.onGpu = 1;
        draw.task(often, List.of(draw.window(8, 16, 0, 1)));
    }

    private static void tiny(final Draw draw) {
        draw.gpus = draw.between(0, 3) == 0 ? 2 : 1;
        draw.epsilonNs = draw.between(0, 1) * draw.between(1, 4) * MS / 2;
        draw.thetaNs = draw.between(0, 2) * MS / 4;
        draw.cpus = draw.between(1, 2);
        final int count = draw.between(2, 4);
        final boolean ties = draw.between(0, 2) == 0;
        for (int i = 0; i < count; i++) {
            final List<Segment> segments = new ArrayList<>();
            final int scale = draw.between(1, 3);   // of a task: mostly CPU time, or mostly device time
            segments.add(new Segment.Cpu(draw.between(0, 3) * MS / scale));
            for (int windows = draw.between(0, 2); windows > 0; windows--) {
                final long host = draw.between(0, 3) * MS / scale;
                final long device = draw.between(0, 2) * scale * MS;
                segments.add(draw.between(0, 3) == 0 ? new Segment.Gpu(host, device, Math.max(host, device))
                    : new Segment.Gpu(host, device));
                segments.add(new Segment.Cpu(draw.between(0, 2) * MS / scale));
            }
            draw.onCpu = draw.between(1, draw.cpus);
            draw.onGpu = draw.between(0, draw.gpus - 1);
            draw.task((6 + draw.between(0, draw.coin() ? 5 : 39)) * MS, segments);
            draw.priority += ties && i % 2 == 0 ? 1 : 0;
        }
    }

    /** A set in the making: the fields are those of the next task and of the platform. */
    private static final class Draw {
        private final SplittableRandom random;
        private final List<Task> tasks = new ArrayList<>();
        private int cpus = 1;
        private int gpus = 1;
        private long epsilonNs;
        private long thetaNs;
        private int onCpu = 1;
        private int onGpu;
        private long jitterNs;
        private long blockingNs;
        private int priority = 60;
        private String process;

        Draw(final SplittableRandom random) {
            this.random = random;
        }

        /** Both limits included. */
        int between(final int least, final int most) {
            return least + random.nextInt(most - least + 1);
        }

        boolean coin() {
            return random.nextBoolean();
        }

        long units(final int least, final int most) {
            return UNIT * between(least, most);
        }

        Segment cpu(final int least, final int most) {
            return new Segment.Cpu(units(least, most));
        }

        Segment window(final int hostLeast, final int hostMost, final int deviceLeast, final int deviceMost) {
            return new Segment.Gpu(units(hostLeast, hostMost), units(deviceLeast, deviceMost));
        }

        /** The next task has the next lower priority; its GPU priority is below all before, also where it is tied. */
        void task(final long periodNs, final List<Segment> segments) {
            tasks.add(new Task("t" + tasks.size(), Math.min(onCpu, cpus), onGpu, periodNs, periodNs, jitterNs,
                blockingNs, priority--, 60 - tasks.size(), false, segments).inProcess(process));
        }

        TaskSet set(final String id) {
            final List<Gpu> platform = new ArrayList<>();
            for (int g = 0; g < gpus; g++) {
                platform.add(new Gpu(epsilonNs, epsilonNs, thetaNs, MS));
            }
            return new TaskSet(id, new Platform(cpus, platform, true, null), WaitMode.SUSPEND, tasks);
        }
    }
}
