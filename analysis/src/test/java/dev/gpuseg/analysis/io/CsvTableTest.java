/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

class CsvTableTest {
    private static final List<String> COLUMNS = List.of("name", "ns");

    private static List<List<String>> rows(final String content) throws InvalidFileException {
        return CsvTable.parse(content, "t.csv", COLUMNS).rows().stream().map(CsvTable.Row::cells).toList();
    }

    private static void refuses(final String content, final String... said) {
        final String message = assertThrows(InvalidFileException.class, () -> rows(content)).getMessage();
        for (final String part : said) {
            assertTrue(message.contains(part), message);
        }
    }

    @Property(tries = 300)
    void shouldReadBackWhatItWrites(@ForAll final String first, @ForAll final String second)
        throws InvalidFileException {
        assertEquals(List.of(List.of(first, second)),
            rows("name,ns\r\n" + CsvTable.field(first) + ',' + CsvTable.field(second) + "\r\n"));
    }

    @Test
    void shouldReadQuotesCommasLineEndsAndAByteOrderMark() throws InvalidFileException {
        final String expected = "[[f<int, 4>, 5], [say \"a\", 6], [two\nlines, 7], [, 8]]";
        final String table = "name, ns\n\"f<int, 4>\",5\n\n\"say \"\"a\"\"\" , 6\n\"two\nlines\",7\n,8";
        assertEquals(expected, rows(table).toString());
        assertEquals(expected, rows("\uFEFF" + table + "\n").toString());
        assertEquals("[[a, 1], [b, 2]]", rows("name,ns\r\na,1\r\n\r\nb,2\r\n").toString());
        assertEquals("[[a, 1]]", rows("ns,name\n1,a").toString(), "columns by their names");
    }

    @Test
    void shouldNameTheLineOfARowWithAnotherNumberOfColumns() {
        refuses("name,ns\n\"a\nb\",1\nc,2,3\n", "t.csv:4: has 3 columns, the header 2");
        refuses("name,ns\nc\n", "t.csv:2: has 1 column, ");
    }

    @Test
    void shouldRefuseATableWithoutItsHeader() {
        refuses("a,1\nb,2\n", "t.csv:1: ", "\"a,1\"", "write a first line name,ns");
        refuses("name,name\nb,2\n", "t.csv:1: ");
        refuses("name,ns,more\nb,2,3\n", "t.csv:1: ");
        refuses("", "t.csv:1: the file is empty");
        refuses("\n\n", "t.csv:1: the file is empty");
    }

    @Test
    void shouldRefuseAQuoteOutOfPlace() {
        refuses("name,ns\nsay \"a\",1\n", "t.csv:2: ", "double quote stands within a field");
        refuses("name,ns\n\"a\"b,1\n", "t.csv:2: 'b' follows a closing double quote");
        refuses("name,ns\nok,1\n\"a,1\nb,2\n", "t.csv:3: a double quote is not closed");
        refuses("name,ns\ra,1\n", "carriage return");
    }
}
