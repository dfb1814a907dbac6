/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.tools.demo.Workload;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A profile with {@code space}: a new one, or one that calibrate has written, of which all else is kept. */
public final class SpaceProfile {
    private static final String WRITTEN = "# Written by gpuseg calibrate.";
    private static final String COMMENT = "# Space: ";
    private static final String SPACE = "space:";
    private static final String MEASURED = "measured:";
    private static final String SIMULATED = "# SIMULATED";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<String> kept;
    private final ObjectNode measured;

    /**
     * Reads what is there.
     *
     * @param file the profile, which need not exist
     * @throws IllegalStateException if it exists and calibrate has not written it
     * @throws IOException if it cannot be read
     */
    public SpaceProfile(final Path file) throws IOException {
        final List<String> lines = Files.exists(file) ? Files.readAllLines(file) : List.of();
        if (Files.exists(file) && (lines.isEmpty() || !lines.get(0).startsWith(WRITTEN))) {
            throw new IllegalStateException("calibrate: " + file + " exists, and calibrate has not written it; name "
                + "another file with --out");
        }
        kept = new ArrayList<>(lines.stream().filter(line -> !line.startsWith(COMMENT) && !line.startsWith(SPACE)
            && !line.startsWith(MEASURED)).toList());
        measured = measured(file, lines);
    }

    private static ObjectNode measured(final Path file, final List<String> lines) {
        try {
            for (final String line : lines) {
                if (line.startsWith(MEASURED)) {
                    return (ObjectNode) JSON.readTree(line.substring(MEASURED.length()));
                }
            }
            return JsonNodeFactory.instance.objectNode();
        } catch (final JsonProcessingException | ClassCastException e) {
            throw new IllegalStateException("calibrate: " + file + ": what follows measured is not what calibrate "
                + "writes; name another file with --out", e);
        }
    }

    /**
     * The text of the profile.
     *
     * @param limits what its key space says
     * @param margin percent, contained in them
     * @param result what was measured, and on which machine
     */
    public String text(final SpaceLimits limits, final int margin, final ObjectNode result) {
        final boolean simulated = result.path("simulated").asBoolean() || measured.path("simulated").asBoolean();
        final List<String> lines = new ArrayList<>(kept);
        if (lines.isEmpty()) {
            lines.add(WRITTEN + " No epsilon was measured: a task set gives it (platform: {profile: NAME, epsilon: "
                + "1ms}).");
            lines.add("cpus: " + Runtime.getRuntime().availableProcessors());
            measured.setAll(result.deepCopy());
            measured.remove("space");
        }
        if (simulated && kept.stream().noneMatch(line -> line.startsWith(SIMULATED))) {
            lines.add(1, SIMULATED + ": these are times of a stand-in.");
        }
        lines.add(COMMENT + "the longest observed, plus " + margin + " %: no proof that none is longer. slowdown: "
            + "kernels in the reserve; shorter ones, and long tasks beside loops, were not measured.");
        lines.add(COMMENT + "in_flight: kernels that take 1 ms of the whole GPU, or copies of 64 MiB, one at a time; "
            + "longer ones take longer.");
        lines.add(SPACE + " {reserve: " + limits.reservePercent() + "%, slowdown: " + limits.slowdownPercent()
            + "%, in_flight: " + Workload.us(limits.inFlightNs()) + "}");
        measured.put("simulated", simulated).put("margin_percent", margin).set("space", result);
        lines.add(MEASURED + " " + measured);
        return String.join("\n", lines) + "\n";
    }
}
