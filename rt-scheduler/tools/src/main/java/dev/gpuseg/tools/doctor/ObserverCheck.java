/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.process.ObserverLaunch;
import dev.gpuseg.mechanisms.observer.Observer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Whether gpuseg-observer can see GPU processes here: its service listens, or its BPF program can be loaded, which is
 * removed at once.
 */
final class ObserverCheck {
    private static final String NAME = "observer (BPF)";
    private static final String INSTEAD = "; until then processes are scanned, and noticed up to 0.3 s late";
    private static final int LIMIT_S = 20;

    private ObserverCheck() {
    }

    static DoctorCheck run() throws InterruptedException {
        return run(ObserverLaunch.SERVICE, () -> NativePrograms.named(ObserverLaunch.PROGRAM));
    }

    /** A daemon connects to the service if its socket exists, so the program is not looked at then. */
    static DoctorCheck run(final Path service, final Supplier<Path> programs) throws InterruptedException {
        if (Files.exists(service)) {
            final String refusal = Observer.refusal(service);
            return DoctorCheck.of(NAME, refusal.isEmpty(),
                refusal.isEmpty() ? "runs as a service at " + service : refusal,
                "systemctl restart gpuseg-observer; if there is no such service, delete " + service + INSTEAD);
        }
        final Path program;
        try {
            program = programs.get();
        } catch (final IllegalStateException e) {
            return DoctorCheck.of(NAME, false, "gpuseg-observer is not built",
                "apt install clang libbpf-dev, then ./gpuseg build" + INSTEAD);
        }
        try {
            final Process check = new ProcessBuilder(program.toString(), "--check").redirectErrorStream(true).start();
            final String said = new String(check.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
            if (!check.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                check.destroyForcibly();
                return DoctorCheck.of(NAME, false, program + " --check does not end", "look at the kernel's log");
            }
            return DoctorCheck.of(NAME, check.exitValue() == 0, said.isEmpty() ? "status " + check.exitValue() : said,
                "run as root on a kernel of 5.11 or later with BTF" + INSTEAD);
        } catch (final IOException e) {
            return DoctorCheck.of(NAME, false, program + " does not start: " + e.getMessage(),
                "apt install libbpf1" + INSTEAD);
        }
    }
}
