/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Which branches of the driver were read in source, and what they say about the controls of this mechanism. */
final class DriverBranches {
    /**
     * Branches that say the same.
     *
     * @param first number of the first branch, such as 580
     * @param last number of the last one
     * @param disableFlags with which FIFO_DISABLE_CHANNELS is registered
     * @param timesliceFlags with which SET_TIMESLICE is registered
     * @param disableBytes size of the parameters of FIFO_DISABLE_CHANNELS
     * @param privileged whether one of the two is for root alone
     */
    record Range(int first, int last, int disableFlags, int timesliceFlags, int disableBytes, boolean privileged) {
    }

    private static final String TABLE = "branches.csv";
    private static final int COLUMNS = 6;
    private static final Pattern VERSION = Pattern.compile("(?<![\\w.])(\\d{3})\\.\\d+(\\.\\d+)?(?![\\w.])");

    private DriverBranches() {
    }

    static List<Range> read() {
        try (InputStream in = DriverBranches.class.getResourceAsStream(TABLE);
            BufferedReader reader = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
            return reader.lines().filter(line -> !line.startsWith("#")).skip(1).map(DriverBranches::parse).toList();
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Range parse(final String line) {
        final String[] words = line.split(",");
        if (words.length != COLUMNS) {
            throw new IllegalStateException(TABLE + ": \"" + line + "\" has " + words.length + " columns, not "
                + COLUMNS);
        }
        int column = 0;
        return new Range(Integer.decode(words[column++]), Integer.decode(words[column++]),
            Integer.decode(words[column++]), Integer.decode(words[column++]), Integer.decode(words[column++]),
            "yes".equals(words[column]));
    }

    /** The branch in the first line of the driver's version, such as 580. */
    static OptionalInt branchOf(final String line) {
        final Matcher version = VERSION.matcher(line);
        return version.find() ? OptionalInt.of(Integer.parseInt(version.group(1))) : OptionalInt.empty();
    }

    static int oldest() {
        return read().stream().mapToInt(Range::first).min().orElseThrow();
    }

    /** Whether its branch is known, and is older than all that were read. */
    static boolean isOlderThanAll(final String line) {
        final OptionalInt branch = branchOf(line);
        return branch.isPresent() && branch.getAsInt() < oldest();
    }

    /** What to add to a version; empty where its branch was read. */
    static String remark(final String line) {
        final OptionalInt branch = branchOf(line);
        return branch.isEmpty() || read().stream().anyMatch(range -> range.first() <= branch.getAsInt()
            && branch.getAsInt() <= range.last()) ? "" : "; branch " + branch.getAsInt()
                + " was not read in source: `gpuseg selftest` proves what holds";
    }
}
