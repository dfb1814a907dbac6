/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.io.ThreadConfiguration.Entry;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.yaml.snakeyaml.DumperOptions.FlowStyle;
import org.yaml.snakeyaml.DumperOptions.ScalarStyle;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.nodes.CollectionNode;
import org.yaml.snakeyaml.nodes.MappingNode;
import org.yaml.snakeyaml.nodes.NodeTuple;
import org.yaml.snakeyaml.nodes.ScalarNode;
import org.yaml.snakeyaml.nodes.SequenceNode;

/**
 * Writes what a task set says of threads into a {@link ThreadConfiguration}. Only values that differ change: other
 * entries, keys and comments stay as they were, byte for byte. Stateless.
 *
 * <ul>
 *   <li>priority: that of the task is the thread's, under SCHED_FIFO, or SCHED_RR where the file has it;</li>
 *   <li>core: core n of a set is n - 1 of Linux;</li>
 *   <li>best effort: no real-time policy; its affinity stays if its core is in it, since no bound depends on it.</li>
 * </ul>
 */
public final class ThreadConfigurationWriter {
    private static final String AFFINITY = "affinity";
    private static final String POLICY = "policy";
    private static final String PRIORITY = "priority";
    private static final String NICE = "nice";
    private static final String NONE = "0";

    /**
     * A configuration that agrees with a set.
     *
     * @param yaml    all of the file
     * @param remarks what the user must know of it, one line each
     * @param threads threads that have tasks of the set
     * @param changed of these, threads with other values than before
     */
    public record Filled(String yaml, List<String> remarks, int threads, int changed) {
    }

    /** What a thread shall be; cores null: as they are. */
    private record Wanted(String policy, int priority, List<Integer> cores) {
    }

    /** Code points of the text that are replaced. */
    private record Edit(int from, int to, String text) {
    }

    private ThreadConfigurationWriter() {
    }

    /**
     * Fills in what a set says.
     *
     * @param set           with cores and priorities
     * @param configuration that is changed
     * @return the new text
     * @throws InvalidFileException if no thread is that of a task, several may be, or tasks of one thread differ
     */
    public static Filled fill(final TaskSet set, final ThreadConfiguration configuration) throws InvalidFileException {
        final List<String> remarks = new ArrayList<>();
        final Map<Entry, List<Task>> tasks = new LinkedHashMap<>();
        for (final Task task : set.tasks()) {
            final Entry entry = configuration.threadOf(task.name());
            if (entry == null) {
                remarks.add("task \"" + task.name() + "\" is of no thread of " + configuration.file() + ", so "
                    + (task.bestEffort() ? "its core stands" : "its core and its priority " + task.priority()
                    + " stand")
                    + " only in the set; see to them where its program starts");
            } else {
                tasks.computeIfAbsent(entry, e -> new ArrayList<>()).add(task);
            }
        }
        if (tasks.isEmpty()) {
            throw new InvalidFileException(configuration.file(), 0, "no thread is that of a task of \"" + set.id()
                + "\", such as \"" + set.tasks().get(0).name() + "\"; let the programs open their tasks under the "
                + "names of their nodes or callback groups");
        }
        final Map<Entry, Wanted> wanted = new LinkedHashMap<>();
        for (final Map.Entry<Entry, List<Task>> one : tasks.entrySet()) {
            requireOne(configuration, one.getKey(), one.getValue());
            wanted.put(one.getKey(), wanted(one.getKey(), one.getValue().get(0), configuration, remarks));
        }
        remarks.addAll(configuration.uncounted(tasks.keySet(), lowest(set)));
        final List<Edit> edits = new ArrayList<>();
        final MappingNode root = (MappingNode) compose(configuration.content());
        int changed = 0;
        for (final Map.Entry<Entry, Wanted> one : wanted.entrySet()) {
            final int before = edits.size();
            final SequenceNode list = (SequenceNode) value(root, one.getKey().list()).getValueNode();
            if (!edit(one.getKey(), one.getValue(), (MappingNode) list.getValue().get(one.getKey().index()),
                configuration.content(), edits)) {
                throw unchangeable(configuration, one.getKey());
            }
            changed += edits.size() > before ? 1 : 0;
        }
        final String yaml = applied(edits, configuration.content());
        requireAgreement(configuration, yaml, wanted);
        return new Filled(yaml, remarks, wanted.size(), changed);
    }

    private static void requireOne(final ThreadConfiguration configuration, final Entry entry, final List<Task> tasks)
        throws InvalidFileException {
        final Task first = tasks.get(0);
        for (final Task task : tasks) {
            final boolean cpu = task.cpu() != first.cpu();
            if (cpu || task.priority() != first.priority()) {
                throw new InvalidFileException(configuration.file(), entry.line(), entry.shown() + " is the thread of "
                    + "tasks \"" + first.name() + "\" and \"" + task.name() + "\", which have " + (cpu ? "cpu "
                    + first.cpu() + " and " + task.cpu() : "priority " + first.priority() + " and "
                    + task.priority()) + "; give them one, or a callback group each");
            }
        }
    }

    private static Wanted wanted(final Entry entry, final Task task, final ThreadConfiguration configuration,
        final List<String> remarks) throws InvalidFileException {
        final String who = configuration.file() + ":" + entry.line() + ": " + entry.shown();
        final List<Integer> core = task.cpu() == 0 ? null : List.of(task.cpu() - 1);
        if (task.bestEffort()) {
            final boolean stays = core == null || entry.cores().isEmpty() || entry.cores().contains(core.get(0));
            if (entry.hasPriority() || entry.isReservation()) {
                remarks.add(who + " was " + entry.scheduling() + " and is " + ThreadConfiguration.OTHER + " now, since "
                    + "task \"" + task.name() + "\" is best effort");
                return new Wanted(ThreadConfiguration.OTHER, 0, stays ? null : core);
            }
            return new Wanted(entry.policy(), 0, stays ? null : core);
        }
        if (task.priority() == 0) {
            throw new InvalidFileException(configuration.file(), entry.line(), entry.shown()
                + " is the thread of task \""
                + task.name() + "\", which has no priority; write it, or let gpuseg analyze --assign dm --format "
                + "taskset do it");
        }
        if (core == null && entry.cores().size() != 1) {
            remarks.add(who + " has " + cores(entry.cores()) + ", since task \"" + task.name() + "\" has no cpu; write "
                + "it into the set, or let gpuseg analyze --partition wfd --format taskset do it");
        }
        if (entry.isReservation()) {
            remarks.add(who + " was SCHED_DEADLINE and is SCHED_FIFO " + task.priority()
                + " now; its runtime, deadline "
                + "and period have no effect any more");
        }
        return new Wanted(entry.policy().equals(ThreadConfiguration.ROUND_ROBIN) ? ThreadConfiguration.ROUND_ROBIN
            : ThreadConfiguration.FIFO, task.priority(), core);
    }

    private static String cores(final List<Integer> cores) {
        return cores.isEmpty() ? "no affinity" : "affinity " + cores;
    }

    /** Of each core, the lowest priority of its real-time tasks. */
    private static Map<Integer, Integer> lowest(final TaskSet set) {
        final Map<Integer, Integer> lowest = new TreeMap<>();
        set.tasks().stream().filter(task -> !task.bestEffort() && task.cpu() > 0)
            .forEach(task -> lowest.merge(task.cpu(), task.priority(), Math::min));
        return lowest;
    }

    // ---- the text ----

    /** NodeReader has read it before, with its own limits. */
    private static org.yaml.snakeyaml.nodes.Node compose(final String content) {
        final LoaderOptions limits = new LoaderOptions();
        limits.setCodePointLimit((int) ThreadConfiguration.MAX_BYTES);
        limits.setMaxAliasesForCollections(0);
        return new Yaml(limits).compose(new StringReader(content));
    }

    /** False: the entry is written in a way that is none of a block or of flow. */
    private static boolean edit(final Entry entry, final Wanted wanted, final MappingNode node, final String content,
        final List<Edit> edits) {
        boolean done = true;
        if (wanted.cores() != null && !wanted.cores().equals(entry.cores())) {
            done = set(node, AFFINITY, wanted.cores().toString(), content, edits);
        }
        if (!wanted.policy().equals(entry.policy())) {
            done &= set(node, POLICY, wanted.policy(), content, edits);
            if (wanted.priority() == 0) {   // older configurators read the nice value under priority
                done &= set(node, PRIORITY, NONE, content, edits) && set(node, NICE, NONE, content, edits);
            }
        }
        return done && (wanted.priority() == 0 || wanted.priority() == entry.priority()
            || set(node, PRIORITY, Integer.toString(wanted.priority()), content, edits));
    }

    private static InvalidFileException unchangeable(final ThreadConfiguration configuration, final Entry entry) {
        return new InvalidFileException(configuration.file(), entry.line(), entry.shown() + " is written in a way that "
            + "cannot be changed in place; write each of its keys in one line with its value");
    }

    private static NodeTuple value(final MappingNode node, final String key) {
        return node.getValue().stream().filter(tuple -> ((ScalarNode) tuple.getKeyNode()).getValue().equals(key))
            .findFirst().orElse(null);
    }

    private static boolean set(final MappingNode node, final String key, final String value, final String content,
        final List<Edit> edits) {
        final boolean quoted = node.getFlowStyle() == FlowStyle.FLOW
            && ((ScalarNode) node.getValue().get(0).getKeyNode()).getScalarStyle()
            == ScalarStyle.DOUBLE_QUOTED;   // JSON
        final String text = quoted && key.equals(POLICY) ? '"' + value + '"' : value;
        final NodeTuple given = value(node, key);
        if (given != null) {
            return replace(given, text, content, edits);
        }
        final int last = end(node.getValue().get(node.getValue().size() - 1));
        if (node.getFlowStyle() == FlowStyle.FLOW) {
            edits.add(new Edit(last, last, ", " + (quoted ? '"' + key + '"' : key) + ": " + text));
            return true;
        }
        final int line = content.indexOf('\n', content.offsetByCodePoints(0, last));
        final boolean crlf = line > 0 && content.charAt(line - 1) == '\r';
        final int at = line < 0 ? content.codePointCount(0, content.length())
            : content.codePointCount(0, crlf ? line - 1 : line);
        edits.add(new Edit(at, at, (crlf ? "\r\n" : "\n") + " ".repeat(node.getStartMark().getColumn()) + key + ": "
            + text));
        return true;
    }

    /** A list in lines of its own goes; what is in the line of the key takes its place, before a comment. */
    private static boolean replace(final NodeTuple given, final String text, final String content,
        final List<Edit> edits) {
        final org.yaml.snakeyaml.nodes.Node value = given.getValueNode();
        final int from = value.getStartMark().getIndex();
        final int to = end(given);
        if (from < to && value.getStartMark().getLine() == given.getKeyNode().getEndMark().getLine()) {
            edits.add(new Edit(from, to, text));
            return true;
        }
        if (from < to && !isBlock(value)) {
            return false;
        }
        final int key = content.offsetByCodePoints(0, given.getKeyNode().getEndMark().getIndex());
        final int colon = content.codePointCount(0, content.indexOf(':', key)) + 1;
        edits.add(new Edit(colon, colon, " " + text));
        if (from < to) {
            int gone = content.lastIndexOf('\n', content.offsetByCodePoints(0, from));
            gone = gone > 0 && content.charAt(gone - 1) == '\r' ? gone - 1 : gone;
            edits.add(new Edit(content.codePointCount(0, gone), to, ""));
        }
        return true;
    }

    private static boolean isBlock(final org.yaml.snakeyaml.nodes.Node node) {
        return node instanceof CollectionNode<?> list && list.getFlowStyle() == FlowStyle.BLOCK;
    }

    /** Where a value ends: of a list or mapping in lines of its own, its last value. */
    private static int end(final NodeTuple tuple) {
        return Math.max(tuple.getKeyNode().getEndMark().getIndex(), end(tuple.getValueNode()));
    }

    private static int end(final org.yaml.snakeyaml.nodes.Node node) {
        if (!isBlock(node)) {
            return node.getEndMark().getIndex();
        }
        if (node instanceof MappingNode mapping) {
            return end(mapping.getValue().get(mapping.getValue().size() - 1));
        }
        final SequenceNode list = (SequenceNode) node;
        return end(list.getValue().get(list.getValue().size() - 1));
    }

    private static String applied(final List<Edit> edits, final String content) {
        final List<Edit> sorted = new ArrayList<>(edits);
        sorted.sort(Comparator.comparingInt(Edit::from));   // stable: of two at one place, the first comes first
        final StringBuilder text = new StringBuilder(content);
        for (int i = sorted.size() - 1; i >= 0; i--) {
            final Edit edit = sorted.get(i);
            text.replace(content.offsetByCodePoints(0, edit.from()), content.offsetByCodePoints(0, edit.to()),
                edit.text());
        }
        return text.toString();
    }

    /** What we wrote must be read as it was meant. */
    private static void requireAgreement(final ThreadConfiguration before, final String yaml,
        final Map<Entry, Wanted> wanted) throws InvalidFileException {
        final List<Entry> after = ThreadConfiguration.of(yaml, before.file()).entries();
        for (int i = 0; i < after.size(); i++) {
            final Entry old = before.entries().get(i);
            final Wanted want = wanted.getOrDefault(old, new Wanted(old.policy(), old.priority(), null));
            final Entry now = after.get(i);
            if (after.size() != before.entries().size() || !now.id().equals(old.id())
                || !now.policy().equals(want.policy()) || now.priority() != want.priority()
                || !now.cores().equals(want.cores() == null ? old.cores() : want.cores())) {
                throw unchangeable(before, old);
            }
        }
    }
}
