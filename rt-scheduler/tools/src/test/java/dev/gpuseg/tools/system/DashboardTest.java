/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * The dashboard against the rules of Grafana's dashboard model (its documentation, "JSON model", and the published
 * types of schema version 36 and later). What its queries return is tested by {@link MetricsTest}.
 */
class DashboardTest {
    private static final Path FILE = Path.of(System.getProperty("gpuseg.root"))
        .resolve("rt-scheduler/daemon/monitoring/gpuseg-dashboard.json");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int COLUMNS = 24;
    /** Panels that Grafana brings along. */
    private static final Set<String> TYPES = Set.of("row", "stat", "gauge", "timeseries", "heatmap", "table");
    /** Identifiers of Grafana's value formats. */
    private static final Set<String> UNITS = Set.of("short", "s", "percentunit", "bytes", "decbytes", "ops", "none",
        "cps", "eps", "reqps");
    private static final Set<String> BUILT_IN = Set.of("__range", "__rate_interval", "__interval");
    private static final Pattern VARIABLE = Pattern.compile("\\$\\{?(\\w+)}?");

    /** What breaks a rule, one line each. */
    static List<String> problems(final JsonNode dashboard) {
        final List<String> problems = new ArrayList<>();
        require(problems, dashboard.path("id").isNull(), "id must be null, or an import overwrites another");
        require(problems, dashboard.path("uid").asText().matches("[A-Za-z0-9_-]{1,40}"), "uid");
        require(problems, !dashboard.path("title").asText().isBlank(), "title");
        require(problems, dashboard.path("schemaVersion").asInt() >= 36, "schemaVersion");
        require(problems, dashboard.path("time").path("from").asText().startsWith("now-")
            && dashboard.path("time").path("to").asText().equals("now"), "time");
        require(problems, dashboard.path("__inputs").isArray(), "__inputs");
        final Set<String> required = new HashSet<>();
        for (final JsonNode requirement : dashboard.path("__requires")) {
            required.add(requirement.path("type").asText() + " " + requirement.path("id").asText());
            require(problems, requirement.has("name") && requirement.has("version"), "__requires " + requirement);
        }
        require(problems, required.contains("grafana grafana") && required.contains("datasource prometheus"),
            "__requires");
        final Set<String> variables = new HashSet<>(BUILT_IN);
        for (final JsonNode variable : dashboard.path("templating").path("list")) {
            final String name = variable.path("name").asText();
            require(problems, variables.add(name), "variable " + name + " twice");
            if ("datasource".equals(variable.path("type").asText())) {
                require(problems, "prometheus".equals(variable.path("query").asText()), "query of variable " + name);
            } else {
                datasource(problems, variable, "variable " + name);
                require(problems, variable.path("query").has("query"), "query of variable " + name);
            }
        }
        final Set<Integer> ids = new HashSet<>();
        final boolean[][] taken = new boolean[COLUMNS][1000];
        for (final JsonNode panel : dashboard.path("panels")) {
            panel(problems, panel, ids, taken, variables);
            if (!"row".equals(panel.path("type").asText())) {
                require(problems, required.contains("panel " + panel.path("type").asText()),
                    "__requires lacks panel " + panel.path("type").asText());
            }
        }
        require(problems, ids.size() > 20, "panels");
        return problems;
    }

    private static void require(final List<String> problems, final boolean holds, final String text) {
        if (!holds) {
            problems.add(text);
        }
    }

    private static void datasource(final List<String> problems, final JsonNode of, final String what) {
        require(problems, "prometheus".equals(of.path("datasource").path("type").asText())
            && "${datasource}".equals(of.path("datasource").path("uid").asText()), what + ": datasource by variable");
    }

    private static void panel(final List<String> problems, final JsonNode panel, final Set<Integer> ids,
        final boolean[][] taken, final Set<String> variables) {
        final String what = "panel " + panel.path("id") + " \"" + panel.path("title").asText() + "\"";
        require(problems, panel.path("id").asInt() > 0 && ids.add(panel.path("id").asInt()), what + ": id");
        require(problems, TYPES.contains(panel.path("type").asText()), what + ": type " + panel.path("type"));
        require(problems, !panel.path("title").asText().isBlank(), what + ": title");
        final JsonNode at = panel.path("gridPos");
        final int x = at.path("x").asInt(-1);
        final int y = at.path("y").asInt(-1);
        final int w = at.path("w").asInt(0);
        final int h = at.path("h").asInt(0);
        final boolean placed = x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= COLUMNS && y + h <= taken[0].length;
        require(problems, placed, what + ": gridPos " + at);
        boolean free = true;
        for (int column = x; placed && column < x + w; column++) {
            for (int row = y; row < y + h; row++) {
                free &= !taken[column][row];
                taken[column][row] = true;
            }
        }
        require(problems, free, what + ": overlaps another");
        if ("row".equals(panel.path("type").asText())) {
            require(problems, w == COLUMNS && h == 1 && panel.path("panels").isArray(), what + ": a row is 24 x 1");
            return;
        }
        datasource(problems, panel, what);
        final String unit = panel.path("fieldConfig").path("defaults").path("unit").asText();
        require(problems, UNITS.contains(unit), what + ": unit " + unit);
        final Set<String> letters = new TreeSet<>();
        for (final JsonNode target : panel.path("targets")) {
            datasource(problems, target, what + " target");
            require(problems, target.path("refId").asText().matches("[A-Z]")
                && letters.add(target.path("refId").asText()), what + ": refId " + target.path("refId"));
            require(problems, !target.path("expr").asText().isBlank(), what + ": expr");
            final Matcher variable = VARIABLE.matcher(target.path("expr").asText());
            while (variable.find()) {
                require(problems, variables.contains(variable.group(1)), what + ": variable $" + variable.group(1));
            }
        }
        require(problems, !letters.isEmpty(), what + ": no target");
        for (final JsonNode override : panel.path("fieldConfig").path("overrides")) {
            final JsonNode matcher = override.path("matcher");
            require(problems, !"byFrameRefID".equals(matcher.path("id").asText())
                || letters.contains(matcher.path("options").asText()), what + ": override of no target");
        }
    }

    @Test
    void shouldKeepTheRulesOfGrafanasDashboardModel() throws IOException {
        assertEquals(List.of(), problems(JSON.readTree(FILE.toFile())));
    }

    /** The check itself can fail: each rule is broken once. */
    @Test
    void shouldTellWhatIsWrongWithADashboard() throws IOException {
        broken("id must be null", d -> d.put("id", 3));
        broken("schemaVersion", d -> d.put("schemaVersion", 12));
        broken(": id", d -> panel(d, 3).put("id", 2));
        broken("overlaps", d -> panel(d, 3).withObject("/gridPos").put("x", 1));
        broken("gridPos", d -> panel(d, 3).withObject("/gridPos").put("w", 25));
        broken("type", d -> panel(d, 3).put("type", "graphite"));
        broken("unit", d -> panel(d, 3).withObject("/fieldConfig/defaults").put("unit", "seconds"));
        broken("datasource by variable", d -> panel(d, 3).withObject("/datasource").put("uid", "abc"));
        broken("no target", d -> panel(d, 3).putArray("targets"));
        broken("variable $job", d -> ((ObjectNode) panel(d, 3).path("targets").get(0)).put("expr", "up{job=\"$job\"}"));
        broken("__requires lacks", d -> d.withArray("__requires").remove(3));
    }

    private interface Change {
        void of(ObjectNode dashboard);
    }

    private static ObjectNode panel(final ObjectNode dashboard, final int index) {
        return (ObjectNode) dashboard.path("panels").get(index);
    }

    private static void broken(final String said, final Change change) throws IOException {
        final ObjectNode dashboard = (ObjectNode) JSON.readTree(FILE.toFile());
        change.of(dashboard);
        final List<String> problems = problems(dashboard);
        assertTrue(problems.stream().anyMatch(p -> p.contains(said)), said + ": " + problems);
    }
}
