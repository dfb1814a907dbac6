/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * The recurrences of the published GCAPS program, errors included, each error with a switch. They serve to attribute
 * every disagreement with our analyses to an error: without fixes they must reproduce the recorded verdicts, with
 * all fixes ours. Doubles and milliseconds, as there.
 */
final class ArtifactForms {
    /** An error of that program, named by its correction. */
    enum Fix {
        /** tsg-rr-suspend: R_h, not T_h, in the jitter. */
        TSG_JITTER_FROM_RESPONSE,
        /** tsg-rr-busy: charge CPU-only local tasks. */
        TSG_CHARGE_CPU_ONLY,
        /** tsg-rr-busy: the right tasks take turns with h. */
        TSG_RIGHT_TURNS,
        /** tsg-rr-busy: h's own slices count once, its G and second Gm do not. */
        TSG_COUNT_WORK_ONCE,
        /** fmlp-suspend: a sleeping local higher task can be in front of a request. */
        FMLP_LOCAL_HIGHER,
        /** fmlp-suspend: a task also sleeps in its own device parts. */
        FMLP_SLEEP_IN_DEVICE,
        /** mpcp: the request-driven cap is a count, not a time. */
        MPCP_CAP_IS_A_COUNT,
        /** mpcp: a holding time contains no windows of other tasks. */
        MPCP_HOLDING_TIME,
        /** mpcp: a task's own windows do not block it. */
        MPCP_OWN_WINDOWS,
        /** mpcp: the jitter of a GPU part is that of the GPU part. */
        MPCP_GPU_JITTER,
        /** mpcp-busy: a spinning holder keeps its core for G. */
        MPCP_SPINNING_HOLDER,
        /** mpcp: the sections of a task add up to its total (the importer corrects the largest one). */
        SECTIONS_ADD_UP
    }

    private static final double SLICE = 1.0;
    private static final double THETA = 0.2;

    private final int n;
    private final double[] period;
    private final double[] c;
    private final double[] g;
    private final double[] gm;
    private final double[][] total;
    private final double[][] host;
    private final double[][] device;
    private final int[] cpu;
    private final int[] priority;
    private final int[][] wrongLower;
    private final Set<Fix> fixes;

    ArtifactForms(final JsonNode tasks, final Set<Fix> fixes) {
        n = tasks.size();
        period = new double[n];
        c = new double[n];
        g = new double[n];
        gm = new double[n];
        total = new double[n][];
        host = new double[n][];
        device = new double[n][];
        cpu = new int[n];
        priority = new int[n];
        wrongLower = new int[n][];
        this.fixes = fixes.isEmpty() ? EnumSet.noneOf(Fix.class) : EnumSet.copyOf(fixes);
        for (int i = 0; i < n; i++) {
            final JsonNode t = tasks.get(i);
            period[i] = t.get("T").asDouble();
            c[i] = t.get("C").asDouble();
            g[i] = t.get("G").asDouble();
            gm[i] = t.get("Gm").asDouble();
            cpu[i] = t.get("cpu").asInt();
            priority[i] = t.get("prio").asInt();
            final int eta = t.get("ges").size();
            total[i] = new double[eta];
            host[i] = new double[eta];
            device[i] = new double[eta];
            for (int j = 0; j < eta; j++) {
                total[i][j] = t.get("ges").get(j).get(0).asDouble();
                host[i][j] = t.get("ges").get(j).get(1).asDouble();
                device[i][j] = t.get("ges").get(j).get(2).asDouble();
            }
            if (this.fixes.contains(Fix.SECTIONS_ADD_UP) && eta > 0) {
                addUp(total[i].clone(), total[i], g[i]);
                addUp(total[i], host[i], gm[i]);
            }
            // that program's list of lower-priority tasks: indices from the wrong end
            wrongLower[i] = new int[Math.max(0, n - i - 1)];
            for (int k = 0; k < wrongLower[i].length; k++) {
                wrongLower[i][k] = k;
            }
        }
    }

    /** Puts the difference to the sum into the section with the largest key. */
    private static void addUp(final double[] keys, final double[] values, final double sum) {
        int largest = 0;
        double rest = sum;
        for (int j = 0; j < values.length; j++) {
            largest = keys[j] > keys[largest] ? j : largest;
            rest -= values[j];
        }
        values[largest] += rest;
    }

    boolean accepts(final String analysis) {
        final double[] r = new double[n];
        for (int i = 0; i < n; i++) {
            if (priority[i] < 0) {
                continue;
            }
            double w = c[i] + g[i];
            double next = step(analysis, i, w, r);
            while (Math.abs(next - w) > 1e-7 && next <= period[i] + 1e-7) {
                w = next;
                next = step(analysis, i, w, r);
            }
            if (next > period[i] + 1e-7) {
                return false;
            }
            r[i] = next;
        }
        return true;
    }

    private double step(final String analysis, final int i, final double w, final double[] r) {
        final boolean busy = analysis.endsWith("busy");
        return switch (analysis) {
            case "tsg-rr-suspend" -> c[i] + g[i] + turns(i, others(i)) + sumHigher(i, h -> ceil((w
                + (fixes.contains(Fix.TSG_JITTER_FROM_RESPONSE) ? r[h]
                : period[h]) - c[h] - gm[h]) / period[h]) * (c[h] + gm[h]));
            case "tsg-rr-busy" -> c[i] + g[i] + turns(i, others(i)) + sumHigher(i, h -> ceil(w / period[h]) * spin(i,
                h));
            default -> c[i] + g[i] + sumHigher(i, h -> {
                final double x = c[h] + (busy ? g[h] : gm[h]);
                return ceil((w + r[h] - x) / period[h]) * x;
            }) + (analysis.startsWith("fmlp") ? fmlp(i, w, busy) : mpcp(i, w, r, busy));
        };
    }

    private interface Cost {
        double of(int h);
    }

    private double sumHigher(final int i, final Cost cost) {
        double sum = 0;
        for (int h = 0; h < n; h++) {
            if (isLocalHigher(h, i)) {
                sum += cost.of(h);
            }
        }
        return sum;
    }

    private boolean isLocalHigher(final int h, final int i) {
        return h != i && cpu[h] == cpu[i] && priority[h] > priority[i];
    }

    private static double ceil(final double x) {
        return Math.ceil(x - 1e-9);
    }

    private int others(final int i) {
        int count = 0;
        for (int k = 0; k < n; k++) {
            if (k != i && total[k].length > 0) {
                count++;
            }
        }
        return count;
    }

    private double turns(final int h, final int count) {
        double slices = 0;
        for (final double d : device[h]) {
            slices += Math.ceil(d / SLICE - 1e-9);
        }
        return slices * count * (SLICE + THETA);
    }

    private double spin(final int i, final int h) {
        if (total[h].length == 0) {
            return fixes.contains(Fix.TSG_CHARGE_CPU_ONLY) ? c[h] : 0;
        }
        int count = 0;
        if (fixes.contains(Fix.TSG_RIGHT_TURNS)) {
            for (int k = 0; k < n; k++) {
                if (total[k].length > 0 && !isLocalHigher(k, i)) {
                    count++;
                }
            }
        } else {
            for (final int k : wrongLower[i]) {
                count += total[k].length > 0 ? 1 : 0;
            }
            for (int k = 0; k < n; k++) {
                if (total[k].length > 0 && cpu[k] != cpu[i] && priority[k] > priority[i]) {
                    count++;
                }
            }
        }
        return fixes.contains(Fix.TSG_COUNT_WORK_ONCE) ? c[h] + gm[h] + turns(h, count + 1)
            : c[h] + g[h] + gm[h] + turns(h, count);
    }

    private static double max(final double[] values) {
        double max = 0;
        for (final double value : values) {
            max = Math.max(max, value);
        }
        return max;
    }

    private double fmlp(final int i, final double w, final boolean busy) {
        final int eta = total[i].length;
        double sum = 0;
        int remote = 0;
        for (int x = 0; x < n; x++) {
            if (x != i && cpu[x] != cpu[i] && total[x].length > 0) {
                final double requests = Math.min(eta, total[x].length * ceil((w + period[x]) / period[x]));
                sum += requests * max(total[x]);
                remote += (int) requests;
            }
        }
        final int sleeps = !busy && fixes.contains(Fix.FMLP_SLEEP_IN_DEVICE) ? eta : Math.min(eta, remote);
        for (int x = 0; x < n; x++) {
            if (x == i || cpu[x] != cpu[i] || total[x].length == 0) {
                continue;
            }
            final double requests = total[x].length * ceil((w + period[x]) / period[x]);
            if (!isLocalHigher(x, i)) {
                sum += Math.min(1 + sleeps, requests) * max(total[x]);
            } else if (!busy && fixes.contains(Fix.FMLP_LOCAL_HIGHER)) {
                sum += Math.min(eta, requests) * max(device[x]);
            }
        }
        return sum;
    }

    private record Section(int task, double length) {
    }

    private double mpcp(final int i, final double w, final double[] r, final boolean busy) {
        final int eta = total[i].length;
        final double[] extra = new double[n];
        for (int x = 0; x < n && !fixes.contains(Fix.MPCP_HOLDING_TIME); x++) {
            for (int h = 0; h < n; h++) {
                extra[x] += h != x && priority[h] > priority[x] ? max(total[h]) : 0;
            }
        }
        double sum = 0;
        if (eta > 0) {
            final double wait = requestWait(i, r, extra);
            for (int h = 0; h < n; h++) {
                if (priority[h] > priority[i] && total[h].length > 0) {
                    final double jitter = gpuJitter(h, r);
                    final double cap = fixes.contains(Fix.MPCP_CAP_IS_A_COUNT) ? eta * ceil((wait
                        + jitter) / period[h])
                        : eta * Math.ceil(wait);
                    sum += Math.min(cap, ceil((w + jitter) / period[h])) * holding(h, extra);
                }
            }
            final List<Section> lower = new ArrayList<>();
            for (int l = 0; l < n; l++) {
                for (int j = 0; j < total[l].length && priority[l] < priority[i]; j++) {
                    lower.add(new Section(l, total[l][j] + extra[l]));
                }
            }
            sum += pick(lower, eta, w);
        }
        for (int l = 0; l < n; l++) {
            final boolean own = l == i && !fixes.contains(Fix.MPCP_OWN_WINDOWS);
            if (own || l != i && cpu[l] == cpu[i] && !isLocalHigher(l, i)) {
                final List<Section> boosted = new ArrayList<>();
                for (int j = 0; j < total[l].length; j++) {
                    boosted.add(new Section(l, busy && fixes.contains(Fix.MPCP_SPINNING_HOLDER) ? total[l][j]
                        : host[l][j]));
                }
                sum += pick(boosted, eta + 1, w);
            }
        }
        return sum;
    }

    private double gpuJitter(final int h, final double[] r) {
        return fixes.contains(Fix.MPCP_GPU_JITTER) ? r[h] - g[h] : r[h] - c[h] - gm[h];
    }

    private double holding(final int h, final double[] extra) {
        double sum = 0;
        for (final double length : total[h]) {
            sum += length + extra[h];
        }
        // the imported sets put the rounding difference into the largest segment
        return fixes.contains(Fix.MPCP_HOLDING_TIME) ? g[h] : sum;
    }

    private double requestWait(final int i, final double[] r, final double[] extra) {
        double longest = 0;
        for (int l = 0; l < n; l++) {
            if (priority[l] < priority[i] || l == i && !fixes.contains(Fix.MPCP_CAP_IS_A_COUNT)) {
                for (final double length : total[l]) {
                    longest = Math.max(longest, length + extra[l]);
                }
            }
        }
        double wait = longest;
        for (int round = 0; round < 5000; round++) {
            double next = longest;
            for (int h = 0; h < n; h++) {
                if (priority[h] > priority[i] && total[h].length > 0) {
                    next += (ceil((wait + gpuJitter(h, r)) / period[h]) + (fixes.contains(Fix.MPCP_CAP_IS_A_COUNT)
                        ? 0 : 1))
                        * holding(h, extra);
                }
            }
            if (next - wait < 1e-9) {
                return wait;
            }
            if (next > period[i] && fixes.contains(Fix.MPCP_CAP_IS_A_COUNT)) {
                return 1e9;
            }
            wait = next;
            if (wait > 1e7) {
                return wait;
            }
        }
        return wait;
    }

    private double pick(final List<Section> sections, final int slots, final double w) {
        sections.sort(Comparator.comparingDouble(s -> -s.length()));
        double left = slots;
        double sum = 0;
        for (final Section s : sections) {
            final int l = s.task();
            final double jitter = fixes.contains(Fix.MPCP_GPU_JITTER) ? Math.max(0, period[l] - s.length())
                : period[l] - c[l] - gm[l];
            final double taken = Math.max(0, Math.min(left, ceil((w + jitter) / period[l])));
            left -= taken;
            sum += taken * s.length();
        }
        return sum;
    }
}
