/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * How the multiprocessors of a GPU are divided among the clients of one MPS server. A limit of MPS is a number of
 * multiprocessors, not a place: the reserve is free as long as the limits of all that runs leave it together.
 *
 * @param reservePercent what best effort and long real-time work leave free, 1..90 percent
 * @param places         what each best-effort program may use, percent with at most two decimals; 1..64 of them, which
 *                       leave the reserve free together
 */
public record Space(int reservePercent, List<BigDecimal> places) {
    /** The largest reserve, percent. */
    public static final int RESERVE_MAX = 90;
    /** The reserve of a daemon that is told none, percent. */
    public static final int RESERVE_DEFAULT = 12;
    /**
     * The places of a daemon that is told none: 42, 42 and 32 of 132 multiprocessors. Equal parts would be 38, with
     * which cuBLAS 13.1 computes wrong products on an H200, as with most numbers (docs/space.md).
     */
    public static final String PLACES_DEFAULT = "31.82%,31.82%,24.25%";
    /** The most places. */
    public static final int PLACES_MAX = 64;
    private static final int WHOLE = 100;
    private static final int DECIMALS = 2;
    private static final Pattern PERCENT = Pattern.compile("([0-9]{1,2}(?:\\.[0-9]{1,2})?) ?%");

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of its range, or the places take the reserve
     */
    public Space {
        places = List.copyOf(places);
        if (reservePercent < 1 || reservePercent > RESERVE_MAX) {
            throw new IllegalArgumentException("space-reserve is " + reservePercent + "%; use 1%.." + RESERVE_MAX
                + "%");
        }
        final BigDecimal all = places.stream().reduce(BigDecimal.ZERO, BigDecimal::add);
        if (places.isEmpty() || places.size() > PLACES_MAX) {
            throw new IllegalArgumentException("space-places names " + places.size() + " places; use 1.." + PLACES_MAX);
        }
        if (places.stream().anyMatch(place -> place.compareTo(BigDecimal.ONE) < 0)) {
            throw new IllegalArgumentException("space-places is " + text(places, "%,") + "%; give each 1% at least");
        }
        if (all.compareTo(BigDecimal.valueOf(WHOLE - reservePercent)) > 0) {
            throw new IllegalArgumentException("space-places is " + text(places, "%,") + "%, together " + all
                + "%, and a space-reserve of " + reservePercent + "% leaves " + (WHOLE - reservePercent)
                + "%; give less (docs/space.md: not every limit computes right)");
        }
    }

    /**
     * As the settings have it.
     *
     * @param reservePercent percent
     * @param places         percentages with a comma between them
     * @throws IllegalArgumentException as the constructor, and if a word is no percentage
     */
    public static Space of(final int reservePercent, final String places) {
        return new Space(reservePercent, Stream.of(places.split(",")).map(String::strip).map(word -> {
            final var matched = PERCENT.matcher(word);
            if (!matched.matches()) {
                throw new IllegalArgumentException("space-places is \"" + places + "\", and \"" + word + "\" is no "
                    + "percentage below 100 with at most two decimals; give one for each place, like "
                    + PLACES_DEFAULT);
            }
            return new BigDecimal(matched.group(1));
        }).toList());
    }

    /** The rest in equal parts, rounded down. */
    public static Space equal(final int reservePercent, final int places) {
        return new Space(reservePercent, Collections.nCopies(places, BigDecimal.valueOf(WHOLE - reservePercent)
            .divide(BigDecimal.valueOf(places), DECIMALS, RoundingMode.DOWN)));
    }

    /** What a real-time program without a reserve may use, percent. */
    public int longPercent() {
        return WHOLE - reservePercent;
    }

    /** What each place may use, percent, with a space between them. */
    public String placesText() {
        return text(places, " ");
    }

    private static String text(final List<BigDecimal> places, final String between) {
        return places.stream().map(BigDecimal::toPlainString).collect(Collectors.joining(between));
    }
}
