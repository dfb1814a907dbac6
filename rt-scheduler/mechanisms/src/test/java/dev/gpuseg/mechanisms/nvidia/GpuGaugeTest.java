/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.NativeLibrary;
import dev.gpuseg.ipc.NativeTool;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** On a stand-in of NVML that knows one GPU, which works for 37 % of the time, and its memory for 11 %. */
class GpuGaugeTest {
    private static final String LIBRARY = "libnvidia-ml.so.1";
    private static final String STAND_IN = """
        #include <string.h>
        static int open;
        int nvmlInit_v2(void) { open++; return 0; }
        int nvmlShutdown(void) { open--; return 0; }
        int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **device)
        {
            *device = &open;
            return open != 1 ? 1 : strcmp(address, "00000001:0A:02.0") == 0 ? 0 : 6;
        }
        int nvmlDeviceGetUtilizationRates(void *device, unsigned percent[2])
        {
            percent[0] = 37;
            percent[1] = 11;
            return open != 1 || device != &open;
        }
        """;

    @TempDir
    private Path directory;

    /** Loads it in place of a machine's own. */
    private void standIn(final String source) throws IOException {
        final Path file = Files.writeString(directory.resolve("nvml.c"), source);
        NativeTool.run(60, "cc", "-shared", "-fPIC", "-o", directory.resolve(LIBRARY).toString(), file.toString());
        NativeLibrary.addSearchPath(LIBRARY, directory.toString());
        NativeLibrary.getInstance(LIBRARY);
    }

    @AfterEach
    void unload() {
        NativeLibrary.getInstance(LIBRARY).close();
    }

    @Test
    void shouldTellHowMuchAGpuWorksUntilItIsClosed() throws IOException {
        standIn(STAND_IN);
        for (int i = 0; i < 2; i++) {   // the second opens it anew
            final GpuGauge gauge = new GpuGauge("00000001:0A:02.0");
            assertEquals(37, gauge.percent());
            assertEquals(37, gauge.percent());
            gauge.close();
            assertEquals(-1, gauge.percent());
        }
    }

    @Test
    void shouldSayThatItDoesNotKnow() throws IOException {
        standIn(STAND_IN);
        for (int i = 0; i < 2; i++) {   // whoever finds no GPU leaves nothing open
            assertEquals(-1, new GpuGauge("00000002:00:00.0").percent());
        }
        assertEquals(-1, new GpuGauge("").percent());
        final GpuGauge known = new GpuGauge("00000001:0A:02.0");
        assertEquals(37, known.percent());
        known.close();
    }

    @Test
    void shouldNotEndWithALibraryThatCannotTell() throws IOException {
        standIn("int nvmlInit_v2(void) { return 0; }");
        assertEquals(-1, new GpuGauge("00000001:0A:02.0").percent());
    }
}
