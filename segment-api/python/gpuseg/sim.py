# SPDX-License-Identifier: Apache-2.0
"""An application's side of the virtual GPU (gpuseg-vgpu). What is measured with it is simulated.

    with VirtualGpu() as gpu:
        gpu.run(4_000_000)      # a kernel of 4 ms, and the wait for its end

See gpuseg_sim.h for threads and errors. Failures raise ``OSError``. The library ``libgpuseg_sim.so.0`` is looked for beside
this module, then where the loader looks; ``$GPUSEG_SIM_LIBRARY`` comes before both.
"""
import ctypes
import os

from gpuseg import integer, load_library

__all__ = ["VirtualGpu"]


def _load():
    lib = load_library("GPUSEG_SIM_LIBRARY", "libgpuseg_sim.so.0")
    pointer, result = ctypes.c_void_p, ctypes.c_int
    for name, restype, *argtypes in (
            ("gpuseg_sim_open", result, ctypes.c_char_p, ctypes.POINTER(pointer)),
            ("gpuseg_sim_submit", result, pointer, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64)),
            ("gpuseg_sim_wait", result, pointer, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64),
            ("gpuseg_sim_close", None, pointer)):
        function = getattr(lib, name)
        function.restype = restype
        function.argtypes = argtypes
    return lib


_lib = _load()
_BLOCK = 0


def _check(result):
    if result < 0:
        raise OSError(-result, "virtual GPU: " + os.strerror(-result))


class VirtualGpu:
    """A connection to the virtual GPU of a runtime directory. Close it, or use it in a ``with`` statement."""

    def __init__(self, dir=None):
        handle = ctypes.c_void_p()
        self._handle = None
        _check(_lib.gpuseg_sim_open(None if dir is None else os.fsencode(dir), ctypes.byref(handle)))
        self._handle = handle

    def submit(self, duration_ns):
        """Submit a kernel that occupies the GPU for that long. Returns its number, for wait()."""
        fence = ctypes.c_uint64()
        _check(_lib.gpuseg_sim_submit(self._open(), integer("duration_ns", duration_ns, 0, 2**63 - 1), ctypes.byref(fence)))
        return fence.value

    def wait(self, fence, timeout_ns=-1):
        """Sleep until that kernel and all earlier ones are complete. Raises TimeoutError; negative: no limit."""
        _check(_lib.gpuseg_sim_wait(self._open(), integer("fence", fence, 0, 2**64 - 1), _BLOCK,
                                    integer("timeout_ns", timeout_ns, -2**63, 2**63 - 1)))

    def run(self, duration_ns):
        """Submit a kernel and wait for its end."""
        self.wait(self.submit(duration_ns))

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            _lib.gpuseg_sim_close(handle)

    def _open(self):
        if self._handle is None:
            raise ValueError("this gpuseg.sim.VirtualGpu is closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
