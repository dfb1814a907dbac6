/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.top;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * One task as {@code top} shows it.
 *
 * @param id          task id in the daemon
 * @param name        its name
 * @param pid         its process
 * @param gpu         its GPU
 * @param priority    0..99
 * @param state       lower case
 * @param rate        segments per second
 * @param p50Ns       response of jobs; -1 if there is none yet
 * @param p99Ns       the same
 * @param maxNs       the same
 * @param deadlineNs  relative deadline, 0 = none
 * @param misses      jobs past their deadline; best effort has none
 * @param overruns    segments past their budget
 * @param share       of the GPU's time in the last seconds, 0..1
 * @param preemptions how often
 * @param preemptedBy name of the task that did it last, or empty
 * @param preemptAgoNs how long ago
 */
public record TopRow(int id, String name, int pid, int gpu, int priority, String state, double rate, long p50Ns,
    long p99Ns, long maxNs, long deadlineNs, long misses, long overruns, double share, long preemptions,
    String preemptedBy, long preemptAgoNs) {

    /** What rows are ordered by. The first letter of the label is its key in the help. */
    public enum Sort {
        PRIORITY(Comparator.comparingInt((TopRow r) -> -r.priority)),
        NAME(Comparator.comparing(TopRow::name)),
        STATE(Comparator.comparing(TopRow::state)),
        RATE(Comparator.comparingDouble((TopRow r) -> -r.rate)),
        P50(Comparator.comparingLong((TopRow r) -> -r.p50Ns)),
        P99(Comparator.comparingLong((TopRow r) -> -r.p99Ns)),
        MAX(Comparator.comparingLong((TopRow r) -> -r.maxNs)),
        MISSES(Comparator.comparingLong((TopRow r) -> -r.misses)),
        SHARE(Comparator.comparingDouble((TopRow r) -> -r.share)),
        PREEMPTIONS(Comparator.comparingLong((TopRow r) -> -r.preemptions));

        private final Comparator<TopRow> order;

        Sort(final Comparator<TopRow> order) {
            this.order = order.thenComparing(TopRow::name).thenComparingInt(TopRow::pid);
        }

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }

        Sort next(final int step) {
            return values()[Math.floorMod(ordinal() + step, values().length)];
        }
    }

    private boolean contains(final String text) {
        return text.isEmpty() || name.toLowerCase(Locale.ROOT).contains(text.toLowerCase(Locale.ROOT))
            || state.contains(text.toLowerCase(Locale.ROOT)) || Integer.toString(pid).equals(text);
    }

    /** The open tasks of an answer to {@code live} that a filter lets through, in order. */
    public static List<TopRow> of(final JsonNode view, final String filter, final Sort sort, final boolean reversed) {
        final long nowNs = view.path("now_ns").asLong();
        final List<TopRow> rows = new ArrayList<>();
        for (final JsonNode task : view.path("tasks")) {
            final JsonNode response = task.path("job_response_ns");
            final TopRow row = new TopRow(task.path("id").asInt(), task.path("name").asText(),
                task.path("pid").asInt(), task.path("gpu").asInt(), task.path("priority").asInt(),
                task.path("state").asText(), task.path("segment_rate").asDouble(), response.path("p50").asLong(-1),
                response.path("p99").asLong(-1), response.path("max").asLong(-1), task.path("deadline_ns").asLong(),
                task.path("job_misses").asLong(), task.path("overruns").asLong(), task.path("gpu_share").asDouble(),
                task.path("preemptions").asLong(),
                task.path("last_preempt_by").asText(), nowNs - task.path("last_preempt_ns").asLong());
            if (task.path("open").asBoolean() && row.contains(filter)) {
                rows.add(row);
            }
        }
        rows.sort(reversed ? sort.order.reversed() : sort.order);
        return rows;
    }
}
