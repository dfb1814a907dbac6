/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;

/**
 * The rules that hold now. If they come from a file, the file is read again when it was replaced or changed; a file
 * that is refused or gone changes nothing, and {@link #problem()} says why. One thread refreshes, any thread reads.
 */
public final class LiveRules {
    /** No rules, for ever. */
    public static final LiveRules NONE = fixed(GroupRules.NONE);

    private final Path file;
    private volatile GroupRules rules;
    private volatile String problem = "";
    private volatile int generation;
    private List<Object> stamp;

    private LiveRules(final Path file, final GroupRules rules, final List<Object> stamp) {
        this.file = file;
        this.rules = rules;
        this.stamp = stamp;
    }

    /** Rules that never change. */
    public static LiveRules fixed(final GroupRules rules) {
        return new LiveRules(null, rules, List.of());
    }

    /**
     * The rules of a file.
     *
     * @param file as {@link GroupRules#read} takes it
     * @return new
     * @throws IllegalArgumentException if it is refused, with one line of why
     */
    public static LiveRules of(final Path file) {
        final List<Object> stamp = stampOf(file);
        return new LiveRules(file, GroupRules.read(file), stamp);
    }

    /** Of a file that changes while it is looked at, the later look sees another stamp; empty if it is not there. */
    private static List<Object> stampOf(final Path file) {
        try {
            final BasicFileAttributes now = Files.readAttributes(file, BasicFileAttributes.class);
            return List.of(now.lastModifiedTime(), now.size(), String.valueOf(now.fileKey()));
        } catch (final IOException e) {
            return List.of();
        }
    }

    /** Reads the file if it is another one than at the last call; true if other rules hold now. */
    public boolean refresh() {
        final List<Object> seen = file == null ? stamp : stampOf(file);
        if (seen.equals(stamp)) {
            return false;
        }
        stamp = seen;
        try {
            rules = GroupRules.read(file);
            problem = "";
            generation++;
            return true;
        } catch (final IllegalArgumentException e) {
            problem = e.getMessage() + "; the rules before it still hold";
            return false;
        }
    }

    /** The rules: those that were read last without a refusal. */
    public GroupRules now() {
        return rules;
    }

    /** Why the file as it is now does not hold: one line, empty if it holds. */
    public String problem() {
        return problem;
    }

    /** How often the rules have changed. */
    public int generation() {
        return generation;
    }

    /** Where the rules are: the file, or null if they never change. */
    public Path file() {
        return file;
    }
}
