/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A process can write anything into its report, and RM is asked before it is used. */
@Timeout(300)
class ForgedReportTest {
    private static final int CLASS_CLIENT = 0x41;
    private static final int CLASS_TSG = 0xa06c;
    private static final int CLASS_CHANNEL = 0xc86f;
    private static final int MADE_UP = 0x5c00f000;
    private static final int COUNT_OFFSET = 12;

    private final ControlCloser closer = ControlCloser.inPlace();
    private final RmControl rm = new RmControl();
    @TempDir
    private Path directory;
    private RmRig rig;

    @BeforeEach
    void start() throws Exception {
        rig = new RmRig(directory);
    }

    @AfterEach
    void stop() throws Exception {
        if (rig != null) {
            rig.close();
        }
    }

    private RmContext look(final RmRig.App app) {
        final RmProcess p = RmProcess.open(app.pid(), new GpuIndex(List.of()), Scope.COMPUTE, rm);
        assertEquals(RmProcess.Result.CHANGED, p.refresh(System.nanoTime(), closer));
        return p.context(0);
    }

    private static boolean isReport(final Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith(CaptureReport.LINK_PREFIX);
        } catch (final IOException e) {
            return false;   // closed meanwhile
        }
    }

    private static void add(final RmRig.App app, final int client, final int parent, final int handle,
        final int classId) throws IOException {
        final Path report;
        try (Stream<Path> all = Files.list(Path.of("/proc/" + app.pid() + "/fd"))) {
            report = all.filter(ForgedReportTest::isReport).findFirst().orElseThrow();
        }
        final ByteBuffer entry = ByteBuffer.allocate(CaptureReport.ENTRY_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        entry.putInt(CaptureReport.ALLOC).putInt(RmRig.controlDescriptors(app.pid()).get(0)).putInt(client)
            .putInt(parent).putInt(handle).putInt(classId).putInt(RmClient.ENGINE_GR0).rewind();
        final ByteBuffer count = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel file = FileChannel.open(report, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            file.read(count, COUNT_OFFSET);
            final int before = count.getInt(0);
            file.write(entry, CaptureReport.HEADER_BYTES + (long) before * CaptureReport.ENTRY_BYTES);
            file.write(count.putInt(0, before + 1).rewind(), COUNT_OFFSET);
        }
    }

    @Test
    void shouldNotControlTheClientOfAnotherProcess() throws Exception {
        final RmContext victim = look(rig.start());
        final RmRig.App liar = rig.start("", true, RmRig.appProgram());
        final RmContext honest = look(liar);
        add(liar, victim.client(), 0, victim.client(), CLASS_CLIENT);
        for (final RmContext.Tsg group : victim.tsgs()) {
            add(liar, victim.client(), victim.subdevice() - 1, group.handle(), CLASS_TSG);
        }
        for (final int channel : RmRig.channels(victim)) {
            add(liar, victim.client(), victim.tsgs().get(0).handle(), channel, CLASS_CHANNEL);
        }
        final RmContext now = look(liar);
        assertEquals(honest.client(), now.client());
        assertArrayEquals(RmRig.channels(honest), RmRig.channels(now));
    }

    @Test
    void shouldTakeNeitherMadeUpHandlesNorOtherObjectsForChannels() throws Exception {
        final RmRig.App liar = rig.start("", true, RmRig.appProgram());
        final RmContext honest = look(liar);
        final int group = honest.tsgs().get(0).handle();
        final long before = rm.controls();
        add(liar, honest.client(), group, MADE_UP, CLASS_CHANNEL);
        add(liar, honest.client(), group, honest.subdevice(), CLASS_CHANNEL);
        add(liar, honest.client(), honest.subdevice() - 1, MADE_UP + 1, CLASS_TSG);
        assertArrayEquals(RmRig.channels(honest), RmRig.channels(look(liar)));
        assertTrue(rm.controls() > before, "RM was asked");
    }
}
