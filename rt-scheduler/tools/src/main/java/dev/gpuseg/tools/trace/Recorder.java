/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Makes recordings from a journal, also while a daemon writes it. Stateless. */
public final class Recorder {
    private static final long POLL_MS = 5;

    private Recorder() {
    }

    /**
     * Records all that a journal holds now.
     *
     * @param journal its directory
     * @param out     the recording
     * @return its manifest
     * @throws IOException if it cannot be written
     */
    public static ObjectNode copy(final Path journal, final Path out) throws IOException {
        return copy(journal, out, Map.of());
    }

    /**
     * Records all that a journal holds now.
     *
     * @param journal its directory
     * @param out     the recording
     * @param labels  where it comes from, as {@link RecordingWriter#label} takes them
     * @return its manifest
     * @throws IOException if it cannot be written
     */
    public static ObjectNode copy(final Path journal, final Path out, final Map<String, String> labels)
        throws IOException {
        try (JournalReader reader = new JournalReader(journal); RecordingWriter writer = new RecordingWriter(out)) {
            labels.forEach(writer::label);
            reader.drain(event -> addTo(writer, event));
            return writer.finish(commit());
        }
    }

    /**
     * Follows a journal.
     *
     * @param journal  its directory
     * @param out      the recording
     * @param duration how long, from when what was in it before has been read
     * @param all      with what was in it before; otherwise only what is still open of that
     * @param labels   where it comes from, as {@link RecordingWriter#label} takes them
     * @return the manifest
     * @throws IOException          if it cannot be written
     * @throws InterruptedException if the waiting is interrupted; nothing is left behind
     */
    public static ObjectNode follow(final Path journal, final Path out, final Duration duration, final boolean all,
        final Map<String, String> labels) throws IOException, InterruptedException {
        try (JournalReader reader = new JournalReader(journal); RecordingWriter writer = new RecordingWriter(out)) {
            labels.forEach(writer::label);
            if (!all) {
                final Preface preface = new Preface();
                reader.drain(preface::onEvent);
                for (final JournalEvent event : preface.events.values()) {
                    writer.addPreface(event);
                }
                writer.endPreface(preface.lastSeq);
            }
            final long sinceNs = System.nanoTime();   // what was there before may have taken a second to read
            while (System.nanoTime() - sinceNs < duration.toNanos()) {
                reader.drain(event -> addTo(writer, event));
                TimeUnit.MILLISECONDS.sleep(POLL_MS);
            }
            reader.drain(event -> addTo(writer, event));
            writer.followed(System.nanoTime() - sinceNs);
            return writer.finish(commit());
        } catch (final UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static void addTo(final RecordingWriter writer, final JournalEvent event) {
        try {
            writer.add(event);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The checkout that the program runs from. */
    private static String commit() {
        final String root = System.getProperty("gpuseg.root");
        if (root == null) {
            return "unknown";
        }
        try {
            final Process git = new ProcessBuilder("git", "-C", root, "rev-parse", "HEAD")
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            final String line = new String(git.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim();
            return line.matches("[0-9a-f]{40,64}") ? line : "unknown";
        } catch (final IOException e) {
            return "unknown";   // installed without its history, or no git on this machine
        }
    }

    /** The events that say what is open: of the last start, its policy, its contexts, clients and tasks. */
    private static final class Preface {
        private final Map<String, JournalEvent> events = new LinkedHashMap<>();
        private long lastSeq;

        void onEvent(final JournalEvent event) {
            lastSeq = event.seq();
            final EventKind kind = event.kind();
            if (kind == null) {
                return;
            }
            switch (kind) {
                case START -> {
                    events.clear();
                    keep("start", event);
                }
                case POLICY -> keep(event.taskId() == 0 ? subject(event.text())
                    : "priority " + event.taskId(), event);
                case CONTEXT_OPEN -> keep("context " + event.contextId(), event);
                case CONTEXT_KIND -> keep("kind " + event.contextId(), event);
                case CONTEXT_CLOSE -> {
                    events.remove("context " + event.contextId());
                    events.remove("kind " + event.contextId());
                }
                case CLIENT_OPEN -> keep("client " + event.clientId(), event);
                case CLIENT_CLOSE -> events.remove("client " + event.clientId());
                case TASK_OPEN -> keep("task " + event.taskId(), event);
                case TASK_CLOSE -> {
                    events.remove("task " + event.taskId());
                    events.remove("priority " + event.taskId());
                }
                default -> {
                    // what happened, not what is open
                }
            }
        }

        /** What a change is about: a later one of the same replaces it. */
        private static String subject(final String text) {
            if (text.startsWith("policy ") || text.startsWith("sharing ")) {
                return text.substring(0, text.indexOf(' '));
            }
            return text.startsWith("settings ") ? "settings" : text.replaceFirst(" (-?\\d+|no cap|cap .*)$", "");
        }

        private void keep(final String key, final JournalEvent event) {
            events.remove(key);   // the newest comes last
            events.put(key, event.copy());
        }
    }
}
