/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.InvalidFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Against made-up GPU clocks, whose truth is known. */
class GpuClockTest {
    private static final long S = 1_000_000_000;

    @TempDir
    private Path directory;

    private static GpuClock clock(final long... values) {
        final List<GpuClock.Reading> readings = new ArrayList<>();
        for (int i = 0; i < values.length; i += 3) {
            readings.add(new GpuClock.Reading(values[i], values[i + 1], values[i + 2]));
        }
        return new GpuClock(readings);
    }

    private static String refused(final long... values) {
        return assertThrows(IllegalArgumentException.class, () -> clock(values)).getMessage();
    }

    @Test
    void shouldRefuseReadingsThatSayNothingOrContradictEachOther() {
        assertTrue(refused(1, 2, 3).contains("two or more"));
        assertTrue(refused(10, 5, 9, 20, 15, 21).contains("reading 1"));
        assertTrue(refused(10, 500, 11, 20, 400, 21).contains("reading 2"));
        assertTrue(refused(10, 500, 31, 20, 600, 41).contains("reading 2"));
    }

    @Test
    void shouldRefuseTimesOutsideTheReadings() {
        final GpuClock clock = clock(0, 100, 0, 1000, 1100, 1000);
        assertEquals(0, clock.monotonicNs(100));
        assertEquals(1000, clock.monotonicNs(1100));
        for (final long outside : new long[] {99, 1101}) {
            assertTrue(assertThrows(IllegalArgumentException.class, () -> clock.monotonicNs(outside)).getMessage()
                .contains("outside the readings"));
        }
    }

    @Test
    void shouldStayWithinItsErrorWhereTheClocksDrift() {
        for (long seed = 0; seed < 200; seed++) {
            final Random random = new Random(seed);
            final long offsetNs = random.nextLong(4_000_000_000L * S);
            final double ppm = random.nextDouble(-300, 300);
            final List<GpuClock.Reading> readings = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                final long atNs = 1_000 * S + i * 5 * S + random.nextLong(S);
                readings.add(new GpuClock.Reading(atNs - random.nextLong(20_000), gpu(atNs, offsetNs, ppm),
                    atNs + random.nextLong(20_000)));
            }
            final GpuClock clock = new GpuClock(readings);
            assertTrue(clock.errorNs() < 40_000, "reading is the larger part: " + clock.errorNs());
            for (int i = 0; i < 200; i++) {
                final long atNs = 1_001 * S + random.nextLong(94 * S);
                final long error = Math.abs(clock.monotonicNs(gpu(atNs, offsetNs, ppm)) - atNs);
                assertTrue(error <= clock.errorNs() + 2, () -> error + " ns of " + clock.errorNs());
            }
        }
    }

    private static long gpu(final long monotonicNs, final long offsetNs, final double ppm) {
        return offsetNs + monotonicNs + Math.round((monotonicNs - 1_000 * S) * ppm / 1e6);
    }

    @Test
    void shouldTellThatTheRatioVaried() {
        final GpuClock straight = clock(0, 0, 10, S, S, S + 10, 2 * S, 2 * S, 2 * S + 10);
        assertEquals(5, straight.errorNs());
        final GpuClock bent = clock(0, 0, 10, S + 70_000, S, S + 70_010, 2 * S, 2 * S, 2 * S + 10);
        assertEquals(70_005, bent.errorNs());
    }

    @Test
    void shouldSayWhichLineOfATableIsWrong() throws IOException {
        final Path clock = Files.writeString(directory.resolve("clock.csv"),
            "before_ns,gpu_ns,after_ns\n0,100,2\n1000,1100,1002\n");
        assertEquals(1, GpuClock.read(clock).monotonicNs(100));
        final Path header = Files.writeString(directory.resolve("header.csv"), "gpu,cpu\n1,2\n");
        assertTrue(assertThrows(InvalidFileException.class, () -> GpuClock.read(header)).getMessage()
            .contains("header.csv:1: the first line is \"gpu,cpu\""));
        final Path row = Files.writeString(directory.resolve("row.csv"), "before_ns,gpu_ns,after_ns\n0,100,2\n1,2\n");
        assertTrue(assertThrows(InvalidFileException.class, () -> GpuClock.read(row)).getMessage()
            .contains("row.csv:3: has 2 columns"));
        final Path kernels = Files.writeString(directory.resolve("kernels.csv"),
            "gpu,name,start_gpu_ns,end_gpu_ns\n0,gemm,600,700\n0,\"conv<float, 4>\",200,300\n");
        final Kernels placed = Kernels.read(kernels, GpuClock.read(clock));
        assertEquals(List.of(new Kernels.Kernel(0, "conv<float, 4>", 101, 201),
            new Kernels.Kernel(0, "gemm", 501, 601)), placed.all);
        final Path backwards = Files.writeString(directory.resolve("backwards.csv"),
            "gpu,name,start_gpu_ns,end_gpu_ns\n0,gemm,700,600\n");
        assertTrue(assertThrows(InvalidFileException.class, () -> Kernels.read(backwards, GpuClock.read(clock)))
            .getMessage().contains("kernel \"gemm\""));
    }
}
