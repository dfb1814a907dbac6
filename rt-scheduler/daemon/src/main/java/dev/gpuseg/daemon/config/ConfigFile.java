/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.config;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.analysis.io.NodeReader;
import dev.gpuseg.analysis.io.Spelling;
import java.io.IOException;
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
    private static final NodeReader READER = new NodeReader("settings file", 1 << 20, "remove the rest");

    private final Path file;
    private final ConfigKeys keys;
    private final Map<String, ConfigEntry> entries = new LinkedHashMap<>();
    private final List<ConfigProblem> problems = new ArrayList<>();

    private ConfigFile(final Path file, final ConfigKeys keys) {
        this.file = file;
        this.keys = keys;
    }

    /** Reads a file: settings and mistakes. A file that cannot be read is one mistake. */
    public static ConfigFile read(final Path file, final ConfigKeys keys) {
        final ConfigFile result = new ConfigFile(file, keys);
        try {
            result.checkFile();
            result.parse(READER.load(file));
        } catch (final InvalidFileException e) {
            result.problem(e.line(), e.text());
        } catch (final IOException e) {
            result.problem(0, "cannot be read (" + e.getClass().getSimpleName() + "); name another file with --config");
        }
        return result;
    }

    /** The settings without a mistake of their own, in the file's order: at most one for each key. */
    public List<ConfigEntry> entries() {
        return List.copyOf(entries.values());
    }

    /** What is wrong: empty if nothing is. */
    public List<ConfigProblem> problems() {
        return List.copyOf(problems);
    }

    /** The file, as it was named. */
    public Path file() {
        return file;
    }

    private void problem(final int line, final String text) {
        problems.add(new ConfigProblem(file, line, text));
    }

    private void checkFile() throws IOException {
        if (Files.isRegularFile(file)
            && Files.getPosixFilePermissions(file).contains(PosixFilePermission.OTHERS_WRITE)) {
            problem(0, "can be written by any user, and the daemon obeys it; chmod o-w " + file);
        }
    }

    private void parse(final String text) throws InvalidFileException {
        final Node root = READER.readIfAny(text, file.toString());
        if (root == null || root.kind() == Node.Kind.NULL) {
            return;   // empty, or nothing but comments: all defaults
        }
        if (root.kind() != Node.Kind.MAPPING) {
            problem(root.line(), "holds " + (root.kind() == Node.Kind.LIST ? "a list" : "a single value")
                + "; write one \"key: value\" a line");
            return;
        }
        section(root, "");
    }

    private void section(final Node section, final String prefix) {
        for (final String name : section.keys()) {
            final Node value = section.get(name);
            final String key = prefix + name;
            if (value.kind() == Node.Kind.MAPPING && !(keys.all().contains(key) && keys.takesMapping(key))) {
                section(value, key + "-");
            } else {
                final List<String> values = values(value, key);
                if (values != null) {
                    add(key, values, value.keyLine());
                }
            }
        }
    }

    /** The text of a value; null where it is none, which has been noted. */
    private List<String> values(final Node value, final String key) {
        final List<String> values = new ArrayList<>();
        switch (value.kind()) {
            case LIST -> {
                value.items().forEach(item -> values.add(scalar(item, key)));
                if (keys.all().contains(key) && !keys.takesList(key)) {
                    problem(value.keyLine(), key + ": a list; give it one value");
                    return null;
                }
            }
            case MAPPING -> value.keys().forEach(name -> {
                final String text = scalar(value.get(name), key + ": " + name);
                values.add(text == null ? null : name + "=" + text);
            });
            default -> values.add(scalar(value, key));
        }
        return values.contains(null) ? null : values;
    }

    private String scalar(final Node value, final String key) {
        switch (value.kind()) {
            case MAPPING, LIST ->
                problem(value.line(), key + ": " + value.show() + " within its value; write plain values");
            case NULL -> problem(value.line(), key + ": has no value; give it one, or remove the line for the default");
            default -> {
                if (!value.text().isEmpty()) {
                    return value.text();
                }
                problem(value.line(), key + ": has no value; give it one, or remove the line for the default");
            }
        }
        return null;
    }

    private void add(final String key, final List<String> values, final int line) {
        if (!keys.all().contains(key)) {
            problem(line, key + ": '" + String.join(", ", values) + "': unknown key; "
                + Spelling.advice(key, keys.all()));
            return;
        }
        final ConfigEntry before = entries.putIfAbsent(key, new ConfigEntry(key, values, line));
        if (before != null) {
            problem(line, key + ": '" + String.join(", ", values) + "': set in line " + before.line()
                + " already; remove one");
        }
    }
}
