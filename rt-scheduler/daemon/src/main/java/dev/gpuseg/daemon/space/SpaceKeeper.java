/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/**
 * The space of a running daemon: an MPS control daemon that is there, and the files by which programs find it. The
 * control daemon is that of the runtime directory, which an earlier daemon may have left with programs inside, or the
 * one that {@code CUDA_MPS_PIPE_DIRECTORY} of this process names, which is never ended here.
 *
 * <p>{@link #keep} and {@link #close} on one thread; the getters on any.
 */
public final class SpaceKeeper implements AutoCloseable {
    /** Names where clients find a server. */
    public static final String PIPE_VARIABLE = "CUDA_MPS_PIPE_DIRECTORY";

    private static final long PAUSE_LEAST_NS = 1_000_000_000L;
    private static final long PAUSE_MOST_NS = 60_000_000_000L;
    /** How often one that lives is asked at a start, 5 s each, before it counts as none. */
    private static final int ASKS = 6;
    private static final long LOOK_NS = 5_000_000_000L;

    private final RuntimeDirectory directory;
    private final Space space;
    private final int uid;
    private final MpsControl control;
    private final boolean own;
    private final boolean disables;
    private final Consumer<String> say;
    private final Outsiders outsiders;
    private volatile long restarts;
    /** Programs outside, as "name[pid]", and when they were looked for last. */
    private volatile List<String> outside = List.of();
    /** Processes of best-effort programs inside. */
    private volatile int occupied;
    private long lookedNs = System.nanoTime() - LOOK_NS;
    /** When it was started last by {@link #keep}, and how long after that it may be again. */
    private long startedNs = System.nanoTime() - PAUSE_MOST_NS;
    private long pauseNs = PAUSE_LEAST_NS;
    /** Why there is no control daemon at the moment; empty if there is one. */
    private volatile String failure = "";

    private SpaceKeeper(final RuntimeDirectory directory, final Space space, final int uid, final MpsControl control,
        final boolean own, final boolean disables, final Consumer<String> say) {
        this.directory = directory;
        this.space = space;
        this.uid = uid;
        this.control = control;
        this.own = own;
        this.disables = disables;
        this.say = say;
        outsiders = new Outsiders(Path.of("/proc"), control.pipe());
    }

    /**
     * Finds or starts the control daemon.
     *
     * @param directory the daemon's
     * @param space     how the GPU is divided
     * @param uid       whom the space serves; MPS serves one user at a time
     * @param named     {@link #PIPE_VARIABLE} of this process; null or empty if it is not set
     * @param disables  whether programs outside are disabled while a part of the reserve is given
     * @param say       takes lines for the administrator
     * @return the space; nobody is inside before {@link #open}
     * @throws IOException if there is no control daemon and none can be started, with the remedy
     */
    public static SpaceKeeper start(final RuntimeDirectory directory, final Space space, final int uid,
        final String named, final boolean disables, final Consumer<String> say) throws IOException {
        final Path logs = directory.root().resolve("mps-log");
        if (named != null && !named.isEmpty()) {
            final MpsControl other = new MpsControl(Path.of(named), logs);
            if (!other.answers()) {
                throw new IOException(PIPE_VARIABLE + " is " + named + ", where no MPS control daemon answers; unset "
                    + "it, so that one is started, or start that one");
            }
            return new SpaceKeeper(directory, space, uid, other, false, disables, say);
        }
        final MpsControl control = new MpsControl(directory.root().resolve("mps"), logs);
        if (!isThere(control)) {
            begin(control);
        }
        return new SpaceKeeper(directory, space, uid, control, true, disables, say);
    }

    /** Whether it answers, if late: a machine that is busy may not let it for long. */
    private static boolean isThere(final MpsControl control) {
        for (int asked = 0; asked < ASKS; asked++) {
            if (control.answers()) {
                return true;
            }
            if (!control.isAlive()) {
                return false;
            }
        }
        return false;
    }

    private static void begin(final MpsControl control) throws IOException {
        try {
            control.start();
        } catch (final IOException e) {
            throw new IOException(e.getMessage() + ". It comes with NVIDIA's driver (package nvidia-compute-utils or "
                + "the like); without it leave --space out", e);
        }
    }

    /** Programs may go inside. */
    public void open() {
        SpaceFiles.write(directory, space, control.pipe(), uid);
    }

    /**
     * Looks who is outside, and starts the control daemon again if it has died: at once, then ever more rarely, at
     * last once a minute.
     */
    public void keep() {
        final long nowNs = System.nanoTime();
        if (nowNs - lookedNs >= LOOK_NS) {
            lookedNs = nowNs;
            lookOutside();
        }
        if (!own) {
            return;
        }
        if (control.isAlive()) {
            failure = "";   // one that was late is there
            if (nowNs - startedNs > PAUSE_MOST_NS) {
                pauseNs = PAUSE_LEAST_NS;
            }
            return;
        }
        if (nowNs - startedNs < pauseNs) {
            return;
        }
        startedNs = nowNs;
        pauseNs = Math.min(2 * pauseNs, PAUSE_MOST_NS);
        try {
            begin(control);
            restarts = restarts + 1;   // single writer
            failure = "";
            say.accept("the MPS control daemon was gone and was started again; programs that were inside have lost the "
                + "GPU");
        } catch (final IOException e) {
            if (failure.isEmpty()) {
                say.accept("the MPS control daemon is gone: " + e.getMessage());
            }
            failure = String.valueOf(e.getMessage());
        }
    }

    private void lookOutside() {
        try {
            final Outsiders.Seen now = outsiders.look();
            final List<String> fresh = now.outside().stream().filter(program -> !outside.contains(program)).toList();
            if (now.occupied() > space.places().size() && now.occupied() > occupied) {
                say.accept(now.occupied() + " processes of best-effort programs are inside, each with the limit of "
                    + "one of " + space.places().size() + " places: together they may take the reserve; children that "
                    + "use the GPU count each (space-places)");
            }
            outside = now.outside();   // single writer
            occupied = now.occupied();
            if (!fresh.isEmpty()) {
                say.accept(String.join(", ", fresh) + (fresh.size() == 1 ? " uses" : " use") + " the GPU outside of "
                    + "the space, in time slices of the whole GPU: " + (disables
                        ? "disabled while a loop has a part of it" : "loops with a part of it wait meanwhile")
                    + "; start such programs with `gpuseg exec --best-effort`, or give them a place (space-places)");
            }
        } catch (final IOException e) {
            say.accept("programs outside of the space cannot be seen: " + e.getMessage());
        }
    }

    /** What {@code status} shows. */
    public ObjectNode status() {
        final ObjectNode status = JsonNodeFactory.instance.objectNode();
        final ArrayNode programs = status.putArray("outside");
        outside.forEach(programs::add);
        return status.put("reserve", space.reservePercent()).put("places", space.places().size())
            .put("occupied", occupied).put("pipe", control.pipe().toString()).put("uid", uid)
            .put("restarts", restarts).put("failure", failure);
    }

    /** Whether a program is a client of the space's server, or that server; any thread. */
    public boolean isInside(final int pid) {
        return outsiders.isInside(pid);
    }

    /** How the GPU is divided. */
    public Space space() {
        return space;
    }

    /** Where clients find the server. */
    public Path pipe() {
        return control.pipe();
    }

    /**
     * Nobody goes inside any more. The control daemon ends if nobody is inside; else it goes on, and the next daemon
     * finds it.
     */
    @Override
    public void close() {
        try {
            SpaceFiles.remove(directory);
            if (!own || !control.isAlive()) {
                return;
            }
            final int clients = control.clients();
            if (clients == 0) {
                control.quit();
            } else {
                say.accept("the MPS control daemon goes on, since " + clients + " programs are inside; the next daemon "
                    + "in " + directory.root() + " takes it over, and `echo quit | " + PIPE_VARIABLE + "="
                    + control.pipe() + " " + MpsControl.PROGRAM + "` ends it");
            }
        } catch (final IOException | UncheckedIOException e) {
            say.accept("the MPS control daemon does not end: " + e.getMessage());
        }
    }
}
