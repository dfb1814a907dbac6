/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.Priority;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which priorities users may give to their tasks. A directory holds files {@code *.conf}, read in the order of their
 * names, with lines in the form of limits.conf(5):
 * <pre>
 * # who       limit       highest
 * *           priority    0
 * &#64;robot      priority    80
 * &#64;robot      unbudgeted  20
 * alice       priority    99
 * </pre>
 * {@code priority} bounds every task, {@code unbudgeted} those that declare no budget and could keep the GPU for ever.
 * Who: a user or, with {@code @}, a group, by name or number, or {@code *} for all. A line about the user counts before
 * those about groups, of which the highest counts, and these before {@code *}; the later of two lines about the same
 * counts. Without a line the limit is 99. Root and the daemon's own user have none. Immutable.
 */
public final class PriorityLimits {
    /** No limits. */
    public static final PriorityLimits NONE = new PriorityLimits(Map.of());

    /** What is limited. */
    public enum Limit {
        /** The priority of any task. */
        PRIORITY("priority"),
        /** That of a task without a budget. */
        UNBUDGETED("unbudgeted");

        private final String word;

        Limit(final String word) {
            this.word = word;
        }
    }

    private static final String EVERYBODY = "*";
    private static final String GROUP = "@";
    private static final String FORM = "; write e.g. `@robot priority 80`";
    private static final int WORDS = 3;

    /** By limit and who, users and groups by number. */
    private final Map<String, Integer> highest;

    private PriorityLimits(final Map<String, Integer> highest) {
        this.highest = Map.copyOf(highest);
    }

    /**
     * Reads a directory.
     *
     * @param directory with files *.conf; others are ignored
     * @return the limits
     * @throws IllegalArgumentException if a file cannot be read or a line is refused, naming both
     */
    public static PriorityLimits read(final Path directory) {
        final List<Path> files = new ArrayList<>();
        final Map<String, Integer> highest = new HashMap<>();
        try (DirectoryStream<Path> list = Files.newDirectoryStream(directory, "*.conf")) {
            list.forEach(files::add);
            Collections.sort(files);
            for (final Path file : files) {
                int number = 0;
                for (final String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
                    number++;
                    final String text = line.replaceFirst("#.*", "").strip();
                    if (!text.isEmpty()) {
                        add(file + ":" + number + ": ", text.split("\\s+"), highest);
                    }
                }
            }
        } catch (final IOException e) {
            throw new IllegalArgumentException("limits in " + directory + " cannot be read: " + e, e);
        }
        return new PriorityLimits(highest);
    }

    private static void add(final String where, final String[] words, final Map<String, Integer> highest)
        throws IOException {
        if (words.length != WORDS) {
            throw new IllegalArgumentException(where + "has " + words.length + " words instead of " + WORDS + FORM);
        }
        for (final Limit limit : Limit.values()) {
            if (limit.word.equals(words[1])) {
                if (!words[2].matches("[0-9]{1,2}")) {
                    throw new IllegalArgumentException(where + "highest priority is " + words[2] + "; use 0.."
                        + Priority.MAX);
                }
                highest.put(key(limit, number(where, words[0])), Integer.parseInt(words[2]));
                return;
            }
        }
        throw new IllegalArgumentException(where + "limit is " + words[1] + "; use priority or unbudgeted");
    }

    /** Users and groups by their numbers. */
    private static String number(final String where, final String who) throws IOException {
        final boolean group = who.startsWith(GROUP);
        final String name = group ? who.substring(GROUP.length()) : who;
        if (who.equals(EVERYBODY) || name.matches("[0-9]{1,10}")) {
            return who;
        }
        for (final String line : Files.readAllLines(Path.of(group ? "/etc/group" : "/etc/passwd"),
            StandardCharsets.ISO_8859_1)) {
            final String[] fields = line.split(":", -1);
            if (fields.length > 2 && fields[0].equals(name)) {
                return group ? GROUP + fields[2] : fields[2];
            }
        }
        throw new IllegalArgumentException(where + (group ? "group " : "user ") + name + " is not in "
            + (group ? "/etc/group" : "/etc/passwd") + "; use its number");
    }

    private static String key(final Limit limit, final String who) {
        return limit.word + " " + who;
    }

    /** Whether there are any. */
    boolean isEmpty() {
        return highest.isEmpty();
    }

    /**
     * The highest priority that a user may use.
     *
     * @param limit  for which tasks
     * @param uid    the user
     * @param groups all groups of the process that asks
     * @return 0..99
     */
    int highest(final Limit limit, final int uid, final List<Integer> groups) {
        final Integer user = highest.get(key(limit, Integer.toUnsignedString(uid)));
        if (user != null) {
            return user;
        }
        int best = -1;
        for (final int gid : groups) {
            best = Math.max(best, highest.getOrDefault(key(limit, GROUP + Integer.toUnsignedString(gid)), -1));
        }
        return best >= 0 ? best : highest.getOrDefault(key(limit, EVERYBODY), Priority.MAX);
    }

    /**
     * Judges a task.
     *
     * @param priority the higher one of its priorities
     * @param budgetNs its budget, 0 = none
     * @param uid      its user
     * @param groups   all groups of its process
     * @return null if it is allowed, else value and remedy
     */
    String refuse(final int priority, final long budgetNs, final int uid, final List<Integer> groups) {
        final int any = highest(Limit.PRIORITY, uid, groups);
        if (priority > any) {
            return "priority is " + priority + ", user " + Integer.toUnsignedString(uid) + " may use " + any
                + " at most; use a lower one, or have the administrator raise the limit";
        }
        final int unbudgeted = highest(Limit.UNBUDGETED, uid, groups);
        if (budgetNs == 0 && priority > unbudgeted) {
            return "priority is " + priority + " without a budget, user " + Integer.toUnsignedString(uid) + " may use "
                + unbudgeted + " at most; declare a budget";
        }
        return null;
    }
}
