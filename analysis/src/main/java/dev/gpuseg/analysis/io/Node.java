/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.core.TaskName;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A value of a YAML or JSON file that remembers where it stands. Its methods read what is expected there; whatever else
 * is there is refused in one line that names file, line, column, thing, value and remedy, like
 * {@code set.yaml:6:31: task "camera": period is the bare number 80; a duration needs a unit: …}.
 *
 * <p>The name of a thing is made of the keys that lead to it; {@link #callIt} gives it a better one. Read by
 * {@link NodeReader}. Not thread-safe.
 */
public final class Node {
    /** What a value is. */
    public enum Kind {
        /** A mapping of keys to values. */
        MAPPING,
        /** A list. */
        LIST,
        /** A text. */
        TEXT,
        /** A number without a fraction. */
        INTEGER,
        /** Any other number. */
        DECIMAL,
        /** {@code true} or {@code false}. */
        BOOLEAN,
        /** No value. */
        NULL
    }

    private static final int EXAMPLE_PERCENT = 100;
    private static final int MAX_WORD = 200;
    private static final int MAX_SHOWN = 40;
    private static final int MAX_DIGITS = 20;

    private final Kind kind;
    private final String file;
    private final int line;
    private final int column;
    private final String text;
    private final Map<String, Node> fields;
    private final List<Node> items;
    /** What refusals call it; null for an item of a list. */
    private String name;
    /** The mapping or list that contains it; null if its name is complete. */
    private Node parent;
    /** Of a list: what refusals call an item, followed by its number. */
    private String itemName = "";
    /** Whether it is the outermost value, which the names of inner values do not repeat. */
    private boolean outermost;
    private int keyLine;
    private int keyColumn;

    private Node(final Kind kind, final String file, final int line, final int column, final String text,
        final Map<String, Node> fields, final List<Node> items) {
        this.kind = kind;
        this.file = file;
        this.line = line;
        this.column = column;
        this.text = text;
        this.fields = fields;
        this.items = items;
    }

    static Node scalar(final Kind kind, final String file, final int line, final int column, final String text) {
        return new Node(kind, file, line, column, text, Map.of(), List.of());
    }

    static Node mapping(final String file, final int line, final int column) {
        return new Node(Kind.MAPPING, file, line, column, null, new LinkedHashMap<>(), List.of());
    }

    static Node list(final String file, final int line, final int column) {
        return new Node(Kind.LIST, file, line, column, null, Map.of(), new ArrayList<>());
    }

    /**
     * A value that came from no file.
     *
     * @param value  a JSON tree, as a request has it
     * @param source what refusals call the place it came from
     * @param what   what it is, such as {@code the policy}; the names of inner values do not repeat it
     * @return the same as a node without lines
     */
    public static Node of(final JsonNode value, final String source, final String what) {
        return of(value, source).asOutermost(what);
    }

    private static Node of(final JsonNode value, final String source) {
        if (value.isObject()) {
            final Node mapping = mapping(source, 0, 0);
            value.properties().forEach(field -> mapping.put(field.getKey(), 0, 0, of(field.getValue(), source)));
            return mapping;
        }
        if (value.isArray()) {
            final Node list = list(source, 0, 0);
            value.forEach(item -> list.add(of(item, source)));
            return list;
        }
        final Kind kind = value.isTextual() ? Kind.TEXT : value.isIntegralNumber() ? Kind.INTEGER
            : value.isNumber() ? Kind.DECIMAL : value.isBoolean() ? Kind.BOOLEAN : Kind.NULL;
        return scalar(kind, source, 0, 0, value.asText());
    }

    /** Adds a field to a mapping that is being read; false if the key is there already. */
    boolean put(final String key, final int lineOfKey, final int columnOfKey, final Node value) {
        if (fields.putIfAbsent(key, value) != null) {
            return false;
        }
        value.parent = this;
        value.name = key;
        value.keyLine = lineOfKey;
        value.keyColumn = columnOfKey;
        return true;
    }

    /** Adds a value to a list that is being read. */
    void add(final Node value) {
        value.parent = this;
        items.add(value);
    }

    /** Names the outermost value of a file; the names of inner values do not repeat it. */
    Node asOutermost(final String newName) {
        name = newName;
        outermost = true;
        return this;
    }

    /** What it is. */
    public Kind kind() {
        return kind;
    }

    /** Where it stands; line from 1, or 0 if it came from no file. */
    public int line() {
        return line;
    }

    /** Where it stands; column from 1, or 0 if it came from no file. */
    public int column() {
        return column;
    }

    /** Where its key stands: line from 1 of the key in the mapping that contains it; 0 if it has none. */
    public int keyLine() {
        return keyLine;
    }

    /** The values of a list, whatever they are; in order; empty if this is no list. */
    public List<Node> items() {
        return Collections.unmodifiableList(items);
    }

    /** The text of a scalar, as written; null for a mapping and a list. */
    public String text() {
        return text;
    }

    /**
     * Names it in refusals, instead of the keys that lead to it.
     *
     * @param newName like {@code task "camera"}
     * @return this
     */
    public Node callIt(final String newName) {
        name = newName;
        parent = null;
        outermost = false;
        return this;
    }

    /**
     * What refusals call it.
     *
     * @return the keys that lead to it, joined by colons, from the last one on that was named by {@link #callIt}
     */
    public String what() {
        if (parent == null) {
            return name;
        }
        if (parent.kind == Kind.LIST) {
            final String number = " " + (parent.items.indexOf(this) + 1);
            return parent.itemName.isEmpty() ? parent.what() + ": item" + number
                : parent.within() + parent.itemName + number;
        }
        return within() + name;
    }

    /** The name of the mapping or list that contains it, as the beginning of its own name. */
    private String within() {
        return parent == null || parent.outermost ? "" : parent.what() + ": ";
    }

    // ---- refusing ----

    /**
     * A refusal of this value.
     *
     * @param remark what follows its name: value and remedy, like {@code is 0; it must be positive}
     * @return to be thrown
     */
    public InvalidFileException refuse(final String remark) {
        return refusal(what() + " " + remark);
    }

    /**
     * A refusal at this value.
     *
     * @param message thing, value and remedy
     * @return to be thrown
     */
    public InvalidFileException refusal(final String message) {
        return new InvalidFileException(file, line, column, message);
    }

    /** The value as a refusal shows it: short, on one line; a scalar in quotes, or what it is instead. */
    public String show() {
        return switch (kind) {
            case MAPPING -> "a mapping";
            case LIST -> "a list";
            default -> "'" + (text.length() <= MAX_SHOWN ? text : text.substring(0, MAX_SHOWN - 3) + "...") + "'";
        };
    }

    // ---- mappings and lists ----

    /**
     * A value of a mapping.
     *
     * @param key its key
     * @return null if there is none, or this is no mapping
     */
    public Node get(final String key) {
        return fields.get(key);
    }

    /**
     * A value of a mapping that must be there.
     *
     * @param key its key
     * @return the value
     * @throws InvalidFileException if there is none
     */
    public Node required(final String key) throws InvalidFileException {
        final Node value = fields.get(key);
        if (value == null) {
            throw refusal(what() + ": " + key + " is missing; add it");
        }
        return value;
    }

    /** The keys of a mapping; in the order of the file; empty if this is no mapping. */
    public Set<String> keys() {
        return Collections.unmodifiableSet(fields.keySet());
    }

    /**
     * Checks that this is a mapping with known keys only.
     *
     * @param known the keys that may be there
     * @return this
     * @throws InvalidFileException if it is something else, or has another key: with the key that was probably meant
     */
    public Node requireMapping(final Set<String> known) throws InvalidFileException {
        return requireMapping(known, "");
    }

    /**
     * Checks that this is a mapping with known keys only, and shows one if it is not.
     *
     * @param known   the keys that may be there
     * @param example like {@code {name: camera, cpu: 1}}, or empty
     * @return this
     * @throws InvalidFileException if it is something else, or has another key: with the key that was probably meant
     */
    public Node requireMapping(final Set<String> known, final String example) throws InvalidFileException {
        if (kind != Kind.MAPPING) {
            throw refuse("is " + show() + "; write a mapping" + (example.isEmpty() ? "" : " like " + example));
        }
        for (final String key : fields.keySet()) {
            if (!known.contains(key)) {
                final Node value = fields.get(key);
                throw new InvalidFileException(value.file, value.keyLine, value.keyColumn, what()
                    + ": unknown key '" + key + "'; " + Spelling.advice(key, known));
            }
        }
        return this;
    }

    /**
     * The values of a list.
     *
     * @param item    what refusals call one, followed by its number from 1
     * @param example what to write instead of something that is no list, like {@code a list of tasks}
     * @return in order
     * @throws InvalidFileException if this is no list
     */
    public List<Node> requireList(final String item, final String example) throws InvalidFileException {
        if (kind != Kind.LIST) {
            throw refuse("is " + show() + "; write " + example);
        }
        itemName = item;
        return Collections.unmodifiableList(items);
    }

    /**
     * Two mappings as one, in which the fields of this one come first.
     *
     * @param base the other mapping, or null
     * @return the union; this alone if one of them is no mapping
     */
    public Node over(final Node base) {
        if (kind != Kind.MAPPING || base == null || base.kind != Kind.MAPPING) {
            return this;
        }
        final Map<String, Node> both = new LinkedHashMap<>(base.fields);
        both.putAll(fields);
        final Node union = new Node(kind, file, line, column, null, both, List.of());
        union.parent = parent;
        union.name = name;
        return union;
    }

    // ---- scalars ----

    /**
     * A duration.
     *
     * @return nanoseconds, 0 or more
     * @throws InvalidFileException if it is none, or has no unit
     */
    public long durationNs() throws InvalidFileException {
        return switch (kind) {
            case INTEGER, DECIMAL, TEXT -> {
                try {
                    yield Durations.parse(text);
                } catch (final IllegalArgumentException e) {
                    throw refuse(e.getMessage());
                }
            }
            default -> throw refuse("is " + show() + ", not a duration; write a number and a unit, like 1.5ms");
        };
    }

    /**
     * A duration within limits.
     *
     * @param minNs shortest
     * @param maxNs longest
     * @return nanoseconds
     * @throws InvalidFileException if it is no duration, or outside of the limits
     */
    public long durationNs(final long minNs, final long maxNs) throws InvalidFileException {
        final long ns = durationNs();
        if (ns < minNs || ns > maxNs) {
            throw refuse("is " + show() + "; it must be " + Durations.format(minNs) + ".." + Durations.format(maxNs));
        }
        return ns;
    }

    /**
     * A whole number within limits.
     *
     * @param min smallest
     * @param max largest
     * @return the number
     * @throws InvalidFileException if it is none, outside of the limits, or not in decimal digits
     */
    public int integer(final int min, final int max) throws InvalidFileException {
        return (int) wholeNumber(min, max);
    }

    /**
     * A whole percentage, such as 12%.
     *
     * @param min smallest
     * @param max largest
     * @return the number before the sign
     * @throws InvalidFileException if it is none, or outside of the limits
     */
    public int percent(final int min, final int max) throws InvalidFileException {
        final int value = kind == Kind.TEXT && text.matches("(0|[1-9][0-9]{0,4})%")
            ? Integer.parseInt(text.substring(0, text.length() - 1)) : -1;
        if (value < min || value > max) {
            throw refuse("is " + show() + "; write " + min + "%.." + max + "%, like "
                + Math.max(min, Math.min(EXAMPLE_PERCENT, max / 4)) + "%");
        }
        return value;
    }

    /**
     * A whole number within wide limits.
     *
     * @param min smallest
     * @param max largest
     * @return the number
     * @throws InvalidFileException if it is none, outside of the limits, or not in decimal digits
     */
    public long wholeNumber(final long min, final long max) throws InvalidFileException {
        // YAML knows 0x10 and 1_000 as well, and 010 is 8 in YAML 1.1, 10 in YAML 1.2
        if (kind == Kind.INTEGER && !text.matches("[+-]?(0|[1-9][0-9]*)")) {
            throw refuse("is " + show() + "; write it as a decimal number " + min + ".." + max);
        }
        if (kind == Kind.INTEGER && text.length() <= MAX_DIGITS) {
            final BigInteger value = new BigInteger(text);
            if (value.compareTo(BigInteger.valueOf(min)) >= 0 && value.compareTo(BigInteger.valueOf(max)) <= 0) {
                return value.longValue();
            }
        }
        throw refuse("is " + show() + "; it must be a whole number " + min + ".." + max);
    }

    /**
     * A truth value; also by YAML's other words for it, such as {@code yes}.
     *
     * @return true or false
     * @throws InvalidFileException if it is none
     */
    public boolean flag() throws InvalidFileException {
        if (kind != Kind.BOOLEAN) {
            throw refuse("is " + show() + "; write true or false");
        }
        return truth();
    }

    private boolean truth() {
        return YamlWords.among(text, List.of("on")).equals("on");
    }

    /**
     * A name: 1..200 printable characters. A number counts as one.
     *
     * @return the text
     * @throws InvalidFileException if it is none
     */
    public String word() throws InvalidFileException {
        final String word = spelled();
        if (word.isBlank() || word.length() > MAX_WORD || word.chars().anyMatch(Character::isISOControl)) {
            throw refuse("is " + show() + "; write 1.." + MAX_WORD + " printable characters");
        }
        return word;
    }

    private String spelled() throws InvalidFileException {
        if (kind != Kind.TEXT && kind != Kind.INTEGER && kind != Kind.DECIMAL) {
            throw refuse("is " + (kind == Kind.BOOLEAN ? "the truth value " : "") + show() + "; write a word"
                + (kind == Kind.BOOLEAN ? ", or put this one in quotes" : ""));
        }
        return text;
    }

    /**
     * The name of a task. A number counts as one.
     *
     * @return the text
     * @throws InvalidFileException if no task can have that name
     */
    public String taskName() throws InvalidFileException {
        final String name = spelled();
        final String refusal = TaskName.refusal(name);
        if (refusal != null) {
            throw refuse(refusal);
        }
        return name;
    }

    /**
     * One of some words; {@code off} and {@code on} also by YAML's other words for them.
     *
     * @param known the words, in the order in which a refusal names them
     * @return the word
     * @throws InvalidFileException if it is none of them
     */
    public String oneOf(final Collection<String> known) throws InvalidFileException {
        final String word = kind == Kind.TEXT || kind == Kind.BOOLEAN ? YamlWords.among(text, known) : "";
        if (!known.contains(word)) {
            final List<String> words = List.copyOf(known);
            final int last = words.size() - 1;
            throw refuse("is " + show() + "; write " + (last == 0 ? words.get(0)
                : String.join(", ", words.subList(0, last)) + " or " + words.get(last)));
        }
        return word;
    }

    // ---- as JSON ----

    /** The same value without places, for a schema; a JSON tree. */
    public JsonNode toJson() {
        return switch (kind) {
            case MAPPING -> {
                final ObjectNode node = JsonNodeFactory.instance.objectNode();
                fields.forEach((key, value) -> node.set(key, value.toJson()));
                yield node;
            }
            case LIST -> {
                final ArrayNode node = JsonNodeFactory.instance.arrayNode();
                items.forEach(item -> node.add(item.toJson()));
                yield node;
            }
            case TEXT -> JsonNodeFactory.instance.textNode(text);
            case INTEGER, DECIMAL -> number();
            case BOOLEAN -> JsonNodeFactory.instance.booleanNode(truth());
            default -> JsonNodeFactory.instance.nullNode();
        };
    }

    /** YAML has more ways to write a number (0x10, .nan) than JSON; those stay text. */
    private JsonNode number() {
        if (text.matches("[+-]?[0-9]+")) {
            return JsonNodeFactory.instance.numberNode(new BigInteger(text));
        }
        return text.matches("[+-]?[0-9]+\\.[0-9]+") ? JsonNodeFactory.instance.numberNode(new BigDecimal(text))
            : JsonNodeFactory.instance.textNode(text);
    }
}
