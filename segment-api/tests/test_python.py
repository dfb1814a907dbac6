# SPDX-License-Identifier: Apache-2.0
"""The Python package against the tests' daemon. Arguments: the program serve_fixture."""
import ctypes
import errno
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import threading
import time

import gpuseg
import types


class Daemon:
    def __enter__(self):
        self.process = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.dir = self.process.stdout.readline().strip()
        return self

    def grants(self, mode):
        self.process.stdin.write(mode)
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"

    def finish(self):
        out, _ = self.process.communicate(timeout=20)
        return [tuple(map(int, line.split())) for line in out.splitlines()]

    def __exit__(self, *_):
        # Closing its input lets it end and remove its directory; killing it would leave that in /dev/shm.
        if self.process.poll() is None:
            try:
                self.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def raises(kind, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as e:
        return e
    raise AssertionError(f"{function} did not raise {kind}")


def should_have_the_layouts_of_the_header():
    structures = {"gpuseg_connect_attr": gpuseg._ConnectAttr, "gpuseg_task_attr": gpuseg._TaskAttr,
                  "gpuseg_counters": gpuseg._Counters}
    ours, lines = [], []
    for name, structure in structures.items():
        ours.append(ctypes.sizeof(structure))
        lines.append(f"(int)sizeof(struct {name})")
        for field, kind in structure._fields_:
            ours += [getattr(structure, field).offset, ctypes.sizeof(kind)]
            lines += [f"(int)offsetof(struct {name}, {field})", f"(int)sizeof(((struct {name} *)0)->{field})"]
        # The size leaves no room for a field that only the header has.
        end = max(getattr(structure, field).offset + ctypes.sizeof(kind) for field, kind in structure._fields_)
        assert end == ctypes.sizeof(structure), name
    with tempfile.TemporaryDirectory() as directory:
        source, program = os.path.join(directory, "layouts.c"), os.path.join(directory, "layouts")
        with open(source, "w") as file:
            file.write("#include <gpuseg.h>\n#include <stddef.h>\n#include <stdio.h>\nstatic const int all[] = {"
                       + ", ".join(lines) + "};\nint main(void)\n{\n"
                       "\tfor (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)\n\t\tprintf(\"%d\\n\", all[i]);\n}\n")
        include = pathlib.Path(__file__).resolve().parents[1] / "include"
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), f"-I{include}", "-o", program, source], check=True)
        theirs = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert list(map(str, ours)) == theirs, list(zip(lines, ours, theirs))


def should_raise_with_the_reason():
    e = raises(gpuseg.Error, gpuseg.Client, dir="/nonexistent")
    assert "/nonexistent/gpuseg.sock" in str(e), e
    with gpuseg.Client(dir="/nonexistent", unmanaged_ok=True) as client:
        assert not client.managed
        e = raises(gpuseg.Error, gpuseg.Task, client, "x", priority=100)
        assert "priority is 100" in str(e), e
    raises(ValueError, lambda: client.managed)


def should_refuse_numbers_that_do_not_fit():
    with gpuseg.Client(dir="/nonexistent", unmanaged_ok=True) as client:
        for values in (dict(priority=2**32 + 50), dict(priority=-1), dict(gpu=2**32), dict(weight=2**32 + 1),
                       dict(priority=5, period_ns=2**64 + 10_000_000), dict(priority=5, deadline_ns=2**63),
                       dict(on_timeout=2**32), dict(spin_count=-1), dict(window_ns=-2**63 - 1), dict(boost_priority=2**40)):
            (name, value), = list(values.items())[-1:]
            e = raises(OverflowError, gpuseg.Task, client, "x", **values)
            assert f"{name} is {value}; give " in str(e), e
        e = raises(TypeError, gpuseg.Task, client, "x", priority=5.0)
        assert "priority is 5.0; give an integer" in str(e), e
        e = raises(gpuseg.Error, gpuseg.Task, client, "x", priority=5, period_ns=10_000_000, deadline_ns=20_000_000)
        assert "deadline is 20000000 ns; give at most the period" in str(e), e
        with gpuseg.Task(client, "x", priority=5, period_ns=10_000_000, deadline_ns=10_000_000) as task:
            for call, values in ((task.begin, dict(timeout_ns=2**64 + 1)), (task.end, dict(device_ns=2**64)),
                                 (task.release, dict(release_ns=2**63)), (task.release, dict(stamp_ns=-2**64)),
                                 (task.release, dict(sample=-1)), (task.release, dict(sample=2**64)),
                                 (task.hint, dict(begin_at_ns=2**64)), (task.expected, dict(seen=2**32, timeout_ns=1)),
                                 (task.expected, dict(seen=0, timeout_ns=2**64)), (task.stream, dict(stream=2**64))):
                raises(OverflowError, call, **values)


def should_refuse_names_that_c_would_cut():
    with gpuseg.Client(dir="/nonexistent", unmanaged_ok=True) as client:
        for name in (" ", "a\nb", "a\x7f", "a\x85", "a\u200bb", "\u202eabc", "a\u2028b", "\ue000", "\ufeffa", b"\xff", b"\xc0\x80",
                     b"\xed\xa0\x80", b"a\xe3\x82"):
            e = raises(gpuseg.Error, gpuseg.Task, client, name)
            assert "task name is blank or has characters that cannot be printed" in str(e), (name, e)
        for name in ("camera", "a b", " a", "Größe", "カメラ左", "a\u00a0b", "\U0001f600", "e\u0301"):
            gpuseg.Task(client, name).close()
        e = raises(TypeError, gpuseg.Task, client, 5)
        assert "name is 5; give a str" in str(e), e
        e = raises(OverflowError, gpuseg.Task, client, "x", priority=-1)
        assert "priority is -1; give 0 to 99" in str(e), e
        e = raises(ValueError, gpuseg.Task, client, "camera\0left")
        assert "leave out the NUL" in str(e), e
        raises(ValueError, gpuseg.Task, client, "half \ud800")
        raises(gpuseg.Error, gpuseg.Task, client, "x" * 64)
        raises(gpuseg.Error, gpuseg.Task, client, "カ" * 22)
        gpuseg.Task(client, "カ" * 21).close()
    raises(ValueError, gpuseg.Client, dir="/none\0xistent", unmanaged_ok=True)


def should_tell_admission_from_other_refusals():
    with Daemon() as daemon:
        daemon.grants("a")
        with gpuseg.Client(dir=daemon.dir, name="python") as client:
            e = raises(gpuseg.NotAdmitted, gpuseg.Task, client, "greedy", priority=70)
            assert e.errno == gpuseg.EADMISSION == 4000, e
            assert 'task "greedy": not admitted' in e.strerror, e


def should_record_segments_and_errors():
    with Daemon() as daemon:
        with gpuseg.Client(dir=daemon.dir, name="python") as client:
            task = gpuseg.Task(client, "camera", priority=70, timeout_ns=20_000_000_000)
            hasty = gpuseg.Task(client, "lidar", priority=65, timeout_ns=5_000_000)
            stubborn = gpuseg.Task(client, "radar", priority=60, timeout_ns=5_000_000, on_timeout=gpuseg.PROCEED)
            assert client.managed
            task.release(stamp_ns=4711, sample=2**64 - 1)
            with gpuseg.segment(task) as granted:
                assert granted
            try:
                with gpuseg.segment(task):
                    raise KeyError("body")
            except KeyError:
                pass
            task.begin()
            task.end(device_ns=77)
            task.complete()
            task.release()
            task.cancel()
            task.hint(gpuseg.now_ns() + 1000)
            assert task.expected(0, 0) is None
            raises(gpuseg.Error, task.expected, 0, -1)
            assert task.stream(0) is False   # not under gpuseg exec
            assert task.stream(types.SimpleNamespace(cuda_stream=77)) is False
            raises(gpuseg.Error, task.end)
            daemon.grants("i")
            raises(gpuseg.Timeout, hasty.begin)
            raises(TimeoutError, task.begin, timeout_ns=1_000_000)
            assert not task.try_begin()
            assert stubborn.begin() is False
            stubborn.end()
            daemon.grants("r")
            raises(gpuseg.Refused, task.begin)
            assert client.counters()["timeouts"] == 3
            task.close()
            raises(ValueError, task.begin)
        raises(ValueError, stubborn.begin)
        records = daemon.finish()
        kinds = [(kind, flags) for kind, flags, *_ in records]
        assert kinds == [(3, 0), (1, 0), (2, 0), (1, 0), (2, 0), (1, 0), (2, 0), (5, 0), (3, 0), (5, 2),
                         (4, 0)] + 3 * [(1, 0), (2, 2)] + [
            (1, 0), (2, 4), (1, 0)], kinds
        assert records[0][3:] == (4711, 2**64 - 1)
        assert records[6][3] == 77


def should_share_the_connection_of_the_process():
    with Daemon() as daemon:   # which serves one connection at a time
        with gpuseg.Client(dir=daemon.dir) as first, gpuseg.Client(dir=daemon.dir, fail_if_lost=True) as second:
            one, two = gpuseg.Task(first, "one", priority=70), gpuseg.Task(second, "two", priority=60)
            with gpuseg.segment(one), gpuseg.segment(two):
                pass
            first.close()
            raises(ValueError, one.begin)
            with gpuseg.segment(two):
                pass
        assert len(daemon.finish()) == 6


def should_boost_inside_the_segment_only():
    with Daemon() as daemon, gpuseg.Client(dir=daemon.dir) as client:
        e = raises(gpuseg.Error, gpuseg.Task, client, "x", priority=1, boost_priority=100)
        assert "boost_priority is 100" in str(e), e
        task = gpuseg.Task(client, "t", priority=1, boost_priority=40, boost_if_permitted=True)
        before = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        boosted = before if client.counters()["boost_failures"] else (os.SCHED_FIFO, 40)
        with gpuseg.segment(task):
            assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == boosted
        assert (os.sched_getscheduler(0), os.sched_getparam(0).sched_priority) == before
        assert client.counters()["boosts"] == (before != boosted)


def wait_until(condition):
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.001)


def should_go_on_while_the_daemon_is_lost():
    with Daemon() as daemon, gpuseg.Client(dir=daemon.dir) as client:
        task = gpuseg.Task(client, "t", priority=1)
        for _ in range(2):
            daemon.grants("k")
            wait_until(lambda: not client.managed)
            before = client.counters()["unmanaged"]
            task.release()
            with gpuseg.segment(task):
                task.hint(gpuseg.now_ns())
            task.complete()
            gpuseg.Task(client, "late").close()
            assert client.counters()["unmanaged"] == before + 1
            daemon.grants("n")
            wait_until(lambda: client.managed)
            before = -1
            while client.counters()["unmanaged"] != before:   # the task's own thread goes over
                before = client.counters()["unmanaged"]
                with gpuseg.segment(task):
                    pass


def should_raise_while_the_daemon_is_lost_if_asked_to():
    with Daemon() as daemon, gpuseg.Client(dir=daemon.dir, fail_if_lost=True) as client:
        task = gpuseg.Task(client, "t", priority=1)
        daemon.grants("k")
        wait_until(lambda: not client.managed)
        for call in (task.release, task.begin, task.complete, lambda: gpuseg.Task(client, "late"), task.close):
            assert raises(gpuseg.Error, call).errno == errno.ENOTCONN
        daemon.grants("n")


def ticks_while_begin_waits(task):
    ticks = []
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [ticks.append(0) or stop.wait(0.005) for _ in range(1000) if not stop.is_set()])
    thread.start()
    raises(gpuseg.Timeout, task.begin, timeout_ns=100_000_000)
    stop.set()
    thread.join()
    return len(ticks)


def should_let_other_threads_run_while_begin_waits():
    with Daemon() as daemon, gpuseg.Client(dir=daemon.dir) as client:
        daemon.grants("i")
        task = gpuseg.Task(client, "t", priority=1)
        # Several times: the machine may be what keeps the other thread from running.
        counts = []
        while len(counts) < 10 and max(counts, default=0) <= 5:
            counts.append(ticks_while_begin_waits(task))
        assert max(counts) > 5, counts


if __name__ == "__main__":
    for test in (should_have_the_layouts_of_the_header, should_raise_with_the_reason,
                 should_refuse_numbers_that_do_not_fit, should_refuse_names_that_c_would_cut,
                 should_tell_admission_from_other_refusals,
                 should_record_segments_and_errors, should_boost_inside_the_segment_only,
                 should_go_on_while_the_daemon_is_lost, should_raise_while_the_daemon_is_lost_if_asked_to,
                 should_let_other_threads_run_while_begin_waits):
        print("  " + test.__name__)
        test()
