/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.expressions.Aggregator;

/** Histograms as aggregate functions of Spark. */
final class HistogramSums {
    private HistogramSums() {
    }

    /** What both have in common. */
    private abstract static class Sum<I> extends Aggregator<I, ResponseHistogram, byte[]> {
        private static final long serialVersionUID = 1;

        @Override
        public ResponseHistogram zero() {
            return new ResponseHistogram();
        }

        @Override
        public ResponseHistogram merge(final ResponseHistogram to, final ResponseHistogram from) {
            to.add(from);
            return to;
        }

        @Override
        public byte[] finish(final ResponseHistogram sum) {
            return sum.toBytes();
        }

        @Override
        public Encoder<ResponseHistogram> bufferEncoder() {
            return Encoders.javaSerialization(ResponseHistogram.class);
        }

        @Override
        public Encoder<byte[]> outputEncoder() {
            return Encoders.BINARY();
        }
    }

    /** Of durations in ns; those below 0 and null do not count. */
    static final class OfTimes extends Sum<Long> {
        private static final long serialVersionUID = 1;

        @Override
        public ResponseHistogram reduce(final ResponseHistogram sum, final Long ns) {
            if (ns != null && ns >= 0) {
                sum.add(ns);
            }
            return sum;
        }
    }

    /** Of histograms. */
    static final class OfHistograms extends Sum<byte[]> {
        private static final long serialVersionUID = 1;

        @Override
        public ResponseHistogram reduce(final ResponseHistogram sum, final byte[] part) {
            sum.add(ResponseHistogram.of(part));
            return sum;
        }
    }
}
