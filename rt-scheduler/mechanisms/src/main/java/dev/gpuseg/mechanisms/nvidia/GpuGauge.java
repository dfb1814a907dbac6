/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.PointerByReference;

/**
 * How much a GPU works, as NVML says. It asks for nothing else, and sets nothing. Each question takes a lock of the
 * driver for some 2 ms; asked ten times a second no segment of 5 ms was seen to be longer (H200, 580.159.04,
 * {@code rt-scheduler/docs/performance.md}). Not thread-safe. Source: NVIDIA's public nvml.h.
 */
final class GpuGauge implements AutoCloseable {
    private static final String LIBRARY = "libnvidia-ml.so.1";
    private static final int UNKNOWN = -1;
    /** Two unsigned ints: of the GPU and of its memory, each in percent. */
    private static final int RATES_BYTES = 8;

    private final String address;
    private final Memory percents = new Memory(RATES_BYTES);
    private NativeLibrary nvml;
    private Function rates;
    private Pointer device;
    private boolean isAbsent;

    /**
     * Asks nothing yet.
     *
     * @param address on the PCI bus; empty if it is not known
     */
    GpuGauge(final String address) {
        this.address = address;
        isAbsent = address.isEmpty();
    }

    /** 0 to 100 percent of about the last second; -1 if NVML is not there or does not say. */
    int percent() {
        if (device == null && !isAbsent) {
            isAbsent = !open();
        }
        return isAbsent || rates.invokeInt(new Object[] {device, percents}) != 0 ? UNKNOWN : percents.getInt(0);
    }

    private boolean open() {
        try {
            nvml = NativeLibrary.getInstance(LIBRARY);
            rates = nvml.getFunction("nvmlDeviceGetUtilizationRates");
        } catch (final UnsatisfiedLinkError e) {
            return false;   // a machine or container without NVIDIA's tools, or with others
        }
        if (call("nvmlInit_v2") != 0) {
            return false;
        }
        final PointerByReference found = new PointerByReference();
        if (call("nvmlDeviceGetHandleByPciBusId_v2", address, found) != 0) {
            call("nvmlShutdown");
            return false;
        }
        device = found.getValue();
        return true;
    }

    /** Its result: 0, or an error. */
    private int call(final String function, final Object... arguments) {
        return nvml.getFunction(function).invokeInt(arguments);
    }

    @Override
    public void close() {
        if (device != null) {
            device = null;
            isAbsent = true;
            call("nvmlShutdown");
        }
    }
}
