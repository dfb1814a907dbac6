/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.engine;

import dev.gpuseg.analysis.sweep.Progress;
import dev.gpuseg.analysis.sweep.SetCounter;
import dev.gpuseg.analysis.sweep.SetWork;
import dev.gpuseg.analysis.sweep.Tally;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.SparkException;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import scala.Function2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Counts on Spark. The sets are divided into as many parts as the engine says; a part whose executor is lost is counted
 * again. Tallies are merged in the order of the sets.
 */
public final class SparkCounter implements SetCounter {
    /** Sets in each part that make starting it worth its cost. */
    private static final int SETS_PER_PART = 250;

    private final Engine engine;

    /** Counts with an engine that stays open. */
    public SparkCounter(final Engine engine) {
        this.engine = engine;
    }

    /**
     * A part.
     *
     * @param from first set
     * @param to   one after the last set
     */
    private record Part(long from, long to) implements Serializable {
    }

    /** What an executor does with its part. */
    private static final class Count extends AbstractFunction2<TaskContext, Iterator<Part>, Tally>
        implements Serializable {
        private static final long serialVersionUID = 1;
        private final SetWork work;

        Count(final SetWork work) {
            this.work = work;
        }

        @Override
        public Tally apply(final TaskContext context, final Iterator<Part> parts) {
            final Part part = parts.next();
            return work.tally(part.from(), part.to());
        }
    }

    @Override
    public Tally count(final SetWork work, final long from, final long to, final Progress progress)
        throws InterruptedException {
        final List<Part> parts = parts(from, to, engine.partitions());
        final JavaRDD<Part> divided = engine.context().parallelize(parts, parts.size());
        final Tally[] tallies = new Tally[parts.size()];
        final Function2<Object, Tally, BoxedUnit> receive = new AbstractFunction2<>() {
            @Override
            public BoxedUnit apply(final Object part, final Tally tally) {
                tallies[(Integer) part] = tally;
                progress.add(parts.get((Integer) part).to() - parts.get((Integer) part).from());
                return BoxedUnit.UNIT;
            }
        };
        try {
            run(divided, work, parts.size(), receive);
        } catch (final SparkException e) {
            final String line = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
            throw new IllegalStateException("a set could not be judged: " + line, e);
        }
        return Tally.merge(work.columns(), Arrays.asList(tallies));
    }

    /** Scala declares no exceptions, so the compiler must be told that this one may come. */
    private void run(final JavaRDD<Part> divided, final SetWork work, final int parts,
        final Function2<Object, Tally, BoxedUnit> receive) throws SparkException {
        final List<Object> indices = new ArrayList<>(IntStream.range(0, parts).boxed().toList());
        engine.context().sc().runJob(divided.rdd(), new Count(work), CollectionConverters.asScala(indices).toSeq(),
            receive, ClassTag$.MODULE$.apply(Tally.class));
    }

    /** Neighbouring sets in each part, of equal numbers but for one. */
    static List<Part> parts(final long from, final long to, final int count) {
        final List<Part> parts = new ArrayList<>();
        final long sets = to - from;
        final long used = Math.max(1, Math.min(count, sets));
        for (long i = 0; i < used; i++) {
            parts.add(new Part(from + sets * i / used, from + sets * (i + 1) / used));
        }
        return parts;
    }

    @Override
    public int step() {
        return Math.max(STEP, SETS_PER_PART * engine.partitions());
    }

    @Override
    public void close() {
        // the engine is its owner's
    }
}
