/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;

/**
 * A table of comma-separated values as RFC 4180 describes it, and as {@link #field} writes it: a first line with the
 * names of the columns, then one row a line. A field in double quotes may hold commas, line ends and doubled quotes;
 * around one without quotes, blanks do not count. Lines end with LF or CRLF; a byte order mark and empty lines are
 * skipped. Whatever else is there is refused with its line. Immutable and thread-safe.
 */
public final class CsvTable {
    private static final char BYTE_ORDER_MARK = '\uFEFF';
    private static final int MAX_SHOWN = 80;

    private final List<Row> rows;

    private CsvTable(final List<Row> rows) {
        this.rows = Collections.unmodifiableList(rows);
    }

    /**
     * One row.
     *
     * @param file  what refusals call the file
     * @param line  where it begins, from 1
     * @param cells one for each column, in the order in which the columns were asked for
     */
    public record Row(String file, int line, List<String> cells) {
        /**
         * A refusal of this row.
         *
         * @param message thing, value and remedy
         * @return to be thrown
         */
        public InvalidFileException refusal(final String message) {
            return new InvalidFileException(file, line, message);
        }
    }

    /** The rows, without the header; in the order of the file. */
    public List<Row> rows() {
        return rows;
    }

    /**
     * Reads a table.
     *
     * @param path    of at most {@link LimitedFile#MAX_BYTES} in UTF-8
     * @param columns the names that its first line must have, in any order
     * @return the rows
     * @throws InvalidFileException if it is no such table: file, line, remedy
     * @throws IOException          if it cannot be read
     */
    public static CsvTable read(final Path path, final List<String> columns) throws IOException {
        final byte[] bytes = LimitedFile.bytes(path, LimitedFile.MAX_BYTES);
        try {
            return parse(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString(),
                path.toString(), columns);
        } catch (final CharacterCodingException e) {
            throw new InvalidFileException(path.toString(), 0, "is not UTF-8 text; save it as UTF-8");
        }
    }

    /**
     * Reads a table from a text.
     *
     * @param content the table
     * @param file    what refusals call it
     * @param columns the names that its first line must have, in any order
     * @return the rows
     * @throws InvalidFileException if it is no such table
     */
    public static CsvTable parse(final String content, final String file, final List<String> columns)
        throws InvalidFileException {
        final List<Row> all = new Scanner(content, file).rows();
        final String wanted = String.join(",", columns);
        if (all.isEmpty()) {
            throw new InvalidFileException(file, 1, "the file is empty; write a line " + wanted + ", then the rows");
        }
        final Row header = all.get(0);
        if (header.cells.size() != columns.size() || !new HashSet<>(header.cells).equals(new HashSet<>(columns))) {
            throw header.refusal("the first line is \"" + shortened(String.join(",", header.cells))
                + "\", not the names of the columns; write a first line " + wanted);
        }
        final List<Row> rows = new ArrayList<>(all.size() - 1);
        for (final Row row : all.subList(1, all.size())) {
            if (row.cells.size() != columns.size()) {
                throw row.refusal("has " + row.cells.size() + (row.cells.size() == 1 ? " column" : " columns")
                    + ", the header " + columns.size() + "; write " + String.join(",", header.cells)
                    + ", a name with a comma in double quotes");
            }
            rows.add(new Row(file, row.line, columns.stream().map(c -> row.cells.get(header.cells.indexOf(c)))
                .toList()));
        }
        return new CsvTable(rows);
    }

    /**
     * A text as one field.
     *
     * @param text anything
     * @return the same, in double quotes where a reader would take it for something else
     */
    public static String field(final String text) {
        return text.matches("[A-Za-z0-9_.#-]([A-Za-z0-9 _.#-]*[A-Za-z0-9_.#-])?") ? text
            : '"' + text.replace("\"", "\"\"") + '"';
    }

    private static String shortened(final String text) {
        return text.length() <= MAX_SHOWN ? text : text.substring(0, MAX_SHOWN - 3) + "...";
    }

    /** Splits a text into rows and fields. */
    private static final class Scanner {
        private final String text;
        private final String file;
        private int at;
        private int line = 1;

        Scanner(final String text, final String file) {
            this.text = text;
            this.file = file;
            at = text.isEmpty() || text.charAt(0) != BYTE_ORDER_MARK ? 0 : 1;
        }

        List<Row> rows() throws InvalidFileException {
            final List<Row> rows = new ArrayList<>();
            while (at < text.length()) {
                final int begins = line;
                final List<String> cells = new ArrayList<>();
                boolean quotes = false;
                do {
                    blanks();
                    final boolean quoted = at < text.length() && text.charAt(at) == '"';
                    quotes |= quoted;
                    cells.add(quoted ? quoted() : plain());
                } while (comma());
                if (quotes || cells.size() > 1 || !cells.get(0).isEmpty()) {
                    rows.add(new Row(file, begins, cells));
                }
            }
            return rows;
        }

        private void blanks() {
            while (at < text.length() && (text.charAt(at) == ' ' || text.charAt(at) == '\t')) {
                at++;
            }
        }

        private String plain() throws InvalidFileException {
            final int from = at;
            while (at < text.length() && text.charAt(at) != ',' && !atLineEnd()) {
                if (text.charAt(at) == '"') {
                    throw new InvalidFileException(file, line, "a double quote stands within a field; put the field "
                        + "in double quotes and write the quote twice");
                }
                at++;
            }
            return text.substring(from, at).strip();
        }

        private String quoted() throws InvalidFileException {
            final int begins = line;
            final StringBuilder field = new StringBuilder();
            at++;
            while (at < text.length()) {
                final char c = text.charAt(at++);
                if (c == '"' && (at == text.length() || text.charAt(at) != '"')) {
                    blanks();
                    if (at < text.length() && text.charAt(at) != ',' && !atLineEnd()) {
                        throw new InvalidFileException(file, line, "'" + text.charAt(at)
                            + "' follows a closing double quote; write a comma there, or a quote within a field twice");
                    }
                    return field.toString();
                }
                if (c == '"') {
                    at++;
                } else if (c == '\n') {
                    line++;
                }
                field.append(c);
            }
            throw new InvalidFileException(file, begins, "a double quote is not closed; close it");
        }

        private boolean comma() throws InvalidFileException {
            if (at == text.length()) {
                return false;
            }
            final char c = text.charAt(at++);
            if (c == ',') {
                return true;
            }
            if (c == '\r') {
                at++;
            }
            line++;
            return false;
        }

        private boolean atLineEnd() throws InvalidFileException {
            final char c = text.charAt(at);
            if (c == '\r' && (at + 1 == text.length() || text.charAt(at + 1) != '\n')) {
                throw new InvalidFileException(file, line, "a carriage return stands alone; end lines with LF or CRLF");
            }
            return c == '\n' || c == '\r';
        }
    }
}
