/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.NodeReader;
import dev.gpuseg.analysis.io.Schema;
import dev.gpuseg.analysis.io.Schema.Values;
import dev.gpuseg.core.Priority;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * What pods may ask for, by namespace:
 * <pre>
 * version: 1
 * namespaces:
 *   - {name: robots, priority: 80, weight: 1000, protect: true}
 *   - {name: training, priority: 0, weight: 100, cap: {quota: 60ms, period: 100ms}}
 *   - {name: "*", priority: 0}
 * </pre>
 * The priority is the highest that a pod may ask for, the weight the largest. A cap holds for every pod of the
 * namespace, unless it asks for a narrower one. {@code *} is every namespace that no other line names. Immutable.
 */
final class NamespaceLimits {
    /** Priority 0, weight up to 100, no protection: where nothing is said. */
    static final NamespaceLimits NONE = new NamespaceLimits(Map.of());

    private static final String OTHERS = "*";
    private static final int WEIGHT_USUAL = 100;
    private static final long FILE_MAX_BYTES = 1L << 20;
    private static final Schema CAP = new Schema("{quota: 20ms, period: 100ms}",
        Schema.duration("quota", 1, Cap.PERIOD_MAX_NS).needed(),
        Schema.duration("period", Cap.PERIOD_MIN_NS, Cap.PERIOD_MAX_NS).needed());
    private static final Schema LINE = new Schema("{name: robots, priority: 80}", Schema.word("name").needed(),
        Schema.integer("priority", 0, 99), Schema.integer("weight", 1, 10_000), Schema.flag("protect"),
        Schema.mapping("cap", CAP), Schema.any("description"));
    private static final Schema FILE = new Schema("", Schema.version(1),
        Schema.list("namespaces", 0, 10_000, "namespace", LINE).needed(), Schema.any("description"));

    private final Map<String, Limit> limits;

    /**
     * Of one namespace.
     *
     * @param priority highest that may be asked for
     * @param weight   largest that may be asked for
     * @param protect  whether protection may be asked for
     * @param cap      widest, null without one
     */
    private record Limit(int priority, int weight, boolean protect, Cap cap) {
        static final Limit USUAL = new Limit(0, WEIGHT_USUAL, false, null);
    }

    private NamespaceLimits(final Map<String, Limit> limits) {
        this.limits = Map.copyOf(limits);
    }

    /**
     * Reads a file.
     *
     * @param path YAML or JSON
     * @return the limits
     * @throws IllegalArgumentException if it is refused or cannot be read, in one line
     */
    static NamespaceLimits read(final Path path) {
        final Map<String, Limit> limits = new HashMap<>();
        try {
            for (final Values line : FILE.read(new NodeReader("file of namespaces", FILE_MAX_BYTES, "remove the rest")
                .read(path)).list("namespaces")) {
                final Values cap = line.mapping("cap");
                if (limits.put(line.word("name"), new Limit((int) line.number("priority", 0),
                    (int) line.number("weight", WEIGHT_USUAL), line.flag("protect", false), cap == null ? null
                    : new Cap(cap.durationNs("quota", 0), cap.durationNs("period", 0)))) != null) {
                    throw line.node().refusal("namespace \"" + line.word("name") + "\" stands there twice; remove one");
                }
            }
        } catch (final InvalidFileException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        } catch (final IOException e) {
            throw new IllegalArgumentException(path + ": cannot be read: " + e.getMessage(), e);
        }
        return new NamespaceLimits(limits);
    }

    private Limit of(final String namespace) {
        final Limit own = limits.get(namespace);
        return own != null ? own : limits.getOrDefault(OTHERS, Limit.USUAL);
    }

    /** What a pod without wishes gets, and one whose wishes are refused: best effort, with the namespace's cap. */
    PodGrant usual(final String namespace) {
        return new PodGrant(0, Math.min(WEIGHT_USUAL, of(namespace).weight()), of(namespace).cap(), false);
    }

    /**
     * What a pod gets.
     *
     * @param namespace of the pod
     * @param wish      what it asks for
     * @return the grant
     * @throws IllegalArgumentException if it asks for more than its namespace may, in one line
     */
    PodGrant grant(final String namespace, final PodWish wish) {
        final Limit limit = of(namespace);
        final String says = " of namespace " + namespace + " is ";
        if (Priority.isHigherThan(wish.priority(), limit.priority())) {
            throw new IllegalArgumentException(PodWish.PREFIX + "priority is " + wish.priority() + "; the limit" + says
                + limit.priority() + "; lower it, or raise the limit in the ConfigMap gpuseg-namespaces");
        }
        if (wish.weight() > limit.weight()) {
            throw new IllegalArgumentException(PodWish.PREFIX + "weight is " + wish.weight() + "; the limit" + says
                + limit.weight() + "; lower it, or raise the limit in the ConfigMap gpuseg-namespaces");
        }
        if (wish.protect() && !limit.protect()) {
            throw new IllegalArgumentException(PodWish.PREFIX + "protect is true; namespace " + namespace
                + " may not ask for it; remove it, or say protect: true in the ConfigMap gpuseg-namespaces");
        }
        if (limit.cap() != null && wish.cap() != null && wish.cap().isWiderThan(limit.cap())) {
            throw new IllegalArgumentException(PodWish.PREFIX + "cap is " + wish.cap() + "; the limit" + says
                + limit.cap() + "; lower it, or raise the limit in the ConfigMap gpuseg-namespaces");
        }
        final PodGrant usual = usual(namespace);
        return new PodGrant(wish.priority() == PodWish.NOT_SAID ? usual.priority() : wish.priority(),
            wish.weight() == PodWish.NOT_SAID ? usual.weight() : wish.weight(),
            wish.cap() == null ? usual.cap() : wish.cap(), wish.protect());
    }
}
