/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.top;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.core.Priority;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jline.terminal.Attributes;
import org.jline.terminal.Size;
import org.jline.terminal.Terminal;
import org.jline.utils.AttributedString;
import org.jline.utils.Display;
import org.jline.utils.InfoCmp.Capability;
import org.jline.utils.NonBlockingReader;

/**
 * Asks the daemon, draws what changed, reads keys, until told to quit. The picture is replaced cell by cell, so nothing
 * flickers; the terminal is left as it was found.
 */
public final class TopLoop {
    private static final int ESCAPE = 27;
    private static final int CONTROL_C = 3;
    private static final int CONTROL_L = 12;
    private static final int DELETE = 127;
    private static final int BACKSPACE = 8;
    private static final long ESCAPE_WAIT_MS = 30;
    private static final long KEY_WAIT_MS = 100;
    private static final long NOTICE_NS = 4_000_000_000L;
    private static final int INPUT_MAX = 40;

    private enum Prompt {
        NONE, FILTER, PRIORITY
    }

    private final Terminal terminal;
    private final RuntimeDirectory directory;
    private final long delayNs;
    private TopRow.Sort sort;
    private boolean reversed;
    private String filter;
    private boolean paused;
    private Prompt prompt = Prompt.NONE;
    private String input = "";
    private String inputBefore = "";
    private String notice = "";
    private boolean noticeAlarm;
    private long noticeUntilNs;
    private volatile boolean resized = true;

    private JsonNode view;
    private String failure = "";
    private List<TopRow> rows = List.of();
    /** The selected task; it stays selected when the order changes. */
    private int selectedId;
    private int selected;
    private int firstShown;
    private int lastSetTask = -1;
    private int lastSetPriority;
    private long lastSetNs;

    public TopLoop(final Terminal terminal, final RuntimeDirectory directory, final long delayNs,
        final TopRow.Sort sort, final String filter) {
        this.terminal = terminal;
        this.directory = directory;
        this.delayNs = delayNs;
        this.sort = sort;
        this.filter = filter;
    }

    /** What the screen asks the daemon for. */
    public static ObjectNode request() {
        return AdminClient.command("live").put("since", -2);
    }

    public void run() throws IOException {
        final Attributes before = terminal.enterRawMode();
        terminal.handle(Terminal.Signal.WINCH, signal -> resized = true);
        terminal.puts(Capability.enter_ca_mode);
        terminal.puts(Capability.cursor_invisible);
        terminal.puts(Capability.keypad_xmit);
        try {
            final Display display = new Display(terminal, true);
            long nextNs = System.nanoTime();
            boolean go = true;
            while (go) {
                if (!paused && System.nanoTime() - nextNs >= 0) {
                    ask();
                    nextNs = System.nanoTime() + delayNs;
                }
                draw(display);
                final long waitMs = Math.max(1, Math.min(KEY_WAIT_MS, (nextNs - System.nanoTime()) / 1_000_000));
                final int key = terminal.reader().read(waitMs);
                go = key == NonBlockingReader.READ_EXPIRED || onKey(key, display);
            }
        } finally {
            terminal.puts(Capability.keypad_local);
            terminal.puts(Capability.cursor_visible);
            terminal.puts(Capability.exit_ca_mode);
            terminal.setAttributes(before);
            terminal.flush();
        }
    }

    private void ask() {
        try {
            view = AdminClient.ask(directory, request());
            failure = "";
        } catch (final IllegalStateException e) {
            failure = e.getMessage();   // shown; the next picture asks again
        }
    }

    private void draw(final Display display) {
        final Size size = terminal.getSize();
        if (resized) {
            resized = false;
            display.resize(Math.max(1, size.getRows()), Math.max(1, size.getColumns()));
            display.reset();
            terminal.puts(Capability.clear_screen);
        }
        display.update(lines(size.getRows(), size.getColumns()), -1);
    }

    /** Exactly as many lines as the terminal has. */
    List<AttributedString> lines(final int height, final int width) {
        final TopScreen screen = new TopScreen(width);
        final List<AttributedString> lines = new ArrayList<>();
        final List<AttributedString> foot = foot(screen);
        if (view != null) {
            rows = TopRow.of(view, filter, sort, reversed);
            follow();
            lines.addAll(screen.header(view));
            lines.add(screen.text(""));
            lines.add(screen.heading(sort, reversed));
            final int room = Math.max(1, height - lines.size() - foot.size());
            firstShown = Math.max(0, Math.min(Math.max(firstShown, selected - room + 1), selected));
            for (int i = firstShown; i < Math.min(rows.size(), firstShown + room); i++) {
                lines.add(screen.row(rows.get(i), i == selected));
            }
            if (rows.isEmpty()) {
                lines.add(screen.text(filter.isEmpty() ? "  no task is open" : "  no task matches \"" + filter + "\""));
            }
        }
        while (lines.size() < height - foot.size()) {
            lines.add(screen.text(""));
        }
        while (lines.size() > Math.max(0, height - foot.size())) {
            lines.remove(lines.size() - 1);
        }
        lines.addAll(foot.subList(0, Math.min(foot.size(), height)));
        return lines;
    }

    /** Keeps the selection on its task. */
    private void follow() {
        int at = -1;
        for (int i = 0; i < rows.size(); i++) {
            if (rows.get(i).id() == selectedId) {
                at = i;
            }
        }
        selected = at >= 0 ? at : Math.max(0, Math.min(selected, rows.size() - 1));
        selectedId = rows.isEmpty() ? 0 : rows.get(selected).id();
    }

    private List<AttributedString> foot(final TopScreen screen) {
        if (prompt == Prompt.FILTER) {
            return screen.bars("filter: " + input + "_ (Enter keeps it, Esc drops it)", false);
        }
        if (prompt == Prompt.PRIORITY) {
            return screen.bars("priority of " + selectedName() + ", 1..99, 99 highest, 0 = best effort: " + input
                + "_ (Enter sets it, Esc leaves it)", false);
        }
        if (!failure.isEmpty()) {
            return screen.bars(failure, true);
        }
        if (!notice.isEmpty() && System.nanoTime() - noticeUntilNs < 0) {
            return screen.bars(notice, noticeAlarm);
        }
        final String keys = screen.isRoomy() ? " \u2191\u2193 select  s sort: %s  r reverse  / filter%s  p priority  "
            + "+ - raise, lower  space %s  q quit" : " s sort: %s  / filter%s  p priority  space %s  q quit";
        return List.of(screen.bar(String.format(Locale.ROOT, keys, sort.label(), filter.isEmpty() ? "" : ": " + filter,
            paused ? "RESUME (paused)" : "pause"), false));
    }

    private String selectedName() {
        return rows.isEmpty() ? "" : "\"" + rows.get(selected).name() + "\"";
    }

    private boolean onKey(final int key, final Display display) throws IOException {
        if (key < 0 || key == CONTROL_C) {
            return false;
        }
        if (prompt != Prompt.NONE) {
            edit(key);
            return true;
        }
        switch (key) {
            case 'q', 'Q' -> {
                return false;
            }
            case ESCAPE -> onEscape();
            case 'k' -> select(-1);
            case 'j' -> select(1);
            case 's', '>' -> sort = sort.next(1);
            case 'S', '<' -> sort = sort.next(-1);
            case 'r' -> reversed = !reversed;
            case ' ' -> paused = !paused;
            case '/' -> {
                prompt = Prompt.FILTER;
                inputBefore = filter;
                input = filter;
            }
            case 'p' -> {
                prompt = rows.isEmpty() ? Prompt.NONE : Prompt.PRIORITY;
                input = "";
            }
            case '+' -> step(1);
            case '-' -> step(-1);
            case CONTROL_L -> resized = true;
            default -> {
                // no key of ours
            }
        }
        return true;
    }

    /** Arrows and paging come as ESC [ x or ESC O x; a bare escape drops the filter. */
    private void onEscape() throws IOException {
        final int second = terminal.reader().read(ESCAPE_WAIT_MS);
        if (second != '[' && second != 'O') {
            filter = "";
            return;
        }
        final int third = terminal.reader().read(ESCAPE_WAIT_MS);
        if (third == 'A') {
            select(-1);
        } else if (third == 'B') {
            select(1);
        } else if (third == '5' || third == '6') {
            terminal.reader().read(ESCAPE_WAIT_MS);   // the tilde
            select(third == '5' ? -10 : 10);
        }
    }

    private void select(final int step) {
        if (!rows.isEmpty()) {
            selected = Math.max(0, Math.min(rows.size() - 1, selected + step));
            selectedId = rows.get(selected).id();
        }
    }

    private void edit(final int key) {
        if (key == ESCAPE) {
            filter = prompt == Prompt.FILTER ? inputBefore : filter;
            prompt = Prompt.NONE;
        } else if (key == '\r' || key == '\n') {
            if (prompt == Prompt.PRIORITY) {
                setPriority(input);
            }
            prompt = Prompt.NONE;
        } else if (key == DELETE || key == BACKSPACE) {
            input = input.isEmpty() ? "" : input.substring(0, input.length() - 1);
        } else if (input.length() < INPUT_MAX && (prompt == Prompt.PRIORITY ? key >= '0' && key <= '9' : key >= ' ')) {
            input += (char) key;
        }
        if (prompt == Prompt.FILTER) {
            filter = input;
        }
    }

    private void step(final int by) {
        if (!rows.isEmpty()) {
            final TopRow row = rows.get(selected);
            // what is shown follows the journal and may lag behind what the daemon has just accepted
            final boolean justSet = row.id() == lastSetTask && System.nanoTime() - lastSetNs < NOTICE_NS;
            setPriority(Integer.toString((justSet ? lastSetPriority : row.priority()) + by));
        }
    }

    /** The daemon decides whether this user may; its refusal is shown. */
    private void setPriority(final String text) {
        final boolean number = text.matches("[0-9]{1,2}");
        if (!number || !Priority.isValid(Integer.parseInt(text)) || rows.isEmpty()) {
            say("priority " + (text.isEmpty() ? "\"\"" : text) + ": use 1..99, 99 highest, or 0 for best effort", true);
            return;
        }
        try {
            final JsonNode answer = AdminClient.ask(directory, AdminClient.command("set")
                .put("task", Integer.toString(rows.get(selected).id())).put("priority", Integer.parseInt(text))
                .put("gpu_priority", 0));
            say(answer.path("changed").path(0).asText(), false);
            lastSetTask = rows.get(selected).id();
            lastSetPriority = Integer.parseInt(text);
            lastSetNs = System.nanoTime();
        } catch (final IllegalStateException e) {
            say(e.getMessage(), true);
        }
        ask();
    }

    private void say(final String text, final boolean alarm) {
        notice = text;
        noticeAlarm = alarm;
        noticeUntilNs = System.nanoTime() + NOTICE_NS;
    }
}
