/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.fasterxml.jackson.dataformat.yaml.YAMLParser;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.yaml.snakeyaml.LoaderOptions;

/**
 * Reads YAML or JSON into a {@link Node}, strictly: one document, no key twice, no aliases, limited size and depth.
 * Every refusal names file, line and column. Immutable and thread-safe; cheap to create.
 */
public final class NodeReader {
    private static final int MAX_DEPTH = 16;

    private static final Pattern TAB = Pattern.compile("^ *\t");
    /** What began where, and what is wrong further down. */
    private static final Pattern BEGAN = Pattern.compile("^(while [^\\n]*)\\n in '[^']*', line (\\d+), column (\\d+)"
        + ":\\n"
        + "(?s:.*?)\\n(\\S[^\\n]*)\\n in '[^']*', line (\\d+), column");
    /** What is wrong where nothing that began is named. */
    private static final Pattern FOUND = Pattern.compile("^while [^\\n]*\\n(\\S[^\\n]*)\\n in '[^']*', line (\\d+), "
        + "column (\\d+)");
    /** What a parser says of its own switches and classes. */
    private static final Pattern INNER = Pattern.compile(": enable `[^`]*` to allow|, from `[^`]*`"
        + "|, got this instead: <.*");
    private static final Pattern COMMENT = Pattern.compile(": maybe a \\(non-standard\\) comment\\?.*");

    private final String what;
    private final long maxBytes;
    private final String several;
    private final String twice;
    private final JsonFactory json;
    private final YAMLFactory yaml;

    /**
     * A reader of one kind of file.
     *
     * @param what     what a file holds, for refusals: like {@code task set}
     * @param maxBytes size of the largest file
     * @param several  what to do with more than one document or too large a file: a sentence without a full stop
     */
    public NodeReader(final String what, final long maxBytes, final String several) {
        this(what, maxBytes, several, "remove one", false);
    }

    /**
     * A reader of one kind of file.
     *
     * @param twice    what to do with a key that stands twice: a sentence without a full stop
     * @param relaxed  whether JSON may have comments in the manner of C, and a comma before a closing bracket
     */
    NodeReader(final String what, final long maxBytes, final String several, final String twice,
        final boolean relaxed) {
        this.what = what;
        this.maxBytes = maxBytes;
        this.several = several;
        this.twice = twice;
        final StreamReadConstraints limits = StreamReadConstraints.builder()
            .maxNestingDepth(64).maxNumberLength(64).maxStringLength(1 << 16).maxNameLength(1 << 10).build();
        json = JsonFactory.builder().streamReadConstraints(limits)
            .configure(JsonReadFeature.ALLOW_JAVA_COMMENTS, relaxed)
            .configure(JsonReadFeature.ALLOW_TRAILING_COMMA, relaxed).build();
        final LoaderOptions loader = new LoaderOptions();
        loader.setCodePointLimit((int) Math.min(maxBytes, Integer.MAX_VALUE));
        loader.setNestingDepthLimit(64);
        loader.setMaxAliasesForCollections(0);
        yaml = YAMLFactory.builder().loaderOptions(loader).streamReadConstraints(limits).build();
    }

    /**
     * The text of a file.
     *
     * @param path a file in UTF-8
     * @return its content
     * @throws InvalidFileException if it has no name, is missing, a directory, too large or no text
     * @throws IOException          if it cannot be read
     */
    public String load(final Path path) throws IOException {
        if (path.toString().isEmpty()) {
            throw new InvalidFileException("''", 0, "is the name of no file; name a file");
        }
        if (Files.isDirectory(path)) {
            throw new InvalidFileException(path.toString(), 0, "is a directory; name a file");
        }
        final long size;
        try {
            size = Files.size(path);
        } catch (final NoSuchFileException e) {
            throw new InvalidFileException(path.toString(), 0, "there is no such file; check the name");
        }
        if (size > maxBytes) {
            throw new InvalidFileException(path.toString(), 0, "the file has " + size + " bytes; at most " + maxBytes
                + " are read as one " + what + "; " + several);
        }
        final byte[] bytes = LimitedFile.bytes(path, (int) Math.min(maxBytes, LimitedFile.MAX_BYTES));
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (final CharacterCodingException e) {
            throw new InvalidFileException(path.toString(), 0, "is not UTF-8 text; save it as UTF-8");
        }
    }

    /**
     * Reads a file.
     *
     * @param path a file in YAML or JSON
     * @return its outermost value
     * @throws InvalidFileException if it is neither
     * @throws IOException          if it cannot be read
     */
    public Node read(final Path path) throws IOException {
        return read(load(path), path.toString());
    }

    /**
     * Reads a text; its beginning decides whether it is JSON (an opening brace and a quoted key) or YAML.
     *
     * @param content YAML or JSON
     * @param file    what refusals call it
     * @return its outermost value
     * @throws InvalidFileException if it is neither
     */
    public Node read(final String content, final String file) throws InvalidFileException {
        return parse(looksLikeJson(content) ? json : yaml, content, file, 1, false);
    }

    /**
     * Reads a text that may say nothing.
     *
     * @param content YAML or JSON
     * @param file    what refusals call it
     * @return its outermost value; null if there is none, only comments perhaps
     * @throws InvalidFileException if it is neither
     */
    public Node readIfAny(final String content, final String file) throws InvalidFileException {
        return parse(looksLikeJson(content) ? json : yaml, content, file, 1, true);
    }

    /**
     * Reads one line of a file that holds one JSON document a line.
     *
     * @param line       the document
     * @param file       what refusals call the file
     * @param lineNumber its line, from 1
     * @return its outermost value
     * @throws InvalidFileException if it is no JSON
     */
    public Node readLine(final String line, final String file, final int lineNumber) throws InvalidFileException {
        if (line.length() > maxBytes) {
            throw new InvalidFileException(file, lineNumber, "the line has " + line.length() + " characters; at most "
                + maxBytes + " are read");
        }
        return parse(json, line, file, lineNumber, false);
    }

    /**
     * Reads a text that must be JSON.
     *
     * @param content JSON
     * @param file    what refusals call it
     * @return its outermost value
     * @throws InvalidFileException if it is none
     */
    Node readJson(final String content, final String file) throws InvalidFileException {
        return parse(json, content.startsWith("\uFEFF") ? content.substring(1) : content, file, 1, false);
    }

    private Node parse(final JsonFactory factory, final String content, final String file, final int firstLine,
        final boolean mayBeEmpty) throws InvalidFileException {
        final String language = factory instanceof YAMLFactory ? "YAML" : "JSON";
        try (JsonParser parser = factory.createParser(content)) {
            if (parser.nextToken() == null) {
                if (mayBeEmpty) {
                    return null;
                }
                throw new InvalidFileException(file, firstLine, "the file is empty; write a " + what);
            }
            final Node root = value(parser, file, firstLine, 0).asOutermost("the " + what);
            if (parser.nextToken() != null) {
                throw new InvalidFileException(file, line(parser.currentTokenLocation(), firstLine),
                    "a second document follows; write one " + what + " in a file; " + several);
            }
            return root;
        } catch (final InvalidFileException e) {
            throw e;
        } catch (final JsonProcessingException e) {
            final JsonLocation at = e.getLocation();
            if (factory instanceof YAMLFactory && at != null) {
                refuseTab(content, file, at.getLineNr(), firstLine);
            }
            final Matcher began = BEGAN.matcher(String.valueOf(e.getOriginalMessage()));
            if (began.find()) {   // the bracket or quote that is never closed, not the line after it
                throw new InvalidFileException(file, firstLine - 1 + Integer.parseInt(began.group(2)),
                    Integer.parseInt(began.group(3)), "not readable as " + language + ": " + began.group(1) + ": "
                    + began.group(4) + " (seen at line " + (firstLine - 1 + Integer.parseInt(began.group(5))) + ")");
            }
            final Matcher found = FOUND.matcher(String.valueOf(e.getOriginalMessage()));
            if (found.find()) {
                final String character = found.group(1).replaceFirst("\\.( \\(.*)?$", "");
                throw new InvalidFileException(file, firstLine - 1 + Integer.parseInt(found.group(2)),
                    Integer.parseInt(found.group(3)), "not readable as " + language + ": "
                    + (character.contains("(TAB)") ? "a tab stands there; write spaces"
                    : character + "; put the text in quotes"));
            }
            throw new InvalidFileException(file, at == null ? firstLine : line(at, firstLine), at == null ? 0
                : at.getColumnNr(), "not readable as " + language + ": " + firstLineOf(e.getOriginalMessage()));
        } catch (final IOException | RuntimeException e) {
            throw new InvalidFileException(file, firstLine, "not readable as " + language + ": "
                + firstLineOf(String.valueOf(e.getMessage())));
        }
    }

    /** YAML's own complaint of a tab that indents does not name it, and comes a line early. */
    private static void refuseTab(final String content, final String file, final int seen, final int firstLine)
        throws InvalidFileException {
        final List<String> lines = content.lines().toList();
        for (int line = Math.max(1, seen); line <= Math.min(lines.size(), seen + 1); line++) {
            final Matcher tab = TAB.matcher(lines.get(line - 1));
            if (tab.find()) {
                throw new InvalidFileException(file, firstLine - 1 + line, tab.end(), "a tab; YAML is indented with "
                    + "spaces only");
            }
        }
    }

    private Node value(final JsonParser parser, final String file, final int firstLine, final int depth)
        throws IOException {
        final JsonToken token = parser.currentToken();
        final JsonLocation at = parser.currentTokenLocation();
        final int line = line(at, firstLine);
        final int column = at.getColumnNr();
        if (depth > MAX_DEPTH) {
            throw new InvalidFileException(file, line, column, "nested deeper than " + MAX_DEPTH
                + " levels; this is no " + what);
        }
        if (parser instanceof YAMLParser tagged && tagged.getTypeId() != null) {
            throw new InvalidFileException(file, line, column, "'!"
                + tagged.getTypeId().replaceFirst("^tag:[^:]*:", "!") + "' is a tag; write the value without it");
        }
        return switch (token) {
            case START_OBJECT -> {
                final Node mapping = Node.mapping(file, line, column);
                while (parser.nextToken() != JsonToken.END_OBJECT) {
                    field(parser, mapping, file, firstLine, depth);
                }
                yield mapping;
            }
            case START_ARRAY -> {
                final Node list = Node.list(file, line, column);
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    list.add(value(parser, file, firstLine, depth + 1));
                }
                yield list;
            }
            case VALUE_STRING -> {
                if (parser instanceof YAMLParser yamlParser && yamlParser.isCurrentAlias()) {
                    throw new InvalidFileException(file, line, column, "'*" + parser.getText()
                        + "' is an alias; write the value itself");
                }
                yield Node.scalar(Node.Kind.TEXT, file, line, column, parser.getText());
            }
            case VALUE_NUMBER_INT -> Node.scalar(Node.Kind.INTEGER, file, line, column, parser.getText());
            case VALUE_NUMBER_FLOAT -> Node.scalar(Node.Kind.DECIMAL, file, line, column, parser.getText());
            case VALUE_TRUE, VALUE_FALSE -> Node.scalar(Node.Kind.BOOLEAN, file, line, column, parser.getText());
            case VALUE_NULL -> Node.scalar(Node.Kind.NULL, file, line, column, "null");
            default -> throw new InvalidFileException(file, line, column, "unexpected " + token + "; this is no "
                + what);
        };
    }

    private void field(final JsonParser parser, final Node mapping, final String file, final int firstLine,
        final int depth) throws IOException {
        final String key = parser.currentName();
        final JsonLocation at = parser.currentTokenLocation();
        parser.nextToken();
        if (!mapping.put(key, line(at, firstLine), at.getColumnNr(), value(parser, file, firstLine, depth + 1))) {
            throw new InvalidFileException(file, line(at, firstLine), at.getColumnNr(), "key '" + key
                + "' occurs twice; " + twice);
        }
    }

    private static int line(final JsonLocation at, final int firstLine) {
        return firstLine - 1 + Math.max(1, at.getLineNr());
    }

    private static boolean looksLikeJson(final String content) {
        for (int i = 0; i < content.length(); i++) {
            final char c = content.charAt(i);
            if (!Character.isWhitespace(c) && c != '\uFEFF') {
                return c == '{' && content.indexOf('"') >= 0 && jsonKeyFollows(content, i + 1);
            }
        }
        return false;
    }

    /** A YAML flow mapping begins with a brace too, but its keys are rarely quoted. */
    private static boolean jsonKeyFollows(final String content, final int from) {
        for (int i = from; i < content.length(); i++) {
            final char c = content.charAt(i);
            if (!Character.isWhitespace(c)) {
                return c == '"' || c == '}';
            }
        }
        return false;
    }

    private static String firstLineOf(final String message) {
        final int end = message.indexOf('\n');
        return COMMENT.matcher(INNER.matcher(end < 0 ? message : message.substring(0, end)).replaceAll(""))
            .replaceAll("; JSON has no comments: remove it, or write YAML");
    }
}
