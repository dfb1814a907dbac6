/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.observer.RealObserver;
import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(240)
class ObserverCheckTest {
    private static final Supplier<Path> NOT_BUILT = () -> {
        throw new IllegalStateException("gpuseg-observer is missing");
    };

    @TempDir
    private Path directory;
    private Path socket;

    @BeforeEach
    void chooseSocket() {
        socket = directory.resolve("socket");
    }

    private Path script(final String lines) throws IOException {
        final Path script = directory.resolve("gpuseg-observer");
        Files.writeString(script, "#!/bin/sh\n" + lines + "\n");
        return Files.setPosixFilePermissions(script, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** The real program, run by root in a way that takes something from it. */
    private DoctorCheck deprived(final String lines) throws Exception {
        RealObserver.start("nvidia:1:7:any").close();   // it works here
        assumeTrue(ProcessStatus.effectiveUid() == 0, "only root can run a program with less than it has");
        final Path script = script(lines.replace("PROGRAM", "'" + RealObserver.program() + "'"));
        return ObserverCheck.run(socket, () -> script);
    }

    private static void assertAdvice(final DoctorCheck check, final String found, final String remedy) {
        assertEquals(Verdict.ADVICE, check.verdict(), check::toString);
        assertTrue(check.found().contains(found), check::toString);
        assertTrue(check.remedy().contains(remedy), check::toString);
        assertTrue(check.remedy().endsWith("noticed up to 0.3 s late"), check::toString);
        assertEquals(1, check.found().lines().count(), check::toString);
    }

    @Test
    void shouldNotTakeAStaleSocketForTheService() throws Exception {
        try (ServerSocketChannel service = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            service.bind(UnixDomainSocketAddress.of(socket));
        }
        assertTrue(Files.exists(socket));
        assertAdvice(ObserverCheck.run(socket, NOT_BUILT), socket + ": Connection refused",
            "systemctl restart gpuseg-observer");
    }

    @Test
    void shouldNotTakeAnotherFileForTheService() throws Exception {
        Files.createFile(socket);
        assertAdvice(ObserverCheck.run(socket, NOT_BUILT), socket.toString(), "delete " + socket);
    }

    @Test
    void shouldSayWhatToInstallWhereItIsNotBuilt() throws Exception {
        assertAdvice(ObserverCheck.run(socket, NOT_BUILT), "not built", "apt install clang libbpf-dev");
    }

    @Test
    void shouldSayThatTheProgramDoesNotStart() throws Exception {
        assertAdvice(ObserverCheck.run(socket, () -> directory.resolve("nothing")), "does not start",
            "apt install libbpf1");
    }

    @Test
    void shouldSayThatTheRightToBpfIsLacking() throws Exception {
        assertAdvice(deprived("exec setpriv --bounding-set=-all --inh-caps=-all PROGRAM \"$@\""),
            "it needs CAP_BPF and CAP_PERFMON", "run as root");
    }

    @Test
    void shouldSayThatTheKernelHasNoBtf() throws Exception {
        assertAdvice(deprived("exec unshare --mount sh -c 'mount -t tmpfs none /sys/kernel/btf && exec \"$0\" \"$@\"' "
            + "PROGRAM \"$@\""), "this kernel has no BTF", "with BTF");
    }

    @Test
    void shouldSayThatTheServiceListens() throws Exception {
        try (ServerSocketChannel service = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            service.bind(UnixDomainSocketAddress.of(socket));
            assertEquals(new DoctorCheck("observer (BPF)", Verdict.OK, "runs as a service at " + socket, ""),
                ObserverCheck.run(socket, NOT_BUILT));
        }
    }

    @Test
    void shouldSayThatTheProgramWorks() throws Exception {
        RealObserver.start("nvidia:1:7:any").close();
        assertEquals(new DoctorCheck("observer (BPF)", Verdict.OK, "the BPF program loads and is attached", ""),
            ObserverCheck.run(socket, RealObserver::program));
    }
}
