/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.ipc.Abi;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OperationLogTest {
    @TempDir
    private Path directory;

    private void write(final long timeNs, final int pid, final int change) throws IOException {
        final ByteBuffer line = ByteBuffer.allocate(Abi.SimOperation.SIZE).order(ByteOrder.nativeOrder());
        line.putLong(Abi.SimOperation.TIME_NS_OFFSET, timeNs).putInt(Abi.SimOperation.PID_OFFSET, pid)
            .putInt(Abi.SimOperation.CHANGE_OFFSET, change);
        Files.write(directory.resolve("log"), line.array(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    @Test
    void shouldCountFromTheFaultToTheEnableForWhatWasDisabledWhenItStruck() throws IOException {
        write(100, 1, Abi.SIM_DISABLED);
        write(900, 1, Abi.SIM_ENABLED);
        write(600, 2, Abi.SIM_DISABLED);   // after the fault
        try (OperationLog log = new OperationLog(directory.resolve("log"))) {
            log.read();
            assertEquals(1, log.disabled());
            assertEquals(400, log.longestNs(500, 500, 5000, List.of()));
            assertEquals(4400, log.longestNs(500, 600, 5000, List.of()), "it is still disabled");
            write(1000, 2, Abi.SIM_GONE);
            log.read();
            assertEquals(0, log.disabled());
            assertEquals(400, log.longestNs(500, 600, 5000, List.of()));
            log.startAnew();
            assertEquals(0, log.longestNs(0, 5000, 5000, List.of()));
        }
    }

    @Test
    void shouldLeaveOutWhatALivingHolderCovers() throws IOException {
        write(100, 1, Abi.SIM_DISABLED);
        write(900, 1, Abi.SIM_ENABLED);
        final List<Ledger.Window> holders = List.of(new Ledger.Window(7, 50, 250), new Ledger.Window(7, 400, 800),
            new Ledger.Window(7, 950, Long.MAX_VALUE));
        try (OperationLog log = new OperationLog(directory.resolve("log"))) {
            log.read();
            assertEquals(150, log.longestNs(0, 100, 1000, holders), "from 250 to 400");
            assertEquals(100, log.longestNs(500, 500, 1000, holders), "from 800 to 900");
            assertEquals(0, log.longestNs(0, 100, 1000, List.of(new Ledger.Window(7, 0, Long.MAX_VALUE))));
        }
    }

    @Test
    void shouldKeepTheFirstOfSeveralDisables() throws IOException {
        write(100, 1, Abi.SIM_DISABLED);
        write(200, 1, Abi.SIM_DISABLED);
        write(300, 1, Abi.SIM_ENABLED);
        write(400, 1, Abi.SIM_ENABLED);
        try (OperationLog log = new OperationLog(directory.resolve("log"))) {
            log.read();
            assertEquals(200, log.longestNs(0, 1000, 1000, List.of()));
        }
    }
}
