/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.util.Collection;
import java.util.Locale;
import java.util.Set;

/**
 * YAML has several words for a truth value, in three spellings each, and programs that rewrite a file put one for
 * another. So where a key takes the word {@code off} or {@code on}, it takes all that mean the same.
 */
public final class YamlWords {
    private static final Set<String> OFF = Set.of("off", "no", "false");
    private static final Set<String> ON = Set.of("on", "yes", "true");

    private YamlWords() {
    }

    /**
     * The word that a text stands for.
     *
     * @param text  as written
     * @param known the words of the key
     * @return {@code off} or {@code on} if that is a word of the key and the text means it, else the text
     */
    public static String among(final String text, final Collection<String> known) {
        if (known.contains(text)) {
            return text;
        }
        final String lower = text.toLowerCase(Locale.ROOT);
        final boolean spelt = text.equals(lower) || text.equals(text.toUpperCase(Locale.ROOT))
            || text.equals(Character.toUpperCase(lower.charAt(0)) + lower.substring(1));
        if (spelt && OFF.contains(lower) && known.contains("off")) {
            return "off";
        }
        return spelt && ON.contains(lower) && known.contains("on") ? "on" : text;
    }
}
