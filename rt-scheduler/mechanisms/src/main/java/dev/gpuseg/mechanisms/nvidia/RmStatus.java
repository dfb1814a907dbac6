/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;
import java.util.Locale;
import java.util.Map;

/** Answers of the Resource Manager. The ioctl itself succeeds when RM refuses; its status says why. */
public final class RmStatus {
    /** Done. */
    public static final int OK = 0;
    /** A channel of a batch does not exist (any more). The channels before it in the list were changed. */
    public static final int INVALID_CHANNEL = Layouts.RM_INVALID_CHANNEL;
    /** No such client, or it belongs to another open file. */
    public static final int INVALID_CLIENT = Layouts.RM_INVALID_CLIENT;
    /** The driver does not know the command. */
    public static final int NOT_SUPPORTED = 0x56;
    /** No such handle, as the answer to a query. */
    public static final int INVALID_OBJECT_HANDLE = Layouts.RM_INVALID_OBJECT_HANDLE;
    /** No such handle. */
    public static final int OBJECT_NOT_FOUND = Layouts.RM_OBJECT_NOT_FOUND;

    private static final Map<Integer, String> NAMES = Map.ofEntries(
        Map.entry(0x0, "NV_OK"),
        Map.entry(0x1, "NV_ERR_BROKEN_FB"),
        Map.entry(0x2, "NV_ERR_BUFFER_TOO_SMALL"),
        Map.entry(0x3, "NV_ERR_BUSY_RETRY"),
        Map.entry(0x5, "NV_ERR_CARD_NOT_PRESENT"),
        Map.entry(0xf, "NV_ERR_GPU_IS_LOST"),
        Map.entry(0x10, "NV_ERR_GPU_IN_FULLCHIP_RESET"),
        Map.entry(0x11, "NV_ERR_GPU_NOT_FULL_POWER"),
        Map.entry(0x17, "NV_ERR_IN_USE"),
        Map.entry(0x1a, "NV_ERR_INSUFFICIENT_RESOURCES"),
        Map.entry(0x1b, "NV_ERR_INSUFFICIENT_PERMISSIONS"),
        Map.entry(0x1d, "NV_ERR_INVALID_ACCESS_TYPE"),
        Map.entry(0x1f, "NV_ERR_INVALID_ARGUMENT"),
        Map.entry(0x21, "NV_ERR_INVALID_CHANNEL"),
        Map.entry(0x22, "NV_ERR_INVALID_CLASS"),
        Map.entry(0x23, "NV_ERR_INVALID_CLIENT"),
        Map.entry(0x24, "NV_ERR_INVALID_COMMAND"),
        Map.entry(0x25, "NV_ERR_INVALID_DATA"),
        Map.entry(0x26, "NV_ERR_INVALID_DEVICE"),
        Map.entry(0x2a, "NV_ERR_INVALID_FUNCTION"),
        Map.entry(0x2e, "NV_ERR_INVALID_LIMIT"),
        Map.entry(0x2f, "NV_ERR_INVALID_LOCK_STATE"),
        Map.entry(0x31, "NV_ERR_INVALID_OBJECT"),
        Map.entry(0x33, "NV_ERR_INVALID_OBJECT_HANDLE"),
        Map.entry(0x34, "NV_ERR_INVALID_OBJECT_NEW"),
        Map.entry(0x35, "NV_ERR_INVALID_OBJECT_OLD"),
        Map.entry(0x36, "NV_ERR_INVALID_OBJECT_PARENT"),
        Map.entry(0x38, "NV_ERR_INVALID_OPERATION"),
        Map.entry(0x39, "NV_ERR_INVALID_OWNER"),
        Map.entry(0x3a, "NV_ERR_INVALID_PARAM_STRUCT"),
        Map.entry(0x3b, "NV_ERR_INVALID_PARAMETER"),
        Map.entry(0x3d, "NV_ERR_INVALID_POINTER"),
        Map.entry(0x3f, "NV_ERR_INVALID_REQUEST"),
        Map.entry(0x40, "NV_ERR_INVALID_STATE"),
        Map.entry(0x51, "NV_ERR_NO_MEMORY"),
        Map.entry(0x55, "NV_ERR_NOT_READY"),
        Map.entry(0x56, "NV_ERR_NOT_SUPPORTED"),
        Map.entry(0x57, "NV_ERR_OBJECT_NOT_FOUND"),
        Map.entry(0x58, "NV_ERR_OBJECT_TYPE_MISMATCH"),
        Map.entry(0x59, "NV_ERR_OPERATING_SYSTEM"),
        Map.entry(0x5b, "NV_ERR_OUT_OF_RANGE"),
        Map.entry(0x60, "NV_ERR_RC_ERROR"),
        Map.entry(0x62, "NV_ERR_RESET_REQUIRED"),
        Map.entry(0x63, "NV_ERR_STATE_IN_USE"),
        Map.entry(0x65, "NV_ERR_TIMEOUT"),
        Map.entry(0x66, "NV_ERR_TIMEOUT_RETRY"),
        Map.entry(0x6b, "NV_ERR_PRIV_SEC_VIOLATION"),
        Map.entry(0x6e, "NV_ERR_RESOURCE_LOST"),
        Map.entry(0x71, "NV_ERR_FATAL_ERROR"),
        Map.entry(0xffff, "NV_ERR_GENERIC"));

    private RmStatus() {
    }

    /**
     * A status in words.
     *
     * @param status a status of RM, or a negative errno where the ioctl itself failed
     * @return for instance "NV_ERR_INVALID_CLIENT (0x23)"
     */
    public static String name(final int status) {
        if (status < 0) {
            return "errno " + -status;
        }
        return NAMES.getOrDefault(status, "RM status") + String.format(Locale.ROOT, " (0x%02x)", status);
    }
}
