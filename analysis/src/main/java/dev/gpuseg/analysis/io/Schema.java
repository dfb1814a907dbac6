/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * The keys of one mapping of a file: what each value is, with its range and unit. A file is read against it, and what
 * does not fit is refused as {@link Node} does: file, line, column, thing, value and remedy in one line. Immutable and
 * thread-safe.
 */
public final class Schema {
    /** What a value is. */
    private enum Type { INTEGER, DURATION, FLAG, WORD, TASK, CHOICE, LIST, MAPPING, VERSION, ANY }

    private final String example;
    private final List<Key> keys;
    private final Set<String> names = new LinkedHashSet<>();

    /**
     * A mapping.
     *
     * @param example like {@code {path: /robot.slice/**, weight: 400}}; shown where something is no mapping
     * @param keys    all that it may have
     */
    public Schema(final String example, final Key... keys) {
        this(example, List.of(keys));
    }

    private Schema(final String example, final List<Key> keys) {
        this.example = example;
        this.keys = List.copyOf(keys);
        for (final Key key : keys) {
            if (!names.add(key.name)) {
                throw new IllegalArgumentException("key " + key.name + " is declared twice");
            }
        }
    }

    /** One key. Values are optional unless {@link #needed} says otherwise. */
    public static final class Key {
        private final String name;
        private final Type type;
        private final long min;
        private final long max;
        private final List<String> words;
        private final String item;
        private final Schema inner;
        private final boolean required;

        private Key(final String name, final Type type, final long min, final long max, final List<String> words,
            final String item, final Schema inner, final boolean required) {
            this.name = name;
            this.type = type;
            this.min = min;
            this.max = max;
            this.words = words;
            this.item = item;
            this.inner = inner;
            this.required = required;
        }

        /** The same key, but it must be given. */
        public Key needed() {
            return new Key(name, type, min, max, words, item, inner, true);
        }

        /**
         * The same list, with its own example.
         *
         * @param wanted what to write instead of something that is no list, such as {@code a list of windows}
         * @return another key
         */
        public Key writtenAs(final String wanted) {
            return new Key(name, type, min, max, List.of(wanted), item, inner, required);
        }
    }

    private static Key key(final String name, final Type type, final long min, final long max) {
        return new Key(name, type, min, max, List.of(), "", null, false);
    }

    /**
     * A whole number.
     *
     * @param name of the key
     * @param min  smallest
     * @param max  largest
     * @return the key
     */
    public static Key integer(final String name, final long min, final long max) {
        return key(name, Type.INTEGER, min, max);
    }

    /**
     * A duration with a unit.
     *
     * @param name  of the key
     * @param minNs shortest
     * @param maxNs longest
     * @return the key
     */
    public static Key duration(final String name, final long minNs, final long maxNs) {
        return key(name, Type.DURATION, minNs, maxNs);
    }

    /**
     * True or false.
     *
     * @param name of the key
     * @return the key
     */
    public static Key flag(final String name) {
        return key(name, Type.FLAG, 0, 1);
    }

    /**
     * Some text of 1..200 printable characters.
     *
     * @param name of the key
     * @return the key
     */
    public static Key word(final String name) {
        return key(name, Type.WORD, 0, 0);
    }

    /**
     * The name of a task.
     *
     * @param name of the key
     * @return the key
     */
    public static Key task(final String name) {
        return key(name, Type.TASK, 0, 0);
    }

    /**
     * One of some words.
     *
     * @param name  of the key
     * @param words in the order in which a refusal lists them
     * @return the key
     */
    public static Key choice(final String name, final String... words) {
        return new Key(name, Type.CHOICE, 0, 0, List.of(words), "", null, false);
    }

    /**
     * A list of mappings.
     *
     * @param name of the key
     * @param min  fewest entries
     * @param max  most entries
     * @param item what refusals call an entry, followed by its number from 1
     * @param of   the keys of an entry
     * @return the key
     */
    public static Key list(final String name, final long min, final long max, final String item, final Schema of) {
        return new Key(name, Type.LIST, min, max, List.of("a list like [" + of.example + "]"), item, of, false);
    }

    /**
     * A mapping inside this one.
     *
     * @param name of the key
     * @param of   its keys
     * @return the key
     */
    public static Key mapping(final String name, final Schema of) {
        return new Key(name, Type.MAPPING, 0, 0, List.of(), "", Objects.requireNonNull(of), false);
    }

    /**
     * The key {@code version}, which says how a file is to be read.
     *
     * @param version the only one that is read
     * @return the key
     */
    public static Key version(final long version) {
        return key("version", Type.VERSION, version, version);
    }

    /**
     * A value that another schema, or the caller, judges.
     *
     * @param name of the key
     * @return the key
     */
    public static Key any(final String name) {
        return key(name, Type.ANY, 0, 0);
    }

    /**
     * This schema with more keys.
     *
     * @param more to be added; one that is declared already stays as it is
     * @return another schema
     */
    public Schema with(final List<Key> more) {
        final List<Key> all = new ArrayList<>(keys);
        for (final Key key : more) {
            if (all.stream().noneMatch(known -> known.name.equals(key.name))) {
                all.add(key);
            }
        }
        return new Schema(example, all);
    }

    /** The names of the keys; in the order of their declaration. */
    public Set<String> names() {
        return Set.copyOf(names);
    }

    /**
     * Reads a mapping.
     *
     * @param node what stands in the file
     * @return its values, checked
     * @throws InvalidFileException if it is no mapping, lacks a key, has one that is not declared, or one whose value
     *     is of another kind or out of range
     */
    public Values read(final Node node) throws InvalidFileException {
        node.requireMapping(names, example);
        final Map<String, Object> values = new LinkedHashMap<>();
        for (final Key key : keys) {
            final Node value = key.required ? node.required(key.name) : node.get(key.name);
            if (value != null) {
                values.put(key.name, value(key, value));
            }
        }
        return new Values(node, values);
    }

    /**
     * Reads one value.
     *
     * @param key  what it has to be
     * @param node what stands in the file
     * @return as in {@link Values#asMap}
     * @throws InvalidFileException if it is of another kind or out of range
     */
    public static Object value(final Key key, final Node node) throws InvalidFileException {
        return switch (key.type) {
            case INTEGER -> node.wholeNumber(key.min, key.max);
            case DURATION -> node.durationNs(key.min, key.max);
            case FLAG -> node.flag();
            case WORD -> node.word();
            case TASK -> node.taskName();
            case CHOICE -> node.oneOf(key.words);
            case LIST -> entries(key, node);
            case MAPPING -> key.inner.read(node);
            case VERSION -> {
                if (node.kind() != Node.Kind.INTEGER || !node.text().equals(Long.toString(key.min))) {
                    throw node.refuse("is " + node.show() + "; this program reads version: " + key.min);
                }
                yield key.min;
            }
            case ANY -> node;
        };
    }

    private static List<Values> entries(final Key key, final Node node) throws InvalidFileException {
        final List<Node> items = node.requireList(key.item, key.words.get(0));
        if (items.size() < key.min || items.size() > key.max) {
            throw node.refuse("is a list of " + items.size() + "; it must have " + key.min + ".." + key.max
                + " entries");
        }
        final List<Values> entries = new ArrayList<>();
        for (final Node item : items) {
            entries.add(key.inner.read(item));
        }
        return List.copyOf(entries);
    }

    /**
     * The checked values of a mapping. A getter for a key that is not declared, or is declared as another kind, throws
     * {@link ClassCastException} or {@link NullPointerException}: that is an error of the reader, not of the file.
     */
    public static final class Values {
        private final Node node;
        private final Map<String, Object> values;

        private Values(final Node node, final Map<String, Object> values) {
            this.node = node;
            this.values = values;
        }

        /**
         * Whether a key is given.
         *
         * @param key its name
         * @return true if so
         */
        public boolean has(final String key) {
            return values.containsKey(key);
        }

        /**
         * A whole number.
         *
         * @param key      its name
         * @param fallback if it is not given
         * @return the number
         */
        public long number(final String key, final long fallback) {
            return has(key) ? (Long) values.get(key) : fallback;
        }

        /**
         * A duration.
         *
         * @param key        its name
         * @param fallbackNs if it is not given
         * @return ns
         */
        public long durationNs(final String key, final long fallbackNs) {
            return number(key, fallbackNs);
        }

        /**
         * True or false.
         *
         * @param key      its name
         * @param fallback if it is not given
         * @return the value
         */
        public boolean flag(final String key, final boolean fallback) {
            return has(key) ? (Boolean) values.get(key) : fallback;
        }

        /**
         * Some text, or one of some words.
         *
         * @param key its name
         * @return the text; null if it is not given
         */
        public String word(final String key) {
            return (String) values.get(key);
        }

        /**
         * A list.
         *
         * @param key its name
         * @return its entries in order; empty if it is not given
         */
        @SuppressWarnings("unchecked")   // entries put it there
        public List<Values> list(final String key) {
            return has(key) ? (List<Values>) values.get(key) : List.of();
        }

        /**
         * A mapping inside this one.
         *
         * @param key its name
         * @return its values; null if it is not given
         */
        public Values mapping(final String key) {
            return (Values) values.get(key);
        }

        /**
         * All checked values by their keys: {@link Long} for numbers and durations, {@link Boolean}, {@link String},
         * {@link List} of {@link Values}, {@link Values}, {@link Node}.
         *
         * @return an unmodifiable map
         */
        public Map<String, Object> asMap() {
            return Map.copyOf(values);
        }

        /** The mapping itself, for refusals; never null. */
        public Node node() {
            return node;
        }

        /**
         * A value as it stands in the file, for refusals.
         *
         * @param key its name
         * @return null if it is not given
         */
        public Node node(final String key) {
            return node.get(key);
        }
    }
}
