/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A daemon with {@code --space} beside a stand-in of MPS's control daemon, and programs on the stand-ins of CUDA. */
final class SpaceRig {
    static final int LIMIT_S = 120;
    static final int LIMIT_MS = 1_000 * LIMIT_S;
    static final String PROGRAM = "nvidia-cuda-mps-control";
    static final Path STAND_IN = Path.of(System.getProperty("gpuseg.root"), "rt-scheduler/native/tests/mps");
    private static final String PLACES = "space-places: 44%, 40.5%";

    private final SystemRig rig;
    private int programs;

    SpaceRig(final SystemRig rig) {
        this.rig = rig;
    }

    Path pipe() {
        return rig.directory().root().resolve("mps");
    }

    /** Where the control daemon notes its process; it ends when this is gone. */
    Path note() {
        return pipe().resolve(PROGRAM + ".pid");
    }

    /** The control daemon's process; 0 if it is not there. */
    long controlPid() {
        try {
            return Long.parseLong(Files.readString(note()).strip());
        } catch (final IOException | NumberFormatException e) {
            return 0;
        }
    }

    Child run(final String path) {
        final List<String> command = new ArrayList<>(List.of("env", "-u", "CUDA_MPS_PIPE_DIRECTORY", "PATH=" + path));
        command.addAll(JavaCommand.daemon());
        command.addAll(List.of("--dir", rig.directory().root().toString(), "--policy", "fp", "--space"));
        command.addAll(rig.settings());
        return rig.start("run", command);
    }

    /** A daemon with two places and a reserve of 12 %, ready. */
    Child daemon() throws InterruptedException {
        return daemon(STAND_IN);
    }

    /** The same with programs of this directory. */
    Child daemon(final Path programs) throws InterruptedException {
        rig.without(PLACES).with(PLACES);
        final Child daemon = run(programs + ":" + System.getenv("PATH"));
        daemon.await("daemon ready", LIMIT_S);
        return daemon;
    }

    /** A program under {@code gpuseg exec}; the word APP is the CUDA program. */
    Child exec(final String... words) {
        final List<String> command = new ArrayList<>(List.of("env", "-u", "CUDA_MPS_PIPE_DIRECTORY", "GPUSEG_DIR="
            + rig.directory().root(), "GPUSEG_CUPTI=" + NativePrograms.ofClientLibrary("tests/cuda/libcupti.so.13"),
            NativePrograms.ofClientLibrary("gpuseg-exec").toString()));
        for (final String word : words) {
            command.add(word.equals("APP") ? NativePrograms.ofClientLibrary("tests/cuda/inject_app").toString() : word);
        }
        programs++;
        return rig.start("program" + programs, command);
    }

    boolean isFree(final int place) {
        try {
            return new ProcessBuilder("flock", "-n", rig.directory().root().resolve("place" + place).toString(), "true")
                .start().waitFor() == 0;
        } catch (final IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
