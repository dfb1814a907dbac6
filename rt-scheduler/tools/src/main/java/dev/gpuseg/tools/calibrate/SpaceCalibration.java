/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.process.InstanceLock;
import dev.gpuseg.daemon.space.Space;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.bench.MpsServer;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/**
 * What a space costs, on an NVIDIA GPU: kernels under the limit of the reserve, alone and beside as many best-effort
 * processes as there are places, all clients of an MPS server of this calibration's own. gpuseg-latency measures.
 * One thread.
 */
public final class SpaceCalibration implements AutoCloseable {
    private static final int ATTEMPTS = 3;
    private static final String PROGRAM = "gpuseg-latency";
    /** Arithmetic, and reading of memory. */
    private static final List<String> WORKS = List.of("100us", "read:500us");
    private static final List<String> KINDS = List.of("products", "reads", "copies", "launches");
    private static final int PERIOD_MS = 5;
    private static final int MS_PER_S = 1_000;
    /** Of the contexts and the calibration of the kernels of one row, s. */
    private static final int START_S = 6;
    private static final int LIMIT_S = 300;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Space space;
    private final Path root;
    private final MpsServer mps;
    /** Nobody else would end what has become a daemon. */
    private final Thread hook = new Thread(this::end, "gpuseg-mps-end");
    private JsonNode machine;

    /**
     * Starts MPS.
     *
     * @param space the reserve and the places
     * @throws IllegalStateException if there is no MPS, it does not start, or a daemon controls the GPU, with a remedy
     */
    public SpaceCalibration(final Space space) throws IOException, InterruptedException, TimeoutException {
        if (Disturbances.find(MpsServer.CONTROL, System.getenv("PATH")) == null) {
            throw new IllegalStateException("calibrate: " + MpsServer.CONTROL + " is not on the PATH; it comes with "
                + "NVIDIA's driver (Ubuntu: package nvidia-compute-utils of its version); install it");
        }
        InstanceLock.requireNoDaemon("nvidia");
        this.space = space;
        root = MemoryDirectory.create("gpuseg-calibrate-");
        try {
            mps = new MpsServer(root);
        } catch (final IllegalStateException | IOException | InterruptedException | TimeoutException e) {
            RuntimeDirectory.deleteTree(root);
            throw e;
        }
        Runtime.getRuntime().addShutdownHook(hook);
    }

    /** One process for each place: of one kind, and of different ones. */
    private List<List<String>> mixes() {
        final List<List<String>> mixes = new ArrayList<>();
        KINDS.forEach(kind -> mixes.add(Collections.nCopies(space.places().size(), kind)));
        if (space.places().size() > 1) {
            mixes.add(IntStream.range(0, space.places().size()).mapToObj(i -> KINDS.get(i % KINDS.size())).toList());
        }
        return mixes;
    }

    /** How long it takes on a machine that is idle otherwise, s. */
    public int seconds(final int jobs) {
        return WORKS.size() * mixes().size() * (START_S + 2 * jobs * PERIOD_MS / MS_PER_S);
    }

    /**
     * Measures each work beside each set of loads.
     *
     * @param jobs executions in each measurement
     * @param said takes a line for each
     * @return what was measured
     * @throws IllegalStateException if something fails, with the reason
     */
    public SpaceCosts measure(final int jobs, final Consumer<String> said) throws InterruptedException, IOException,
        TimeoutException {
        final List<SpaceRow> rows = new ArrayList<>();
        for (final String work : WORKS) {
            for (final List<String> loads : mixes()) {
                final SpaceRow row = row(work, loads, jobs, said);
                rows.add(row);
                said.accept(SpaceCosts.line(row));
            }
        }
        return new SpaceCosts(space, rows);
    }

    /** A row in which the CPU was away most of the time is measured again: another program had it by chance. */
    private SpaceRow row(final String work, final List<String> loads, final int jobs, final Consumer<String> said)
        throws InterruptedException, IOException, TimeoutException {
        JsonNode measurements = measurements(work, loads, jobs);
        for (int i = 1; i < ATTEMPTS && isBusy(measurements); i++) {
            said.accept(work + " beside " + String.join(", ", loads) + " again: the CPU was away in most executions");
            measurements = measurements(work, loads, jobs);
        }
        return new SpaceRow(work, loads, measurements.path(0), measurements.path(1));
    }

    private static boolean isBusy(final JsonNode measurements) {
        return SpaceRow.isBusy(measurements.path(0)) || SpaceRow.isBusy(measurements.path(1));
    }

    private JsonNode measurements(final String work, final List<String> loads, final int jobs)
        throws InterruptedException, IOException, TimeoutException {
        final List<String> command = new ArrayList<>(mps.environment());
        command.addAll(List.of(NativePrograms.named(PROGRAM).toString(), "--space",
            Integer.toString(space.reservePercent()), "--work", work, "--load", String.join(",", loads), "--period",
            PERIOD_MS + "ms", "--duration", (long) jobs * PERIOD_MS + "ms", "--json"));
        final Path errors = root.resolve("errors-" + work.replace(':', '-') + "-" + String.join("-", loads));
        try (Child latency = Child.start(PROGRAM, command, errors)) {
            final int status = latency.awaitExit(LIMIT_S + 2 * jobs * PERIOD_MS / MS_PER_S);
            if (status != 0) {
                throw new IllegalStateException("calibrate: " + work + " beside " + String.join(", ", loads)
                    + " cannot be measured (status " + status + "): " + latency.said());
            }
            machine = JSON.readTree(latency.lastLine());
        }
        return machine.path("measurements");
    }

    /** The machine; after {@link #measure}. A stand-in of the driver says in its name that it is none. */
    public void describe(final ObjectNode into) {
        final String gpu = machine.path("gpu").asText();
        into.put("mechanism", "space").put("simulated", gpu.startsWith("stand-in"))
            .put("driver", "NVIDIA driver " + machine.path("driver").asText()).put("gpu", gpu)
            .put("system", machine.path("system").asText())
            .put("cpu_scheduling", machine.path("cpu_scheduling").asText());
    }

    private void end() {
        try {
            mps.close();
        } catch (final TimeoutException e) {
            throw new IllegalStateException("calibrate: " + e.getMessage(), e);
        } finally {
            RuntimeDirectory.deleteTree(root);
        }
    }

    /**
     * Ends MPS.
     *
     * @throws IllegalStateException if it does not end
     */
    @Override
    public void close() {
        try {
            Runtime.getRuntime().removeShutdownHook(hook);
        } catch (final IllegalStateException e) {
            return;   // a signal ends this JVM, and the hook does it
        }
        end();
    }
}
