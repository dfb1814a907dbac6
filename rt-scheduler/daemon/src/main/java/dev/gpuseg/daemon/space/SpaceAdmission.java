/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import dev.gpuseg.daemon.conductor.AdmissionControl;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Gives tasks parts of the reserve, as memory is given: what fits when a task opens is its own until it closes. And
 * sees that real-time programs are inside, and leave the reserve to those that have a part of it.
 *
 * <p>Where a program is follows from the environment that it was started with. That is the program's own word, but who
 * lies has only what MPS gives him. Admission thread only.
 */
public final class SpaceAdmission implements AdmissionControl {
    private static final String PERCENT_VARIABLE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE";
    private static final int WHOLE = 100;

    private final AdmissionControl next;
    private final Space space;
    private final Path pipe;
    private final Path proc;
    /** Parts of the reserve, percent, by client and task. */
    private final Map<Integer, Map<String, Integer>> given = new HashMap<>();

    /**
     * Asks another control afterwards.
     *
     * @param next  judges what this one lets pass
     * @param space what there is
     * @param pipe  where clients find the MPS server
     * @param proc  /proc
     */
    public SpaceAdmission(final AdmissionControl next, final Space space, final Path pipe, final Path proc) {
        this.next = next;
        this.space = space;
        this.pipe = pipe;
        this.proc = proc;
    }

    @Override
    public String refuse(final TaskOpen request, final Client client) {
        final String refused = request.priority() == 0 ? null : refuseRealTime(request, client.pid());
        final String verdict = refused == null ? next.refuse(request, client) : refused;
        if (verdict == null && request.reserve() > 0) {
            given.computeIfAbsent(request.clientId(), id -> new HashMap<>()).put(request.name(), request.reserve());
        }
        return verdict;
    }

    private String refuseRealTime(final TaskOpen request, final int pid) {
        final String task = "task \"" + request.name() + "\": ";
        final Environment environment;
        try {
            environment = Environment.of(proc, pid);
        } catch (final IOException e) {
            return task + "where its program is cannot be seen: " + e.getMessage();
        }
        if (!pipe.toString().equals(environment.pipe())) {
            return task + "its program is outside of the space; start it with `gpuseg exec --priority "
                + request.priority() + "`" + (request.reserve() > 0 ? " and --reserve " + request.reserve() + "%" : "");
        }
        final int free = space.reservePercent() - given();
        if (request.reserve() > free) {
            return task + "reserve is " + request.reserve() + "%, and " + free + "% of the reserve of "
                + space.reservePercent() + "% are free; ask for less, close a task that has a part, or start the "
                + "daemon with more (space-reserve)";
        }
        if (request.reserve() == 0 && environment.percent() > space.longPercent()) {
            return task + "its program may use " + environment.percent() + "% of the GPU and would take the reserve; "
                + "start it with `gpuseg exec --priority " + request.priority() + "`, which limits it to "
                + space.longPercent() + "%, or give it a part of the reserve";
        }
        return null;
    }

    /** What of the reserve is given, percent. */
    private int given() {
        return given.values().stream().flatMap(tasks -> tasks.values().stream()).mapToInt(Integer::intValue).sum();
    }

    @Override
    public void opened(final TaskOpen request, final int taskId) {
        next.opened(request, taskId);
    }

    @Override
    public void closed(final int clientId, final String name) {
        given.computeIfPresent(clientId, (id, tasks) -> {
            tasks.remove(name);
            return tasks.isEmpty() ? null : tasks;
        });
        next.closed(clientId, name);
    }

    @Override
    public void clientGone(final int clientId, final int reason) {
        given.remove(clientId);
        next.clientGone(clientId, reason);
    }

    /**
     * What the environment of a process says of MPS.
     *
     * @param pipe    directory of its server; empty if it names none
     * @param percent what it may use of the multiprocessors
     */
    private record Environment(String pipe, int percent) {
        static Environment of(final Path proc, final int pid) throws IOException {
            String pipe = "";
            int percent = WHOLE;
            final String all = new String(Files.readAllBytes(proc.resolve(Integer.toString(pid)).resolve("environ")),
                StandardCharsets.UTF_8);
            for (final String entry : all.split("\0")) {
                if (entry.startsWith(SpaceKeeper.PIPE_VARIABLE + "=")) {
                    pipe = entry.substring(SpaceKeeper.PIPE_VARIABLE.length() + 1);
                } else if (entry.startsWith(PERCENT_VARIABLE + "=")) {
                    percent = percentOf(entry.substring(PERCENT_VARIABLE.length() + 1));
                }
            }
            return new Environment(pipe, percent);
        }

        /** MPS takes fractions, and ignores what is no number. */
        private static int percentOf(final String text) {
            return text.matches("[0-9]{1,3}(\\.[0-9]+)?") ? (int) Math.ceil(Double.parseDouble(text)) : WHOLE;
        }
    }
}
