/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;

/** How the answer to a command is written. A client that is no Java program need not read JSON. */
enum AnswerForm {
    /** One object. A refusal has its reason in {@code error}. */
    JSON {
        @Override
        String write(final JsonNode answer) {
            return answer.toString();
        }
    },
    /** What the command line shows: a table, the lines that changed, the reason of a refusal. */
    TEXT {
        @Override
        String write(final JsonNode answer) {
            final StringBuilder out = new StringBuilder();
            if (isRefusal(answer)) {
                return reason(answer);
            }
            if (answer.has("daemon")) {
                return StatusText.of(answer);
            }
            answer.path("changed").forEach(line -> out.append(line.asText()).append('\n'));
            return out.toString();
        }
    },
    /** The open tasks of {@code status}, a line each: id, pid and name with a tab between them. */
    TASKS {
        @Override
        String write(final JsonNode answer) {
            final StringBuilder out = new StringBuilder();
            if (isRefusal(answer)) {
                return reason(answer);
            }
            answer.path("tasks").forEach(task -> out.append(task.path("id").asText()).append('\t')
                .append(task.path("pid").asText()).append('\t').append(task.path("name").asText()).append('\n'));
            return out.toString();
        }
    };

    private static final String ERROR = "error";

    /**
     * The form that a request names.
     *
     * @param name of the request's key {@code form}; empty for JSON
     * @return null if there is no such form
     */
    static AnswerForm named(final String name) {
        for (final AnswerForm form : values()) {
            if (form.name().toLowerCase(Locale.ROOT).equals(name)) {
                return form;
            }
        }
        return name.isEmpty() ? JSON : null;
    }

    abstract String write(JsonNode answer);

    private static boolean isRefusal(final JsonNode answer) {
        return answer.has(ERROR);
    }

    private static String reason(final JsonNode refusal) {
        return refusal.path(ERROR).asText() + '\n';
    }
}
