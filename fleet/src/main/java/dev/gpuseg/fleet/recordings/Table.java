/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import java.util.function.ToLongFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;

/**
 * A table: its name, and its columns with what stands in them. One definition gives the schema of the Parquet files,
 * their rows, and the documentation. Not changed once it is used.
 *
 * @param <R> a row
 */
final class Table<R> {
    private static final long ROW_GROUP_BYTES = 16L << 20;

    private final String name;
    private final List<Column<R>> columns = new ArrayList<>();

    /** A column: its Parquet type, what it means, and how a row's value is written. */
    private record Column<R>(Type type, String meaning, Put<R> put) {
    }

    /** Writes the value of a row; false if there is none. */
    private interface Put<R> {
        boolean put(R row, Runnable start, RecordConsumer to);
    }

    Table(final String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    /** A text; null = none. */
    Table<R> text(final String column, final String meaning, final Function<R, String> of) {
        return add(Types.optional(PrimitiveTypeName.BINARY).as(LogicalTypeAnnotation.stringType()).named(column),
            meaning, (row, start, to) -> {
                final String value = of.apply(row);
                if (value == null) {
                    return false;
                }
                start.run();
                to.addBinary(Binary.fromString(value));
                return true;
            });
    }

    Table<R> int64(final String column, final String meaning, final ToLongFunction<R> of) {
        return add(Types.required(PrimitiveTypeName.INT64).named(column), meaning, (row, start, to) -> {
            start.run();
            to.addLong(of.applyAsLong(row));
            return true;
        });
    }

    /** A number that may be missing. */
    Table<R> int64(final String column, final String meaning, final ToLongFunction<R> of, final long absent) {
        return add(Types.optional(PrimitiveTypeName.INT64).named(column), meaning, (row, start, to) -> {
            final long value = of.applyAsLong(row);
            if (value == absent) {
                return false;
            }
            start.run();
            to.addLong(value);
            return true;
        });
    }

    Table<R> int32(final String column, final String meaning, final ToIntFunction<R> of) {
        return add(Types.required(PrimitiveTypeName.INT32).named(column), meaning, (row, start, to) -> {
            start.run();
            to.addInteger(of.applyAsInt(row));
            return true;
        });
    }

    Table<R> bool(final String column, final String meaning, final Predicate<R> of) {
        return add(Types.required(PrimitiveTypeName.BOOLEAN).named(column), meaning, (row, start, to) -> {
            start.run();
            to.addBoolean(of.test(row));
            return true;
        });
    }

    private Table<R> add(final Type type, final String meaning, final Put<R> put) {
        columns.add(new Column<>(type, meaning, put));
        return this;
    }

    MessageType schema() {
        return new MessageType(name, columns.stream().map(Column::type).toList());
    }

    /** A line for each column, divided by tabs: table, column, type (with ? if it may be null), meaning. */
    List<String> documentation() {
        return columns.stream().map(column -> String.join("\t", name, column.type().getName(),
            column.type().asPrimitiveType().getPrimitiveTypeName().toString().toLowerCase(Locale.ROOT)
                .replace("binary", "string") + (column.type().isRepetition(Type.Repetition.OPTIONAL) ? "?" : ""),
            column.meaning())).toList();
    }

    /** Opens a new file, which must not exist. */
    ParquetWriter<R> create(final Path file) throws IOException {
        return new Writing<>(new NewFile(file), this).withCompressionCodec(CompressionCodecName.ZSTD)
            .withRowGroupSize(ROW_GROUP_BYTES).withDictionaryEncoding(true).build();
    }

    /** What Parquet's builder asks for. */
    private static final class Writing<R> extends ParquetWriter.Builder<R, Writing<R>> {
        private final Table<R> table;

        Writing(final OutputFile file, final Table<R> table) {
            super(file);
            this.table = table;
        }

        @Override
        protected Writing<R> self() {
            return this;
        }

        @Override
        protected WriteSupport<R> getWriteSupport(final Configuration configuration) {
            return new Rows<>(table);
        }
    }

    /** Writes rows. */
    private static final class Rows<R> extends WriteSupport<R> {
        private final Table<R> table;
        private RecordConsumer to;

        Rows(final Table<R> table) {
            this.table = table;
        }

        @Override
        public WriteContext init(final Configuration configuration) {
            return new WriteContext(table.schema(), Map.of());
        }

        @Override
        public void prepareForWrite(final RecordConsumer consumer) {
            to = consumer;
        }

        @Override
        public void write(final R row) {
            to.startMessage();
            for (int i = 0; i < table.columns.size(); i++) {
                final Column<R> column = table.columns.get(i);
                final String columnName = column.type().getName();
                final int index = i;
                if (column.put().put(row, () -> to.startField(columnName, index), to)) {
                    to.endField(columnName, i);
                }
            }
            to.endMessage();
        }
    }

    /** A file of this machine's file system, without the checksum files that Hadoop puts beside it. */
    private record NewFile(Path file) implements OutputFile {
        private static final int BUFFER_BYTES = 1 << 16;

        @Override
        public PositionOutputStream create(final long blockSizeHint) throws IOException {
            final OutputStream out = new BufferedOutputStream(Files.newOutputStream(file,
                StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), BUFFER_BYTES);
            return new PositionOutputStream() {
                private long at;

                @Override
                public long getPos() {
                    return at;
                }

                @Override
                public void write(final int value) throws IOException {
                    out.write(value);
                    at++;
                }

                @Override
                public void write(final byte[] bytes, final int from, final int length) throws IOException {
                    out.write(bytes, from, length);
                    at += length;
                }

                @Override
                public void flush() throws IOException {
                    out.flush();
                }

                @Override
                public void close() throws IOException {
                    out.close();
                }
            };
        }

        @Override
        public PositionOutputStream createOrOverwrite(final long blockSizeHint) throws IOException {
            Files.deleteIfExists(file);
            return create(blockSizeHint);
        }

        @Override
        public boolean supportsBlockSize() {
            return false;
        }

        @Override
        public long defaultBlockSize() {
            return 0;
        }
    }
}
