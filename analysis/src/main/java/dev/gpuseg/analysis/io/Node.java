/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A parsed value that remembers its line, so that a refusal can name it. */
final class Node {
    private static final int MAX_DEPTH = 16;

    enum Kind { OBJECT, ARRAY, TEXT, INTEGER, DECIMAL, BOOLEAN, NULL }

    final Kind kind;
    final int line;
    /** Text of a scalar; null for objects and arrays. */
    final String text;
    final Map<String, Node> fields;
    final List<Node> items;

    private Node(final Kind kind, final int line, final String text, final Map<String, Node> fields,
        final List<Node> items) {
        this.kind = kind;
        this.line = line;
        this.text = text;
        this.fields = fields;
        this.items = items;
    }

    static Node read(final JsonParser parser, final String file, final int firstLine) throws IOException {
        if (parser.nextToken() == null) {
            throw new InvalidFileException(file, firstLine, "the file is empty; write a task set");
        }
        return readValue(parser, file, firstLine, 0);
    }

    private static Node readValue(final JsonParser parser, final String file, final int firstLine, final int depth)
        throws IOException {
        final JsonToken token = parser.currentToken();
        final int line = firstLine - 1 + Math.max(1, parser.currentTokenLocation().getLineNr());
        if (depth > MAX_DEPTH) {
            throw new InvalidFileException(file, line, "nested deeper than " + MAX_DEPTH
                + " levels; this is no task set");
        }
        return switch (token) {
            case START_OBJECT -> {
                final Map<String, Node> fields = new LinkedHashMap<>();
                while (parser.nextToken() != JsonToken.END_OBJECT) {
                    final String name = parser.currentName();
                    final int nameLine = firstLine - 1 + Math.max(1, parser.currentTokenLocation().getLineNr());
                    parser.nextToken();
                    if (fields.put(name, readValue(parser, file, firstLine, depth + 1)) != null) {
                        throw new InvalidFileException(file, nameLine, "key '" + name + "' occurs twice; remove one");
                    }
                }
                yield new Node(Kind.OBJECT, line, null, fields, null);
            }
            case START_ARRAY -> {
                final List<Node> items = new ArrayList<>();
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    items.add(readValue(parser, file, firstLine, depth + 1));
                }
                yield new Node(Kind.ARRAY, line, null, null, items);
            }
            case VALUE_STRING -> new Node(Kind.TEXT, line, parser.getText(), null, null);
            case VALUE_NUMBER_INT -> new Node(Kind.INTEGER, line, parser.getText(), null, null);
            case VALUE_NUMBER_FLOAT -> new Node(Kind.DECIMAL, line, parser.getText(), null, null);
            case VALUE_TRUE, VALUE_FALSE -> new Node(Kind.BOOLEAN, line, parser.getText(), null, null);
            case VALUE_NULL -> new Node(Kind.NULL, line, "null", null, null);
            default -> throw new InvalidFileException(file, line, "unexpected " + token + "; this is no task set");
        };
    }

    /** Two mappings as one, in which the fields of this one come first; no mapping: this one alone. */
    Node over(final Node base) {
        if (kind != Kind.OBJECT || base == null || base.kind != Kind.OBJECT) {
            return this;
        }
        final Map<String, Node> both = new LinkedHashMap<>(base.fields);
        both.putAll(fields);
        return new Node(kind, line, null, both, null);
    }

    /** The same value without lines, for the schema. */
    JsonNode toJson() {
        return switch (kind) {
            case OBJECT -> {
                final ObjectNode node = JsonNodeFactory.instance.objectNode();
                fields.forEach((name, value) -> node.set(name, value.toJson()));
                yield node;
            }
            case ARRAY -> {
                final ArrayNode node = JsonNodeFactory.instance.arrayNode();
                items.forEach(item -> node.add(item.toJson()));
                yield node;
            }
            case TEXT -> JsonNodeFactory.instance.textNode(text);
            case INTEGER, DECIMAL -> number();
            case BOOLEAN -> JsonNodeFactory.instance.booleanNode(text.equalsIgnoreCase("true"));
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

    /** How a refusal shows the value: short, one line. */
    String show() {
        return switch (kind) {
            case OBJECT -> "a mapping";
            case ARRAY -> "a list";
            default -> "'" + (text.length() <= 40 ? text : text.substring(0, 37) + "...") + "'";
        };
    }
}
