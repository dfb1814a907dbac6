/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import static org.junit.jupiter.api.Assumptions.abort;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The real gpuseg-observer, for tests. Without it, or without the right to BPF, a test is skipped; where CI runs as
 * root, it fails.
 */
public final class RealObserver {
    private static final Path PROGRAM = Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native",
        "build", "gpuseg-observer").toAbsolutePath();
    private static final long LIMIT_MS = 120_000;

    private RealObserver() {
    }

    /**
     * The program.
     *
     * @return its path; it exists
     */
    public static Path program() {
        if (!Files.exists(PROGRAM)) {
            lacking("gpuseg-observer is not built: apt install clang libbpf-dev");
        }
        return PROGRAM;
    }

    /**
     * Starts it.
     *
     * @param device that it watches, as --device has it
     * @return an observer that sees
     */
    public static Observer start(final String device) {
        final Observer observer = Observer.start(program(), List.of("--device", device));
        if (!observer.await(LIMIT_MS)) {
            final String problem = observer.problem();
            observer.close();
            lacking(problem);
        }
        return observer;
    }

    /** Ends the test. */
    private static void lacking(final String what) {
        final String ci = System.getenv("CI");
        if (ci != null && !ci.isEmpty() && ProcessStatus.effectiveUid() == 0) {
            throw new AssertionError("root may use BPF where CI runs, but: " + what);
        }
        abort(what);
    }
}
