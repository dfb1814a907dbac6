/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.core.TaskName;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * The threads of a ROS 2 system, as the thread configurator of the callback-isolated executor sets them: one for each
 * callback group, and others by name. Immutable and thread-safe.
 *
 * <p>What a key means was read in the sources and the specification of the configurator, of Autoware in 2026 (at
 * 1af4012 and, with {@code nice}, a3e5102), of tier4 (00367e8), and of Agnocast (4f81ac9). They differ: a nice value
 * stands under {@code priority} or under {@code nice}; Agnocast has {@code rt_throttling}, {@code domain_id}, and
 * {@code name} for {@code id} where a thread is none of ROS. All are read. A key of another policy has no effect there,
 * nor here.
 */
public final class ThreadConfiguration {
    /** Largest file, in bytes. */
    public static final long MAX_BYTES = 4L << 20;

    /** Below every real-time thread. */
    static final String OTHER = "SCHED_OTHER";
    /** A fixed priority. */
    static final String FIFO = "SCHED_FIFO";
    /** A fixed priority, with turns among equal ones. */
    static final String ROUND_ROBIN = "SCHED_RR";
    /** A reservation, above every fixed priority. */
    static final String DEADLINE = "SCHED_DEADLINE";
    /** Keys of the file. */
    static final String GROUPS = "callback_groups";
    /** Likewise. */
    static final String THREADS = "non_ros_threads";

    private static final List<String> POLICIES = List.of(OTHER, "SCHED_BATCH", "SCHED_IDLE", FIFO, ROUND_ROBIN,
        DEADLINE);
    private static final Set<String> ROOT_KEYS = Set.of(GROUPS, THREADS, "hardware_info", "rt_throttling");
    private static final Set<String> ENTRY_KEYS = Set.of("id", "affinity", "policy", "priority", "nice", "runtime",
        "deadline", "period", "domain_id");
    private static final Set<String> THREAD_KEYS = Set.of("id", "name", "affinity", "policy", "priority", "nice",
        "runtime", "deadline", "period");
    private static final Set<String> THROTTLING_KEYS = Set.of("runtime_us", "period_us");
    /** Services that a node has of itself, in its default group. */
    private static final Set<String> OWN_SERVICES = Set.of("describe_parameters", "get_parameter_types",
        "get_parameters", "list_parameters", "set_parameters", "set_parameters_atomically", "get_type_description",
        "get_logger_levels", "set_logger_levels");
    private static final Set<String> OWN_TOPICS = Set.of("Subscription(/parameter_events)", "Subscription(/clock)");
    private static final String WAITABLE = "@Waitable";
    private static final int NICE = 20;
    private static final long MAX_RESERVATION = 0xffff_ffffL;
    private static final int SHOWN_GROUPS = 3;

    /**
     * A thread.
     *
     * @param list     {@code callback_groups} or {@code non_ros_threads}
     * @param index    its place in that list, from 0
     * @param line     where it stands, from 1
     * @param id       of the callback group, without what older executors add for waitables; or name of the thread
     * @param domain   of ROS, as written; empty = the default
     * @param policy   one of the six of Linux, like {@code SCHED_FIFO}
     * @param priority 1..99 with SCHED_FIFO and SCHED_RR, else 0
     * @param cores    on which it may run, from 0 as Linux numbers them; ascending; empty = all
     */
    public record Entry(String list, int index, int line, String id, String domain, String policy, int priority,
        List<Integer> cores) {
        /** Whether it has a fixed priority. */
        public boolean hasPriority() {
            return priority > 0;
        }

        /** Whether the kernel reserves time for it, above every fixed priority. */
        public boolean isReservation() {
            return policy.equals(DEADLINE);
        }

        /** The policy with its priority, if it has one, like {@code SCHED_FIFO 70}. */
        public String scheduling() {
            return hasPriority() ? policy + " " + priority : policy;
        }

        /** What messages call it: its id in quotes, at most 63 bytes long. */
        public String shown() {
            return '"' + RosName.shortened(id) + '"';
        }

        /** Node with its namespace; the whole name of a thread that is none of ROS. */
        String node() {
            return list.equals(GROUPS) ? id.split("@", 2)[0] : id;
        }

        /** The callbacks, like {@code Timer(33333333)}; sorted, as newer executors have them. */
        private List<String> callbacks() {
            return list.equals(GROUPS) ? Arrays.stream(id.split("@")).skip(1).sorted().toList() : List.of();
        }

        /** Whether it is named by itself: whole, as written or with sorted callbacks. */
        private boolean isCalled(final String task) {
            final List<String> parts = new ArrayList<>(List.of(node()));
            parts.addAll(callbacks());
            return task.equals(id) || task.equals(RosName.shortened(id))
                || list.equals(GROUPS) && task.equals(RosName.shortened(String.join("@", parts)));
        }

        /** Whether it has only what every node has: parameter services, and what comes with them. */
        private boolean isOwnOfNode() {
            final String services = "Service(" + node() + "/";
            return callbacks().stream().allMatch(callback -> OWN_TOPICS.contains(callback)
                || callback.startsWith(services)
                && OWN_SERVICES.contains(callback.substring(services.length(), callback.length() - 1)));
        }

        private boolean isOfNode(final String task) {
            return list.equals(GROUPS) && !isOwnOfNode() && (task.equals(RosName.shortened(node()))
                || ("/" + task).equals(node()));
        }

        private boolean endsWith(final String task) {
            return list.equals(GROUPS) && !isOwnOfNode() && node().endsWith("/" + task);
        }
    }

    private final String file;
    private final String content;
    private final List<Entry> entries;

    private ThreadConfiguration(final String file, final String content, final List<Entry> entries) {
        this.file = file;
        this.content = content;
        this.entries = List.copyOf(entries);
    }

    /**
     * Reads a file.
     *
     * @param path in YAML, as the executor's prerun writes it or the configurator reads it
     * @return its threads
     * @throws InvalidFileException if the content is refused, with file, line, thing, value and remedy
     * @throws IOException          if the file cannot be read
     */
    public static ThreadConfiguration read(final Path path) throws IOException {
        return of(reader().load(path), path.toString());
    }

    /**
     * Reads a text.
     *
     * @param content YAML
     * @param file    what refusals call it
     * @return its threads
     * @throws InvalidFileException if the content is refused
     */
    public static ThreadConfiguration of(final String content, final String file) throws InvalidFileException {
        final Node root = reader().read(content, file).requireMapping(ROOT_KEYS, "{callback_groups: [...]}");
        if (root.get(GROUPS) == null && root.get(THREADS) == null) {
            throw root.refusal("callback_groups is missing; give the file that the executor's prerun wrote");
        }
        if (root.get("rt_throttling") != null) {
            root.get("rt_throttling").requireMapping(THROTTLING_KEYS);
        }
        final List<Entry> entries = new ArrayList<>();
        final Map<String, Entry> seen = new HashMap<>();
        for (final String list : List.of(GROUPS, THREADS)) {
            final Node given = root.get(list);
            if (isNothing(given)) {
                continue;
            }
            final List<Node> items = given.requireList("entry", "a list of threads");
            for (int i = 0; i < items.size(); i++) {
                final Entry entry = entry(items.get(i), list, i);
                final Entry earlier = seen.putIfAbsent(entry.list() + entry.domain() + " " + entry.id(), entry);
                if (earlier != null) {
                    throw items.get(i).refuse("stands in line " + earlier.line() + " already; remove one");
                }
                entries.add(entry);
            }
        }
        return new ThreadConfiguration(file, content, entries);
    }

    private static NodeReader reader() {
        return new NodeReader("thread configuration", MAX_BYTES, "give one file for a system");
    }

    private static Entry entry(final Node node, final String list, final int index) throws InvalidFileException {
        final boolean group = list.equals(GROUPS);
        node.requireMapping(group ? ENTRY_KEYS : THREAD_KEYS, "{id: ..., affinity: [2], policy: SCHED_FIFO, "
            + "priority: 70}");
        final Node idNode = !group && node.get("name") != null && node.get("id") == null ? node.get("name")
            : node.required("id");
        String id = idNode.text();
        if (id == null || idNode.kind() == Node.Kind.NULL || id.isBlank() || !id.codePoints()
            .allMatch(TaskName::isPlain)) {
            throw idNode.refuse("is " + idNode.show() + "; write the id that the executor's prerun wrote");
        }
        while (group && id.endsWith(WAITABLE)) {
            id = id.substring(0, id.length() - WAITABLE.length());
        }
        node.callIt((group ? "callback group \"" : "thread \"") + RosName.shortened(id) + '"');
        final String policy = node.required("policy").oneOf(POLICIES);
        int priority = 0;
        if (policy.equals(DEADLINE)) {
            for (final String key : List.of("runtime", "deadline", "period")) {
                node.required(key).wholeNumber(1, MAX_RESERVATION);
            }
        } else if (policy.equals(FIFO) || policy.equals(ROUND_ROBIN)) {
            priority = node.required("priority").integer(1, Task.MAX_PRIORITY);
        } else {
            (node.get("nice") != null ? node.get("nice") : node.get("priority") != null ? node.get("priority")
                : node.required("nice")).integer(-NICE, NICE - 1);
        }
        final TreeSet<Integer> cores = new TreeSet<>();
        final Node affinity = node.get("affinity");
        if (!isNothing(affinity)) {
            for (final Node core : affinity.requireList("core", "a list of cores, like [2]")) {
                cores.add(core.integer(0, Platform.MAX_CPUS - 1));
            }
        }
        final Node domain = node.get("domain_id");
        return new Entry(list, index, node.line(), id, domain == null ? "" : Long.toString(domain.wholeNumber(0,
            Integer.MAX_VALUE)), policy, priority, List.copyOf(cores));
    }

    /** Whether a key has no value: none, a tilde, or nothing after the colon. */
    private static boolean isNothing(final Node node) {
        return node == null || node.kind() == Node.Kind.NULL || "".equals(node.text());
    }

    /** What refusals call the file. */
    public String file() {
        return file;
    }

    /** The text of the file. */
    String content() {
        return content;
    }

    /** All threads, in the order of the file: callback groups first. */
    public List<Entry> entries() {
        return entries;
    }

    /**
     * The thread of a task. The task's name is the id of a callback group or the name of a thread; else that of a node,
     * with or without its namespace, which has one group beside that of its parameters; names of more than 63 bytes as
     * {@code gpuseg_ros2.hpp} shortens them.
     *
     * @param task its name
     * @return null if there is none
     * @throws InvalidFileException if several may be meant
     */
    public Entry threadOf(final String task) throws InvalidFileException {
        List<Entry> found = entries.stream().filter(entry -> entry.isCalled(task)).toList();
        if (found.isEmpty()) {
            found = entries.stream().filter(entry -> entry.isOfNode(task)).toList();
        }
        if (found.isEmpty()) {
            found = entries.stream().filter(entry -> entry.endsWith(task)).toList();
        }
        if (found.size() > 1) {
            final boolean same = found.stream().map(Entry::id).distinct().count() == 1;
            throw new InvalidFileException(file, found.get(0).line(), "task \"" + task + "\" may be of " + found.size()
                + " threads: " + found.stream().limit(SHOWN_GROUPS).map(Entry::shown).collect(Collectors.joining(", "))
                + (found.size() > SHOWN_GROUPS ? ", ..." : "") + (same ? "; give a file with one of them"
                : "; let the program open the task under one of these names"));
        }
        return found.isEmpty() ? null : found.get(0);
    }

    /**
     * Threads that may delay tasks of a set although no bound counts their time.
     *
     * @param counted  threads of the set's tasks
     * @param priority of each core with real-time tasks, numbered from 1 as in a task set, the lowest of them; 0 if one
     *                 has none
     * @return a line for each, with file, line, value and remedy
     */
    public List<String> uncounted(final Collection<Entry> counted, final Map<Integer, Integer> priority) {
        final List<String> lines = new ArrayList<>();
        for (final Entry entry : entries) {
            final List<Integer> cores = priority.keySet().stream().filter(core -> (entry.cores().isEmpty()
                || entry.cores().contains(core - 1)) && (entry.isReservation() || entry.hasPriority()
                && entry.priority() >= priority.get(core))).sorted().toList();
            if (!cores.isEmpty() && !counted.contains(entry)) {
                lines.add(file + ":" + entry.line() + ": " + entry.shown() + " is " + entry.scheduling()
                    + " and may run "
                    + "on cpu " + cores.stream().map(Object::toString).collect(Collectors.joining(", ")) + " of the "
                    + "set, but is no task of it, so no bound counts its time; keep it off by its affinity, or add a "
                    + "task for it");
            }
        }
        return lines;
    }
}
