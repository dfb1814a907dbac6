/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.file.Path;

/** Task sets that exceeded a bound once, in {@code src/test/resources/counterexamples}. */
public final class Counterexamples {
    private Counterexamples() {
    }

    /**
     * Reads one.
     *
     * @param name of the file, without its ending
     * @return the set
     */
    public static TaskSet read(final String name) {
        try {
            return new TaskSetReader().read(Path.of(Counterexamples.class.getResource("/counterexamples/" + name
                + ".yaml").toURI()));
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        } catch (final URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }
}
