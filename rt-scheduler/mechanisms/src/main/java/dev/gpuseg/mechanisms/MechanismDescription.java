/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.IntSupplier;

/**
 * One row of the {@link MechanismCatalog}: all that commands, help texts and the daemon need to know of a mechanism
 * before it is opened. Immutable and thread-safe.
 */
public final class MechanismDescription {
    private final Builder row;

    private MechanismDescription(final Builder row) {
        this.row = row;
    }

    /**
     * Begins a row.
     *
     * @param name  on the command line
     * @param id    a constant of {@code enum gpuseg_mechanism}
     * @param level the highest that it can reach, 0..3
     * @return the rest of the row
     */
    static Builder row(final String name, final int id, final int level) {
        return new Builder(name, id, level);
    }

    /** Name on the command line; one word. */
    public String name() {
        return row.name;
    }

    /** Number in the held file; a constant of {@code enum gpuseg_mechanism}. */
    public int id() {
        return row.id;
    }

    /** The highest level that it can reach; 0..3, see {@link Capabilities}. */
    public int level() {
        return row.level;
    }

    /** What it works with; a phrase, without a full stop. */
    public String summary() {
        return row.summary;
    }

    /** What it means for work that already runs on the GPU; a clause, without a full stop. */
    public String consequence() {
        return row.consequence;
    }

    /**
     * Whether it never ran on the hardware that it is for.
     *
     * @return true if it was tested against a stand-in of the driver only
     */
    public boolean experimental() {
        return row.experimental;
    }

    /** What it was tested on; a phrase. */
    public String testedOn() {
        return row.testedOn;
    }

    /** Whether its results are those of a virtual GPU and must be labelled so. */
    public boolean simulated() {
        return row.simulated;
    }

    /**
     * Whether only one daemon of a machine may use it at a time, because nothing else keeps two of them from disabling
     * and enabling the same contexts.
     *
     * @return false also where a stand-in of the driver answers: each daemon may have its own
     */
    public boolean exclusive() {
        return row.exclusive.getAsBoolean();
    }

    /** Whether it uses gpuseg-observer where that works; false if it scans, or need not know of processes. */
    public boolean observed() {
        return row.observed;
    }

    /** The caveat to show wherever its name is shown; "simulated GPU", "experimental", or empty. */
    public String caveat() {
        return row.simulated ? "simulated GPU" : row.experimental ? "experimental" : "";
    }

    /**
     * Whether a daemon may choose it without being told: it works on real hardware, was tested there and enforces
     * something. The virtual GPU is chosen, too, where one runs: see {@link MechanismCatalog#best}.
     *
     * @return true if it is a candidate on every machine
     */
    public boolean automatic() {
        return row.automatic;
    }

    /** How {@code gpuseg calibrate} measures its costs; never null. */
    public CalibrationMethod calibration() {
        return row.calibration;
    }

    /** How many GPUs it can drive; 1 or more. */
    public int gpusMax() {
        return row.gpusMax;
    }

    /** How many GPUs of this machine it drives where nobody says how many; 1 or more. */
    public int gpusHere() {
        return Math.max(1, Math.min(row.gpusMax, row.gpusHere.getAsInt()));
    }

    /**
     * Whether it works on this machine. Touches no process but this one.
     *
     * @param directory the daemon's runtime directory
     * @return the verdict, with its reason
     */
    public MechanismVerdict survey(final RuntimeDirectory directory) {
        return row.survey.apply(directory);
    }

    /**
     * Opens the mechanism for one GPU.
     *
     * @param setup which GPU, and what is protected
     * @return an instance; the caller closes it
     * @throws MechanismException if it cannot be used here, with the reason and the next lower level
     */
    public Mechanism open(final MechanismSetup setup) {
        if (setup.gpu() >= row.gpusMax) {
            throw new MechanismException("GPU " + setup.gpu() + ": mechanism \"" + row.name + "\" drives "
                + row.gpusMax + " GPU, number 0; use --gpus " + row.gpusMax);
        }
        final MechanismVerdict verdict = survey(setup.directory());
        if (!verdict.usable()) {
            throw new MechanismException("mechanism \"" + row.name + "\": " + verdict.reason()
                + MechanismCatalog.NEXT_LOWER_LEVEL);
        }
        final Mechanism opened = row.factory.apply(setup);
        if (opened.id() != row.id || !opened.name().equals(row.name) || opened.capabilities().level() > row.level) {
            opened.close();
            throw new IllegalStateException("mechanism \"" + opened.name() + "\" of id " + opened.id() + " and level "
                + opened.capabilities().level() + " stands in the catalogue as \"" + row.name + "\", " + row.id
                + ", " + row.level + "; correct its row");
        }
        return opened;
    }

    @Override
    public String toString() {
        return row.name;
    }

    /** The rest of a row. Not for use by several threads. */
    static final class Builder {
        private final String name;
        private final int id;
        private final int level;
        private String summary;
        private String consequence;
        private boolean experimental;
        private String testedOn;
        private boolean simulated;
        private boolean automatic;
        private boolean observed;
        private BooleanSupplier exclusive = () -> false;
        private int gpusMax = Abi.GPUS_MAX;
        private IntSupplier gpusHere = () -> 1;
        private CalibrationMethod calibration = CalibrationMethod.NONE;
        private Function<RuntimeDirectory, MechanismVerdict> survey;
        private Function<MechanismSetup, Mechanism> factory;

        private Builder(final String name, final int id, final int level) {
            this.name = name;
            this.id = id;
            this.level = level;
        }

        /** What it works with, and what it means for work that already runs. */
        Builder text(final String worksWith, final String forRunningWork) {
            summary = worksWith;
            consequence = forRunningWork;
            return this;
        }

        /** It ran on the hardware that it is for. */
        Builder testedOn(final String what) {
            testedOn = what;
            return this;
        }

        /** It never ran on the hardware that it is for, only on this. */
        Builder experimental(final String what) {
            experimental = true;
            return testedOn(what);
        }

        /** Its results are those of a virtual GPU. */
        Builder simulated() {
            simulated = true;
            return this;
        }

        /** It learns of processes from gpuseg-observer. */
        Builder observed() {
            observed = true;
            return this;
        }

        /** Only one daemon of a machine may use it where this is true. */
        Builder exclusive(final BooleanSupplier where) {
            exclusive = where;
            return this;
        }

        /** A daemon may choose it without being told. */
        Builder automatic() {
            automatic = true;
            return this;
        }

        /** It drives one GPU only. */
        Builder oneGpu() {
            gpusMax = 1;
            return this;
        }

        /** How many GPUs it finds on a machine; 0 = it cannot tell, one is assumed. */
        Builder gpus(final IntSupplier found) {
            gpusHere = found;
            return this;
        }

        Builder calibration(final CalibrationMethod method) {
            calibration = method;
            return this;
        }

        /** Says whether it works on this machine; asked by doctor, and before it is opened. */
        Builder survey(final Function<RuntimeDirectory, MechanismVerdict> how) {
            survey = how;
            return this;
        }

        /** Ends the row. */
        MechanismDescription opens(final Function<MechanismSetup, Mechanism> how) {
            factory = how;
            for (final Object given : new Object[] {summary, consequence, testedOn, survey, factory}) {
                Objects.requireNonNull(given, () -> "row of mechanism \"" + name + "\" is not complete");
            }
            return new MechanismDescription(this);
        }
    }
}
