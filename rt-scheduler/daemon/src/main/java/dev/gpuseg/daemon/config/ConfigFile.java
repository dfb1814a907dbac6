/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.config;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A settings file in YAML. Every key is the name of an option of {@code gpuseg run} without its dashes. A section is
 * joined to its keys by a dash, so {@code queue: {size: 1MiB}} and {@code queue-size: 1MiB} are the same. Reading never
 * stops at the first mistake: all of them are collected. Values stay text here; their option converts them.
 */
public final class ConfigFile {
    private static final int DEPTH_MAX = 4;
    private static final int ENTRIES_MAX = 1000;
    private static final int BYTES_MAX = 1 << 20;
    private static final int SUGGEST_WITHIN = 3;

    private final Path file;
    private final ConfigKeys keys;
    private final Map<String, ConfigEntry> entries = new LinkedHashMap<>();
    private final List<ConfigProblem> problems = new ArrayList<>();

    private ConfigFile(final Path file, final ConfigKeys keys) {
        this.file = file;
        this.keys = keys;
    }

    /**
     * Reads a file.
     *
     * @param file the file
     * @param keys what may stand in it
     * @return settings and mistakes; a file that cannot be read is one mistake
     */
    public static ConfigFile read(final Path file, final ConfigKeys keys) {
        final ConfigFile result = new ConfigFile(file, keys);
        try {
            result.checkFile();
            result.parse(Files.readString(file, StandardCharsets.UTF_8));
        } catch (final JsonProcessingException e) {
            final int line = e.getLocation() == null ? 0 : Math.max(0, e.getLocation().getLineNr());
            result.problem(line, "is not YAML: " + e.getOriginalMessage().lines().findFirst().orElse("")
                + "; write one \"key: value\" a line");
        } catch (final java.nio.charset.CharacterCodingException e) {
            result.problem(0, "is not UTF-8 text; save it as UTF-8");
        } catch (final IOException e) {
            result.problem(0, "cannot be read (" + e.getClass().getSimpleName() + "); name another file with --config");
        }
        return result;
    }

    /**
     * The settings without a mistake of their own, in the file's order.
     *
     * @return at most one for each key
     */
    public List<ConfigEntry> entries() {
        return List.copyOf(entries.values());
    }

    /**
     * What is wrong.
     *
     * @return empty if nothing is
     */
    public List<ConfigProblem> problems() {
        return List.copyOf(problems);
    }

    /**
     * The file.
     *
     * @return as it was named
     */
    public Path file() {
        return file;
    }

    private void problem(final int line, final String text) {
        problems.add(new ConfigProblem(file, line, text));
    }

    private void checkFile() throws IOException {
        if (Files.isRegularFile(file)) {
            if (Files.size(file) > BYTES_MAX) {
                throw new IOException("larger than 1 MiB");
            }
            if (Files.getPosixFilePermissions(file).contains(PosixFilePermission.OTHERS_WRITE)) {
                problem(0, "can be written by any user, and the daemon obeys it; chmod o-w " + file);
            }
        }
    }

    private void parse(final String text) throws IOException {
        try (YAMLParser parser = new YAMLFactory().createParser(text)) {
            final JsonToken first = parser.nextToken();
            if (first == null || first == JsonToken.VALUE_NULL) {
                return;   // empty, or nothing but comments: all defaults
            }
            if (first != JsonToken.START_OBJECT) {
                problem(line(parser), "holds " + kind(first) + "; write one \"key: value\" a line");
                return;
            }
            section(parser, "", 1);
            if (parser.nextToken() != null) {
                problem(line(parser), "a second document begins here; remove the \"---\" before it");
            }
        }
    }

    private static int line(final JsonParser parser) {
        return Math.max(1, parser.currentTokenLocation().getLineNr());
    }

    private static String kind(final JsonToken token) {
        return token == JsonToken.START_ARRAY ? "a list" : "a single value";
    }

    private void section(final YAMLParser parser, final String prefix, final int depth) throws IOException {
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            final String key = prefix + parser.currentName();
            final int line = line(parser);
            final JsonToken token = parser.nextToken();
            if (entries.size() >= ENTRIES_MAX) {
                throw new IOException("more than " + ENTRIES_MAX + " settings");
            }
            if (token == JsonToken.START_OBJECT && !(keys.all().contains(key) && keys.takesMapping(key))) {
                if (depth == DEPTH_MAX) {
                    throw new IOException("nested deeper than " + DEPTH_MAX + " levels");
                }
                section(parser, key + "-", depth + 1);
            } else {
                final List<String> values = values(parser, key, line);
                if (values != null) {
                    add(key, values, line);
                }
            }
        }
    }

    /** The text of a value; null where it is none, which has been noted. */
    private List<String> values(final YAMLParser parser, final String key, final int line) throws IOException {
        final JsonToken token = parser.currentToken();
        if (token == JsonToken.START_ARRAY) {
            return items(parser, key, line);
        }
        if (token == JsonToken.START_OBJECT) {
            final List<String> pairs = new ArrayList<>();
            boolean good = true;
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                final String name = parser.currentName();
                parser.nextToken();
                final String value = scalar(parser, key + ": " + name);
                good &= value != null;
                pairs.add(name + "=" + value);
            }
            return good ? pairs : null;
        }
        final String value = scalar(parser, key);
        return value == null ? null : List.of(value);
    }

    private List<String> items(final YAMLParser parser, final String key, final int line) throws IOException {
        final List<String> values = new ArrayList<>();
        boolean good = true;
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            final String value = scalar(parser, key);
            good &= value != null;
            values.add(value);
        }
        if (keys.all().contains(key) && !keys.takesList(key)) {
            problem(line, key + ": a list; give it one value");
            return null;
        }
        return good ? values : null;
    }

    private String scalar(final YAMLParser parser, final String key) throws IOException {
        final JsonToken token = parser.currentToken();
        if (token == JsonToken.START_OBJECT || token == JsonToken.START_ARRAY) {
            problem(line(parser), key + ": " + (token == JsonToken.START_OBJECT ? "a mapping" : "a list")
                + " within its value; write plain values");
            parser.skipChildren();
            return null;
        }
        if (token == JsonToken.VALUE_NULL || parser.getText().isEmpty()) {
            problem(line(parser), key + ": has no value; give it one, or remove the line for the default");
            return null;
        }
        if (parser.isCurrentAlias()) {
            problem(line(parser), key + ": '*" + parser.getText() + "' is an alias; write the value itself");
            return null;
        }
        return parser.getText();
    }

    private void add(final String key, final List<String> values, final int line) {
        if (!keys.all().contains(key)) {
            problem(line, key + ": '" + String.join(", ", values) + "': unknown key; " + advice(key));
            return;
        }
        final ConfigEntry before = entries.putIfAbsent(key, new ConfigEntry(key, values, line));
        if (before != null) {
            problem(line, key + ": '" + String.join(", ", values) + "': set in line " + before.line()
                + " already; remove one");
        }
    }

    private String advice(final String key) {
        String best = "";
        int distance = SUGGEST_WITHIN;
        for (final String known : keys.all()) {
            final int d = distance(key, known);
            if (d < distance) {
                distance = d;
                best = known;
            }
        }
        return best.isEmpty() ? "known are " + String.join(", ", keys.all()) : "did you mean " + best + "?";
    }

    /** Levenshtein's: how many letters to change, add or remove. */
    private static int distance(final String a, final String b) {
        int[] previous = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            previous[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            final int[] current = new int[b.length() + 1];
            current[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                final int change = previous[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                current[j] = Math.min(change, Math.min(previous[j], current[j - 1]) + 1);
            }
            previous = current;
        }
        return previous[b.length()];
    }
}
