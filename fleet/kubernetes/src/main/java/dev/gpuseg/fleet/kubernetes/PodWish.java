/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import dev.gpuseg.analysis.model.Durations;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * What a pod says of itself, by annotations (or labels, where no annotation says it):
 * <pre>
 * gpuseg/priority: "60"         # the highest priority of its tasks, 0..99
 * gpuseg/weight: "300"          # share among best effort, 1..10000
 * gpuseg/cap: "20ms/100ms"      # at most so much GPU time per period (a label: 20ms_100ms)
 * gpuseg/protect: "true"        # its contexts are never disabled
 * </pre>
 *
 * @param priority highest priority, or {@link #NOT_SAID}
 * @param weight   share, or {@link #NOT_SAID}
 * @param cap      bandwidth, null if not said
 * @param protect  whether it is never to be disabled
 */
record PodWish(int priority, int weight, Cap cap, boolean protect) {
    /** Of a number that the pod does not say. */
    static final int NOT_SAID = -1;
    /** What all names begin with. */
    static final String PREFIX = "gpuseg/";

    private static final int PRIORITY_MAX = 99;
    private static final int WEIGHT_MAX = 10_000;
    private static final Set<String> NAMES = new TreeSet<>(Set.of("priority", "weight", "cap", "protect"));

    /**
     * Reads annotations and labels.
     *
     * @param annotations of the pod, other names are skipped
     * @param labels      of the pod
     * @return the wish
     * @throws IllegalArgumentException in one line that names annotation, value and remedy
     */
    static PodWish of(final Map<String, String> annotations, final Map<String, String> labels) {
        for (final Map<String, String> source : java.util.List.of(annotations, labels)) {
            for (final String name : source.keySet()) {
                if (name.startsWith(PREFIX) && !NAMES.contains(name.substring(PREFIX.length()))) {
                    throw new IllegalArgumentException(name + " is not known; use " + PREFIX
                        + String.join(", " + PREFIX, NAMES));
                }
            }
        }
        final String cap = said("cap", annotations, labels);
        final String protect = said("protect", annotations, labels);
        if (protect != null && !"true".equals(protect) && !"false".equals(protect)) {
            throw refused("protect", protect, "use true or false");
        }
        return new PodWish(number("priority", said("priority", annotations, labels), 0, PRIORITY_MAX),
            number("weight", said("weight", annotations, labels), 1, WEIGHT_MAX), cap == null ? null : cap(cap),
            "true".equals(protect));
    }

    private static String said(final String name, final Map<String, String> annotations,
        final Map<String, String> labels) {
        final String annotation = annotations.get(PREFIX + name);
        return annotation != null ? annotation : labels.get(PREFIX + name);
    }

    private static IllegalArgumentException refused(final String name, final String value, final String remedy) {
        final String shown = value.length() > 40 ? value.substring(0, 40) + "..." : value;
        return new IllegalArgumentException(PREFIX + name + " is \"" + shown.replaceAll("\\p{Cntrl}", "?") + "\"; "
            + remedy);
    }

    private static int number(final String name, final String text, final int min, final int max) {
        if (text == null) {
            return NOT_SAID;
        }
        final int value = text.matches("[0-9]{1,6}") ? Integer.parseInt(text) : Integer.MIN_VALUE;
        if (value < min || value > max) {
            throw refused(name, text, "use " + min + ".." + max);
        }
        return value;
    }

    private static Cap cap(final String text) {
        final String[] parts = text.split("[/_]", -1);
        try {
            if (parts.length != 2) {
                throw new IllegalArgumentException("not two durations");
            }
            return new Cap(Durations.parse(parts[0]), Durations.parse(parts[1]));
        } catch (final IllegalArgumentException e) {
            throw refused("cap", text, "use QUOTA/PERIOD with a period of 1ms..10s, e.g. 20ms/100ms");
        }
    }
}
