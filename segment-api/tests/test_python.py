# SPDX-License-Identifier: Apache-2.0
"""The Python package against the tests' daemon. Arguments: the program serve_fixture."""
import os
import subprocess
import sys
import threading

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


def should_raise_with_the_reason():
    e = raises(gpuseg.Error, gpuseg.Client, dir="/nonexistent")
    assert "/nonexistent/gpuseg.sock" in str(e), e
    with gpuseg.Client(dir="/nonexistent", unmanaged_ok=True) as client:
        assert not client.managed
        e = raises(gpuseg.Error, gpuseg.Task, client, "x", priority=100)
        assert "priority is 100" in str(e), e
    raises(ValueError, lambda: client.managed)


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
            task.release(stamp_ns=4711)
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
        kinds = [(kind, flags) for kind, flags, _, _ in records]
        assert kinds == [(3, 0), (1, 0), (2, 0), (1, 0), (2, 0), (1, 0), (2, 0), (5, 0), (4, 0)] + 3 * [(1, 0), (2, 2)] + [
            (1, 0), (2, 4), (1, 0)], kinds
        assert records[0][3] == 4711
        assert records[6][3] == 77


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
    for test in (should_raise_with_the_reason, should_tell_admission_from_other_refusals,
                 should_record_segments_and_errors, should_boost_inside_the_segment_only,
                 should_let_other_threads_run_while_begin_waits):
        print("  " + test.__name__)
        test()
