/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import java.nio.file.Path;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Where the constants of a platform come from.
 *
 * @param constants in the order of the file
 * @param profile   file of the measured profile; null if none is named
 * @param measured  what the profile says of its measurement; null without one
 */
public record PlatformOrigin(List<Provenance.Constant> constants, Path profile, JsonNode measured) {
    private static final String TYPED = "typed in the task set";
    private static final String DEFAULT = "default, not measured";
    private static final Set<String> NO_CONSTANTS = Set.of("profile", "description", "measured", "optimistic",
        "simulated", "quiet");

    /** Copies the list. */
    public PlatformOrigin {
        constants = List.copyOf(constants);
    }

    static PlatformOrigin of(final Node given, final Node base, final String name, final Path profile) {
        final Map<String, Provenance.Constant> found = new LinkedHashMap<>();
        if (given.kind() == Node.Kind.MAPPING) {
            add(found, given, TYPED);
        }
        if (base != null) {
            add(found, base, "profile " + name);
        }
        if (!found.containsKey("gpus") && (found.containsKey("epsilon") || found.containsKey("alpha"))) {
            found.putIfAbsent("theta", new Provenance.Constant("theta", Durations.format(Gpu.DEFAULT_THETA_NS),
                DEFAULT));
            found.putIfAbsent("timeslice", new Provenance.Constant("timeslice",
                Durations.format(Gpu.DEFAULT_TIMESLICE_NS), DEFAULT));
        }
        final Node said = base != null ? base.get("measured")
            : given.kind() == Node.Kind.MAPPING ? given.get("measured") : null;
        return new PlatformOrigin(List.copyOf(found.values()), profile, said == null ? null : said.toJson());
    }

    private static void add(final Map<String, Provenance.Constant> found, final Node from, final String origin) {
        for (final String key : from.keys()) {
            if (!NO_CONSTANTS.contains(key)) {
                final JsonNode value = from.get(key).toJson();
                found.putIfAbsent(key, new Provenance.Constant(key, value.isValueNode() ? value.asText()
                    : value.toString(), origin));
            }
        }
    }

    /**
     * How old the measurement of the profile is, and of how many samples.
     *
     * @param now for its age
     * @return one line without a full stop; empty without a profile
     */
    public String measurement(final Instant now) {
        if (profile == null) {
            return "";
        }
        if (measured == null || !measured.isObject()) {
            return "does not say when it was measured, nor from how many samples";
        }
        long least = Long.MAX_VALUE;
        for (final JsonNode figure : measured) {
            least = figure.path("n").isIntegralNumber() ? Math.min(least, figure.path("n").asLong()) : least;
        }
        return age(measured.path("begun").asText(), now) + ", n " + (least == Long.MAX_VALUE ? "not said"
            : ">= " + least + " for each figure")
            + (measured.path("margin_percent").isNumber() ? ", margin " + measured.path("margin_percent").asText() + "%"
                : "")
            + (measured.path("driver").asText().isEmpty() ? "" : ", " + measured.path("driver").asText())
            + (measured.path("simulated").asBoolean() ? ", SIMULATED" : "");
    }

    private static String age(final String begun, final Instant now) {
        try {
            final long days = Duration.between(Instant.parse(begun), now).toDays();
            return "measured " + begun + " (" + days + (days == 1 ? " day" : " days") + " ago)";
        } catch (final DateTimeException e) {
            return "does not say when it was measured";
        }
    }
}
