# SPDX-License-Identifier: Apache-2.0
"""Mark GPU segments for the gpuseg scheduler from Python.

    client = gpuseg.Client(unmanaged_ok=True)
    task = gpuseg.Task(client, "camera", priority=70)
    with gpuseg.segment(task):
        launch_and_synchronise()

A thin layer over libgpuseg, made with ctypes. See gpuseg.h for threads, errors and ownership. Times are integers in
nanoseconds of CLOCK_MONOTONIC (``time.monotonic_ns()``). Failures raise ``gpuseg.Error``, which is an ``OSError``; a
number that does not fit raises ``OverflowError``. A grant that does not come in time raises ``gpuseg.Timeout``, which is
a ``TimeoutError``, too. ctypes releases the interpreter lock while begin waits.

The library is ``$GPUSEG_LIBRARY`` if that is set, otherwise the one that ``pip install`` put beside this module, otherwise
``libgpuseg.so.0`` as found by the loader.
"""
import contextlib
import ctypes
import errno
import operator
import os

__all__ = ["Client", "Task", "Error", "Timeout", "Refused", "NotAdmitted", "EADMISSION", "segment", "now_ns", "runtime_dir", "version",
           "FAIL", "PROCEED", "SPIN_NONE", "OVERRUN_DEFAULT", "OVERRUN_NOTIFY", "OVERRUN_DEMOTE", "OVERRUN_SUSPEND",
           "OVERRUN_SKIP_NEXT"]

FAIL, PROCEED = 0, 1
OVERRUN_DEFAULT, OVERRUN_NOTIFY, OVERRUN_DEMOTE, OVERRUN_SUSPEND, OVERRUN_SKIP_NEXT = range(5)
SPIN_NONE = 0xFFFFFFFF

EADMISSION = 4000   # GPUSEG_EADMISSION; no errno of Linux has this value

_UNMANAGED_OK, _FAIL_IF_LOST = 1, 4
_ALWAYS_WAIT = 1
_BOOST_IF_PERMITTED = 2
# What the library takes, where that is less than what fits.
_MOST = {"priority": 99, "gpu_priority": 99, "boost_priority": 99, "gpu": 15, "partition": 255, "weight": 10000,
         "reserve": 100}


class Error(OSError):
    """A call of libgpuseg failed; ``errno`` and ``strerror`` say how."""


class Timeout(Error, TimeoutError):
    """The grant did not come in time. No segment is begun."""


class Refused(Error):
    """The daemon refused this segment."""


class NotAdmitted(Error):
    """Admission refused the task: with it, its deadline or that of another task could be missed. ``errno`` is
    ``EADMISSION``, ``strerror`` the daemon's reason."""


class _ConnectAttr(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dir", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("flags", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class _TaskAttr(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("priority", ctypes.c_uint32),
                ("gpu_priority", ctypes.c_uint32), ("gpu", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("period_ns", ctypes.c_int64), ("deadline_ns", ctypes.c_int64), ("budget_ns", ctypes.c_int64),
                ("timeout_ns", ctypes.c_int64), ("on_timeout", ctypes.c_uint32), ("spin_count", ctypes.c_uint32),
                ("window_ns", ctypes.c_int64), ("on_overrun", ctypes.c_uint32), ("partition", ctypes.c_uint32),
                ("weight", ctypes.c_uint32), ("boost_priority", ctypes.c_uint32), ("reserve", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


class _Counters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_uint64) for name in (
        "records", "drops", "bells", "rolls", "remaps_inline", "locks_taken_over", "begins", "optimistic", "slept",
        "timeouts", "proceeded", "refused", "try_failures", "boosts", "boost_failures", "unmanaged")]


def load_library(variable, name):
    """Loads a library of gpuseg: the file in that environment variable, else the one beside this module, else the loader's."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        return ctypes.CDLL(os.environ.get(variable) or (beside if os.path.exists(beside) else name))
    except OSError as e:
        raise ImportError(f"gpuseg: the C library cannot be loaded: {e}; run `pip install .` in the source tree, install the "
                          f"package libgpuseg0, or set {variable} to the file") from e


def _load():
    lib = load_library("GPUSEG_LIBRARY", "libgpuseg.so.0")
    pointer, result, ns = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    for name, restype, *argtypes in (
            ("gpuseg_connect_shared", result, ctypes.POINTER(_ConnectAttr), ctypes.POINTER(pointer)),
            ("gpuseg_disconnect", result, pointer),
            ("gpuseg_is_managed", result, pointer),
            ("gpuseg_task_open", result, pointer, ctypes.POINTER(_TaskAttr), ctypes.POINTER(pointer)),
            ("gpuseg_task_close", result, pointer),
            ("gpuseg_job_release_sample", result, pointer, ns, ns, ctypes.c_uint64),
            ("gpuseg_job_end", result, pointer),
            ("gpuseg_job_cancel", result, pointer),
            ("gpuseg_begin", result, pointer),
            ("gpuseg_begin_try", result, pointer),
            ("gpuseg_begin_timed", result, pointer, ns),
            ("gpuseg_end_measured", result, pointer, ns),
            ("gpuseg_hint", result, pointer, ns),
            ("gpuseg_expected", result, pointer, ctypes.POINTER(ctypes.c_uint32), ns),
            ("gpuseg_stream", result, pointer, pointer),
            ("gpuseg_now_ns", ns),
            ("gpuseg_strerror", ctypes.c_char_p, result),
            ("gpuseg_last_message", ctypes.c_char_p, pointer),
            ("gpuseg_version", ctypes.c_char_p),
            ("gpuseg_get_counters", result, pointer, ctypes.POINTER(_Counters)),
            ("gpuseg_runtime_dir", result, ctypes.c_char_p, ctypes.c_size_t)):
        function = getattr(lib, name)
        function.restype = restype
        function.argtypes = argtypes
    return lib


_lib = _load()


def _check(result, client=None):
    if result >= 0:
        return result
    message = _lib.gpuseg_last_message(client) or _lib.gpuseg_strerror(result)
    kind = {errno.ETIMEDOUT: Timeout, errno.EAGAIN: Timeout, errno.ECANCELED: Refused,
            EADMISSION: NotAdmitted}.get(-result, Error)
    raise kind(-result, message.decode(errors="replace"))


def _bytes(what, text, encoded):
    """What C reads to its end: a NUL would cut it off."""
    if b"\0" in encoded:
        raise ValueError(f"{what} is {text!r}; leave out the NUL")
    return encoded


def _name(what, text):
    """UTF-8 whatever the locale."""
    if not isinstance(text, (str, bytes, type(None))):
        raise TypeError(f"{what} is {text!r}; give a str")
    return None if text is None else _bytes(what, text, text if isinstance(text, bytes) else text.encode("utf-8"))


def _path(text):
    return None if text is None else _bytes("dir", text, os.fsencode(text))


def integer(what, value, least, most):
    """A number that fits; ctypes would take another one for it, without a word."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; give an integer") from None
    if not least <= number <= most:
        raise OverflowError(f"{what} is {number}; give {least} to {most}")
    return number


def _word(what, value):
    if isinstance(value, int) and not 0 <= value < 2**32 and what in _MOST:
        raise OverflowError(f"{what} is {value}; give 0 to {_MOST[what]}")
    return integer(what, value, 0, 2**32 - 1)


def _ns(what, value):
    return integer(what, value, -2**63, 2**63 - 1)


def now_ns():
    """CLOCK_MONOTONIC in nanoseconds."""
    return _lib.gpuseg_now_ns()


def version():
    """Version of libgpuseg, "major.minor.patch"."""
    return _lib.gpuseg_version().decode()


def runtime_dir():
    """The runtime directory that connect uses by default."""
    buffer = ctypes.create_string_buffer(4096)
    _check(_lib.gpuseg_runtime_dir(buffer, len(buffer)))
    return os.fsdecode(buffer.value)


class Client:
    """A connection to the daemon. Close it, or use it in a ``with`` statement; closing it closes its tasks.

    Clients of one process share the connection, which ends with the last of them (gpuseg_connect_shared()).

    unmanaged_ok: a missing daemon is no error. While a daemon is lost the program goes on unmanaged, until another one has
    started; a line on stderr says so, and counters()["unmanaged"] counts the segments. fail_if_lost: then calls raise Error.
    """

    def __init__(self, name=None, dir=None, unmanaged_ok=False, fail_if_lost=False):
        handle = ctypes.c_void_p()
        attr = _ConnectAttr(ctypes.sizeof(_ConnectAttr), _path(dir), _name("name", name),
                            (_UNMANAGED_OK if unmanaged_ok else 0) | (_FAIL_IF_LOST if fail_if_lost else 0), 0)
        self._tasks = []
        self._handle = None
        _check(_lib.gpuseg_connect_shared(ctypes.byref(attr), ctypes.byref(handle)))
        self._handle = handle

    def close(self):
        for task in self._tasks:
            task._handle = None
        self._tasks.clear()
        if self._handle is not None:
            _lib.gpuseg_disconnect(self._handle)
            self._handle = None

    @property
    def handle(self):
        if self._handle is None:
            raise ValueError("this gpuseg.Client is closed")
        return self._handle

    @property
    def managed(self):
        """True while a daemon schedules this client."""
        return bool(_lib.gpuseg_is_managed(self.handle))

    def counters(self):
        """The counters of gpuseg_get_counters() as a dictionary."""
        counters = _Counters(ctypes.sizeof(_Counters))
        _check(_lib.gpuseg_get_counters(self.handle, ctypes.byref(counters)), self.handle)
        return {name: getattr(counters, name) for name, _ in _Counters._fields_ if name != "size"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


class Task:
    """A task of a client: the parameters are those of struct gpuseg_task_attr. One thread at a time."""

    def __init__(self, client, name, priority=0, gpu_priority=0, gpu=0, always_wait=False, period_ns=0, deadline_ns=0,
                 budget_ns=0, timeout_ns=0, on_timeout=FAIL, spin_count=0, window_ns=0, on_overrun=OVERRUN_DEFAULT,
                 partition=0, weight=0, boost_priority=0, boost_if_permitted=False, reserve=0):
        handle = ctypes.c_void_p()
        attr = _TaskAttr(ctypes.sizeof(_TaskAttr), _name("name", name), _word("priority", priority),
                         _word("gpu_priority", gpu_priority), _word("gpu", gpu),
                         (_ALWAYS_WAIT if always_wait else 0) | (_BOOST_IF_PERMITTED if boost_if_permitted else 0),
                         _ns("period_ns", period_ns), _ns("deadline_ns", deadline_ns), _ns("budget_ns", budget_ns),
                         _ns("timeout_ns", timeout_ns), _word("on_timeout", on_timeout), _word("spin_count", spin_count),
                         _ns("window_ns", window_ns), _word("on_overrun", on_overrun), _word("partition", partition),
                         _word("weight", weight), _word("boost_priority", boost_priority), _word("reserve", reserve), 0)
        self._handle = None
        self._client = client
        _check(_lib.gpuseg_task_open(client.handle, ctypes.byref(attr), ctypes.byref(handle)), client.handle)
        self._handle = handle
        client._tasks.append(self)

    @property
    def handle(self):
        if self._handle is None:
            raise ValueError("this gpuseg.Task is closed")
        return self._handle

    def _call(self, function, *args):
        return _check(function(self.handle, *args), self._client.handle)

    def begin(self, timeout_ns=None):
        """Begin a segment. True: granted. False: timed out, runs without a grant (PROCEED). Raises Timeout, Refused."""
        if timeout_ns is None:
            return self._call(_lib.gpuseg_begin) == 0
        return self._call(_lib.gpuseg_begin_timed, _ns("timeout_ns", timeout_ns)) == 0

    def try_begin(self):
        """Begin without sleeping. False: not granted at once."""
        try:
            self._call(_lib.gpuseg_begin_try)
        except Timeout:
            return False
        return True

    def end(self, device_ns=0):
        """End the segment. device_ns: for how long the GPU worked, 0 = unknown."""
        self._call(_lib.gpuseg_end_measured, _ns("device_ns", device_ns))

    def release(self, release_ns=0, stamp_ns=0, sample=0):
        """Mark the release of a job, 0 = now. stamp_ns: when the sample that it works on was taken, 0 = unknown.

        sample: what every process reads alike in the message, like the raw stamp of its header in ns; 0 = none.
        """
        self._call(_lib.gpuseg_job_release_sample, _ns("release_ns", release_ns), _ns("stamp_ns", stamp_ns),
                   integer("sample", sample, 0, 2**64 - 1))

    def complete(self):
        """Mark the end of the job."""
        self._call(_lib.gpuseg_job_end)

    def cancel(self):
        """In place of complete(): the job was released and is skipped. It counts as skipped, not as one that was met."""
        self._call(_lib.gpuseg_job_cancel)

    def hint(self, begin_at_ns):
        """Give a hint that the next begin is expected at begin_at_ns."""
        self._call(_lib.gpuseg_hint, _ns("begin_at_ns", begin_at_ns))

    def expected(self, seen, timeout_ns):
        """Wait until the daemon expects the next begin. Any thread; it must have returned before task or client is closed.

        seen: what the call before returned, 0 at first. Returns what to give to the next call; None: not in timeout_ns.
        Launch a kernel that does nothing then, and the GPU has switched to this process by the time of the begin.
        """
        word = ctypes.c_uint32(_word("seen", seen))
        result = _lib.gpuseg_expected(self.handle, ctypes.byref(word), _ns("timeout_ns", timeout_ns))
        if result == -errno.ETIMEDOUT:
            return None
        _check(result, self._client.handle)
        return word.value

    def stream(self, stream):
        """Give a CUDA stream the priority of this task among the streams of the process, under `gpuseg exec`.

        stream: a torch.cuda.Stream, a cupy.cuda.Stream, or the number of a cudaStream_t; 0 is the default stream.
        False: launches are not followed, and CUDA alone orders the streams.
        """
        number = getattr(stream, "cuda_stream", getattr(stream, "ptr", stream))
        result = _lib.gpuseg_stream(integer("stream", number, 0, 2**64 - 1), self.handle)
        if result == -errno.ENOTSUP:
            return False
        _check(result)
        return True

    def close(self):
        if self._handle is not None:
            handle, self._handle = self._handle, None
            self._client._tasks.remove(self)
            _check(_lib.gpuseg_task_close(handle), self._client.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def segment(task, timeout_ns=None):
    """``with segment(task) as granted:`` begins and ends, even if the body raises. granted: result of Task.begin()."""
    granted = task.begin(timeout_ns)
    try:
        yield granted
    finally:
        task.end()
