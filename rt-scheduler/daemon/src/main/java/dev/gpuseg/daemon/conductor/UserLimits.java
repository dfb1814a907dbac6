/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.core.Priority;
import dev.gpuseg.ipc.platform.BoundedFile;
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
 * What users may ask for. A directory holds files {@code *.conf}, read in the order of their names, with lines in the
 * form of limits.conf(5):
 * <pre>
 * # who       limit        value
 * *           priority     0
 * &#64;robot      priority     80
 * &#64;robot      budget       20ms
 * &#64;robot      utilization  50%
 * alice       priority     unlimited
 * </pre>
 * {@link Limit} lists the limits. Who: a user or, with {@code @}, a group, by name or number, or {@code *} for all. A
 * line about the user counts before those about groups, of which the most generous counts, and these before {@code *};
 * the later of two lines about the same counts. The lines of {@link #BUILT_IN} come before those of all files.
 * Immutable.
 */
public final class UserLimits {
    /** Members of this group may use every priority, and need no budget. */
    public static final String REAL_TIME_GROUP = "gpuseg-rt";
    /** Where the files of an installed daemon are. */
    public static final Path DIRECTORY = Path.of("/etc/gpuseg/limits.d");
    /** Files of a directory that are read. */
    private static final String FILES = "*.conf";
    /** The one that messages name where there is none. */
    private static final String FILE = "site.conf";
    /** What counts where no file says otherwise. */
    static final List<String> BUILT_IN = List.of(
        "* priority 49",
        "* budget 200ms",
        "* share 50%",
        "* records 100000",
        "* hint_lead 10s",
        "@" + REAL_TIME_GROUP + " priority unlimited",
        "@" + REAL_TIME_GROUP + " budget unlimited",
        "@" + REAL_TIME_GROUP + " share unlimited",
        "@" + REAL_TIME_GROUP + " records unlimited",
        "@" + REAL_TIME_GROUP + " hint_lead unlimited");
    /** No limits, not even those that are built in. */
    public static final UserLimits NONE = new UserLimits(Map.of(), DIRECTORY);

    private static final String EVERYBODY = "*";
    private static final String GROUP = "@";
    private static final String FORM = "; write e.g. `@robot priority 80`";
    private static final int WORDS = 3;
    private static final Path GROUPS = Path.of("/etc/group");
    private static final Path USERS = Path.of("/etc/passwd");

    /**
     * A limit of a user.
     *
     * @param limit  which
     * @param value  in its unit, {@link Long#MAX_VALUE} if unlimited
     * @param line   FILE:LINE that says so; null if it is built in
     * @param file   where a line could be written
     */
    record Bound(Limit limit, long value, String line, Path file) {
        boolean isUnlimited() {
            return value == Long.MAX_VALUE;
        }

        /**
         * For a message: limit, user, value, and which line to change or to write.
         *
         * @param uid    the user
         * @param wanted the least value that would do
         */
        String describe(final int uid, final long wanted) {
            final String user = Integer.toUnsignedString(uid);
            return "limit " + limit.word() + " of user " + user + " is " + limit.show(value) + " ("
                + (line != null ? "change " + line : "write `" + user + " " + limit.word() + " "
                + (wanted <= limit.max() ? limit.show(wanted) : Limit.UNLIMITED) + "` into " + file
                + ", restart the daemon") + ")";
        }
    }

    /** By limit and who, users and groups by number. */
    private final Map<String, Bound> bounds;
    private final Path directory;

    private UserLimits(final Map<String, Bound> bounds, final Path directory) {
        this.bounds = Map.copyOf(bounds);
        this.directory = directory;
    }

    /**
     * Reads a directory; what it does not say is as built in.
     *
     * @param directory with files *.conf; others are ignored
     * @return the limits
     * @throws IllegalArgumentException if a file cannot be read or a line is refused, naming both
     */
    public static UserLimits read(final Path directory) {
        final List<Path> files = new ArrayList<>();
        final Map<String, Bound> bounds = new HashMap<>();
        try {
            addBuiltIn(directory, bounds);
            try (DirectoryStream<Path> list = Files.newDirectoryStream(directory, FILES)) {
                list.forEach(files::add);
            }
            Collections.sort(files);
            for (final Path file : files) {
                int number = 0;
                for (final String line : BoundedFile.lines(file, StandardCharsets.UTF_8)) {
                    number++;
                    final String text = line.replaceFirst("#.*", "").strip();
                    if (!text.isEmpty()) {
                        add(file + ":" + number, text, file + ":" + number, directory, bounds);
                    }
                }
            }
        } catch (final IOException e) {
            throw new IllegalArgumentException("limits in " + directory + " cannot be read: "
                + ResultFile.reason(e), e);
        }
        return new UserLimits(bounds, directory);
    }

    /** The limits that are built in: those of a directory without files. */
    public static UserLimits builtIn() {
        final Map<String, Bound> bounds = new HashMap<>();
        try {
            addBuiltIn(DIRECTORY, bounds);
        } catch (final IOException e) {
            throw new IllegalArgumentException(GROUPS + " cannot be read: " + ResultFile.reason(e), e);
        }
        return new UserLimits(bounds, DIRECTORY);
    }

    private static void addBuiltIn(final Path directory, final Map<String, Bound> bounds) throws IOException {
        for (final String line : BUILT_IN) {
            final String who = line.substring(0, line.indexOf(' '));
            if (!who.startsWith(GROUP) || numberIn(GROUPS, who.substring(GROUP.length())) != null) {
                add("built in", line, null, directory, bounds);
            }
        }
    }

    private static void add(final String where, final String line, final String origin, final Path directory,
        final Map<String, Bound> bounds) throws IOException {
        final String[] words = line.split("\\s+");
        if (words.length != WORDS) {
            throw new IllegalArgumentException(where + ": has " + words.length + " words instead of " + WORDS + FORM);
        }
        final List<String> known = new ArrayList<>();
        for (final Limit limit : Limit.values()) {
            known.add(limit.word());
            if (limit.word().equals(words[1])) {
                final long value;
                try {
                    value = limit.parse(words[2]);
                } catch (final IllegalArgumentException e) {
                    throw new IllegalArgumentException(where + ": " + limit.word() + " " + e.getMessage(), e);
                }
                bounds.put(key(limit, number(where, words[0])),
                    new Bound(limit, value, origin, directory.resolve(FILE)));
                return;
            }
        }
        throw new IllegalArgumentException(where + ": limit is " + words[1] + "; use " + String.join(", ", known));
    }

    /** Users and groups by their numbers. */
    private static String number(final String where, final String who) throws IOException {
        final boolean group = who.startsWith(GROUP);
        final String name = group ? who.substring(GROUP.length()) : who;
        if (who.equals(EVERYBODY) || name.matches("[0-9]{1,10}")) {
            return who;
        }
        final Path file = group ? GROUPS : USERS;
        final String number = numberIn(file, name);
        if (number == null) {
            throw new IllegalArgumentException(where + ": " + (group ? "group " : "user ") + name + " is not in "
                + file + "; use its number");
        }
        return group ? GROUP + number : number;
    }

    /** Null if the file does not name it, or does not exist: a container of one program often has neither file. */
    private static String numberIn(final Path file, final String name) throws IOException {
        if (!Files.exists(file)) {
            return null;
        }
        for (final String line : BoundedFile.lines(file, StandardCharsets.ISO_8859_1)) {
            final String[] fields = line.split(":", -1);
            if (fields.length > 2 && fields[0].equals(name)) {
                return fields[2];
            }
        }
        return null;
    }

    private static String key(final Limit limit, final String who) {
        return limit.word() + " " + who;
    }

    /**
     * The same, and a user has what members of {@link #REAL_TIME_GROUP} have, unless a line is about that user. Lines
     * about groups and about all do not count: as for every user about whom there are lines.
     *
     * @param uid the user
     * @return a copy; {@link #NONE} stays without limits
     */
    public UserLimits withRealTimeUser(final int uid) {
        if (isEmpty()) {
            return this;
        }
        final Map<String, Bound> more = new HashMap<>(bounds);
        for (final Limit limit : Limit.values()) {
            if (BUILT_IN.contains(GROUP + REAL_TIME_GROUP + " " + limit.word() + " " + Limit.UNLIMITED)) {
                more.putIfAbsent(key(limit, Integer.toUnsignedString(uid)),
                    new Bound(limit, Long.MAX_VALUE, null, directory.resolve(FILE)));
            }
        }
        return new UserLimits(more, directory);
    }

    /**
     * For a message: the highest priority of a user without groups, and where to change it.
     *
     * @param uid the user
     */
    public String describePriority(final int uid) {
        return "priorities up to " + Math.min(Priority.MAX, of(Limit.PRIORITY, uid, List.of()).value()) + " (a line `"
            + Integer.toUnsignedString(uid) + " priority N` in " + directory.resolve(FILES) + " changes that)";
    }

    /** Whether there are any. */
    boolean isEmpty() {
        return bounds.isEmpty();
    }

    /**
     * What a user may use.
     *
     * @param limit   which
     * @param uid     the user
     * @param groups  all groups of the process that asks
     * @param without its value where no line speaks of it
     * @return the bound
     */
    Bound of(final Limit limit, final int uid, final List<Integer> groups, final long without) {
        final Bound user = bounds.get(key(limit, Integer.toUnsignedString(uid)));
        if (user != null) {
            return user;
        }
        Bound best = null;
        for (final int gid : groups) {
            final Bound group = bounds.get(key(limit, GROUP + Integer.toUnsignedString(gid)));
            best = best == null || group != null && group.value > best.value ? group : best;
        }
        if (best == null) {
            best = bounds.get(key(limit, EVERYBODY));
        }
        return best != null ? best : new Bound(limit, without, null, directory.resolve(FILE));
    }

    /** As above, without a limit where no line speaks of it. */
    Bound of(final Limit limit, final int uid, final List<Integer> groups) {
        return of(limit, uid, groups, Long.MAX_VALUE);
    }

    /** The most that any line gives to anybody, or what everybody has without one. */
    long most(final Limit limit, final long without) {
        long most = without;
        for (final Bound bound : bounds.values()) {
            most = bound.limit == limit && bound.value > most ? bound.value : most;
        }
        return most;
    }
}
