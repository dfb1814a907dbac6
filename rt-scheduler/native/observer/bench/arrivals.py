#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon a process that never registered is disabled, and what following such processes costs the daemon.

One real-time segment is open all the time. Processes come and go at a fixed rate; each makes a context, works, and is
killed. This is repeated with `observer: off` (scanning) and `observer: on`, in turn, and the figures stand side by side:

  delay_ms   from the moment a channel (stand-in) or the context (CUDA) exists until it is disabled
  start_to_disabled_ms  from the moment before a process was forked until it was disabled for the first time. The program is
             loaded and opens the device meanwhile (stand-in: and pauses, see --pause-ms), and a process that is observed is
             left alone until it has its channels scheduled
  missed     processes that were never disabled
  cpu        CPU time of daemon and observer while processes come and go: per cent of one core, and ms for each process
  parts_ms   with the observer, from the return of the ioctl that made the first channel: until the helper took the record,
             the daemon received it, its watch thread took it, the process was announced, its channel was known, and it was
             disabled. `off`: from the return of the ioctl that scheduled the first group, the one that computes,
             until it was disabled: before it cannot run. `seen` counts processes whose channels were reported, `opened` those whose open was: what is
             `missed` and seen was acted upon too late
  steps_ms   of the daemon: examinations of a process, waits of the enforcer for its lock, and its updates
  held       contexts still held when all processes have ended (must be 0)

  arrivals.py --standin                on the RM stand-in, no GPU needed: what it shows of delays leaves the driver's calls out
  arrivals.py                          on an NVIDIA GPU, by CUDA's driver interface: no toolkit needed

Needs root, the built programs of this checkout, and the command line given by --gpuseg (default: ./gpuseg of the checkout).
"""
import argparse
import ctypes
import json
import mmap
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
BUILD = os.path.join(ROOT, "rt-scheduler", "native", "build")
KERNELS, LAST, FIRST = 16, 32, 48   # offsets in the page of a process, as in gpuseg-rm-app
PTX = b""".version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
\0"""


def victim(path):
    """A CUDA process: one context, then empty kernels one after another, each waited for."""
    with open(path, "r+b") as f:
        page = mmap.mmap(f.fileno(), 4096)
    cuda = ctypes.CDLL("libcuda.so.1")

    def check(status):
        if status != 0:
            sys.exit(f"CUDA driver: error {status}")

    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    device = ctypes.c_int()
    check(cuda.cuInit(0))
    check(cuda.cuDeviceGet(ctypes.byref(device), 0))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
    page[FIRST:FIRST + 8] = struct.pack("<q", time.monotonic_ns())
    check(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"nothing"))
    n = 0
    while True:
        check(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None))
        check(cuda.cuCtxSynchronize())
        n += 1
        page[LAST:LAST + 8] = struct.pack("<q", time.monotonic_ns())
        page[KERNELS:KERNELS + 8] = struct.pack("<Q", n)


class Arrival:
    def __init__(self, rig, number):
        self.path = os.path.join(rig.work, f"page{number}")
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        if rig.standin:
            command = [os.path.join(BUILD, "gpuseg-rm-app"), self.path, str(rig.arguments.kernel_ms)]
            environment = dict(rig.standin_environment(True), GPUSEG_RM_PAUSE_MS=str(rig.arguments.pause_ms))
        else:
            command, environment = [sys.executable, os.path.abspath(__file__), "--victim", self.path], os.environ
        started_ns = time.monotonic_ns()
        self.started = started_ns / 1e9
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        rig.starts[str(self.process.pid)] = started_ns

    def end(self):
        """First time, last time and number of kernels, and when it was killed: a driver takes long to end a process."""
        killed = time.monotonic_ns()
        self.process.kill()
        self.process.wait()
        with open(self.path, "rb") as f:
            page = f.read(64)
        os.unlink(self.path)
        kernels, = struct.unpack_from("<Q", page, KERNELS)
        last, = struct.unpack_from("<q", page, LAST)
        first, = struct.unpack_from("<q", page, FIRST)
        return first, last, kernels, killed


class Rig:
    def __init__(self, arguments, observer):
        self.arguments = arguments
        self.standin = arguments.standin
        self.work = tempfile.mkdtemp(prefix="gpuseg-arrivals-", dir="/dev/shm")
        self.directory = os.path.join(self.work, "run")
        self.socket = os.path.join(self.work, "rm.sock")
        self.log = os.path.join(self.work, "log")
        self.trace = os.path.join(self.work, "trace")
        self.children = []
        self.starts = {}   # ns, by pid
        if self.standin:
            environment = dict(os.environ, GPUSEG_RM_LOG=self.log)
            # a driver runs at the priority of its caller
            command = [os.path.join(BUILD, "gpuseg-rm-standin"), self.socket]
            if arguments.realtime:
                command = ["chrt", "--rr", str(arguments.realtime + 1)] + command
            child = subprocess.Popen(command, stdout=subprocess.PIPE,
                                     env=environment)
            self.children.append(child)
            child.stdout.readline()
        self.task = None
        try:
            self.daemon = self.start_daemon(observer)
            self.hold()
        except BaseException:
            self.close()
            raise

    def standin_environment(self, application):
        environment = dict(os.environ, GPUSEG_RM_STANDIN=self.socket)
        if application:
            environment.update(LD_PRELOAD=os.path.join(BUILD, "libgpuseg-rm-fake.so"), GPUSEG_RM_SHADOW=self.arguments.shadow)
        return environment

    def start_daemon(self, observer):
        options, environment = [f"-Dgpuseg.observer.log={self.trace}"], dict(os.environ)
        if self.standin:
            environment = self.standin_environment(False)
            device = os.stat(self.arguments.shadow).st_rdev
            options += [f"-Dgpuseg.nvidia.library={os.path.join(BUILD, 'libgpuseg-rm-fake.so')}",
                       f"-Dgpuseg.observer.options=--device=nvidia:{os.major(device)}:{os.minor(device)}:any"]
        words = shlex.split(self.arguments.gpuseg)
        if options and os.path.basename(words[0]) == "gpuseg":
            environment["GPUSEG_JAVA_OPTS"] = " ".join("'" + o + "'" if " " in o else o for o in options)
        elif options:
            words[1:1] = options
        settings = os.path.join(self.work, "settings.yaml")
        with open(settings, "w") as file:
            file.write(f"observer: {observer}\nno-watchdog: true\n")
        command = words + ["run", "--dir", self.directory, "--mechanism", "nvidia", "--policy", "fp", "--config", settings,
                           "--priority", str(self.arguments.realtime)] + shlex.split(self.arguments.daemon_options)
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=None, text=True)
        self.children.append(child)
        for line in child.stdout:
            if "ready" in line:
                threading.Thread(target=child.stdout.read, daemon=True).start()
                return child
        sys.exit(f"the daemon did not start: {' '.join(command)}")

    def hold(self):
        """A real-time segment that is open from now on."""
        os.environ["GPUSEG_LIBRARY"] = os.path.join(ROOT, "segment-api", "build", "libgpuseg.so")
        sys.path.insert(0, os.path.join(ROOT, "segment-api", "python"))
        import gpuseg
        self.client = gpuseg.Client("arrivals", dir=self.directory)
        self.task = gpuseg.Task(self.client, "held", priority=90)
        self.task.begin()

    def status(self):
        words = shlex.split(self.arguments.gpuseg)
        return json.loads(subprocess.run(words + ["status", "--dir", self.directory, "--json"], check=True, text=True,
                                         stdout=subprocess.PIPE).stdout)

    def cpu_s(self):
        """Of the daemon and what it started, its C observer among them."""
        total, tick = 0, os.sysconf("SC_CLK_TCK")
        pids = [self.daemon.pid]
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat") as f:
                    fields = f.read().rpartition(")")[2].split()
                total += int(fields[11]) + int(fields[12])
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{thread}/children") as f:
                        pids += [int(word) for word in f.read().split()]
            except FileNotFoundError:
                continue   # a thread or a process has ended
        return total / tick

    def arrive(self):
        a = self.arguments
        period, alive, ended = 1 / a.rate, [], []
        begin = time.monotonic()
        cpu = self.cpu_s()
        for number in range(a.warm_up + a.processes):
            time.sleep(max(0, begin + number * period - time.monotonic()))
            alive.append(Arrival(self, number))
            while alive and time.monotonic() - alive[0].started > a.life:
                ended.append(alive.pop(0).end())
        while alive:
            time.sleep(max(0, alive[0].started + a.life - time.monotonic()))
            ended.append(alive.pop(0).end())
        seconds = time.monotonic() - begin
        return ended, 100 * (self.cpu_s() - cpu) / seconds, seconds

    def held(self):
        """Contexts of processes that have ended; waits for the daemon to notice."""
        limit = time.monotonic() + 10
        while True:
            held = self.status()["daemon"]["held_contexts"]
            if held == 0 or time.monotonic() > limit:
                return held
            time.sleep(0.2)

    def close(self):
        try:
            if self.task is not None:
                self.task.end()
                self.client.close()
        finally:
            for child in reversed(self.children):
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()

    def delete(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def logged_delays(self):
        """Of the stand-in's log: ms from the making of each channel that was disabled; clients without one."""
        made, disabled = {}, {}
        with open(self.log) as f:
            for line in f:
                what, client, handle, ns = line.split()
                if what == "made":
                    made.setdefault(client, {})[handle] = int(ns)
                else:
                    disabled.setdefault(client, {}).setdefault(handle, int(ns))
        delays, first, missed = [], [], 0
        made = dict(list(made.items())[self.arguments.warm_up:])   # clients are made in the order of arrival
        for client, channels in made.items():
            off = disabled.get(client, {})
            if not off:
                missed += 1
                continue
            first.append((min(off.values()) - min(channels.values())) / 1e6)
            delays += [(ns - channels[handle]) / 1e6 for handle, ns in off.items()]
        return delays, first, missed, len(made), {client: min(off.values()) for client, off in disabled.items()}

    def since_start(self):
        """ms from the start of each process until it was disabled for the first time."""
        counted, delays = dict(list(self.starts.items())[self.arguments.warm_up:]), {}
        with open(self.trace) as f:
            for words in map(str.split, f):
                if words[0] == "disabled" and int(words[2]) > counted.get(words[1], sys.maxsize):
                    delays.setdefault(words[1], (int(words[2]) - counted[words[1]]) / 1e6)
        return list(delays.values())

    def steps(self):
        """How long the daemon's own steps took, ms."""
        begun, found = {}, {"examine": [], "lock": [], "apply": []}
        ends = {"asked": ("asking", "examine"), "locked": ("applying", "lock"), "applied": ("locked", "apply")}
        with open(self.trace) as f:
            for what, pid, ns in (words for words in map(str.split, f) if len(words) == 3):
                if what in ends:
                    begin, step = ends[what]
                    if (begin, pid) in begun:
                        found[step].append((int(ns) - begun[begin, pid]) / 1e6)
                if what in ("asking", "applying", "locked"):
                    begun[what, pid] = int(ns)
        return {step: quantiles(values) for step, values in found.items()}

    def parts(self, disabled):
        """Where the time goes from the first channel of a process until it is disabled, ms since the ioctl returned; and
        which processes were seen at all."""
        first, known, announced, opened, searched, off, scheduled = {}, {}, {}, {}, 0, {}, {}
        with open(self.trace) as f:
            for line in f:
                words = line.split()
                if words[0] == "record":
                    kind, pid, client, class_id = words[1], words[2], words[3], int(words[5], 16)
                    event, passed, received, taken = (int(word) for word in words[6:])
                    if kind == "OPEN":
                        opened.setdefault(pid, event)
                    if kind == "ALLOC" and class_id > 0xa06c and class_id & 0xff == 0x6f and pid not in first:
                        first[pid] = (client, event, event + passed, received, taken)
                    if kind == "SCHEDULED":
                        scheduled.setdefault(pid, event)
                elif words[0] == "searched":
                    searched += 1
                elif words[0] == "disabled":
                    off.setdefault(words[1], []).append(int(words[2]))
                elif words[0] in ("known", "announced"):
                    {"known": known, "announced": announced}[words[0]].setdefault(words[1], int(words[2]))
        parts = {"helper": [], "daemon": [], "taken": [], "known": [], "announced": [], "disabled": [], "off": []}
        counted = set(list(first)[self.arguments.warm_up:])
        for pid, event in scheduled.items():
            parts["off"] += [(ns - event) / 1e6 for ns in off.get(pid, []) if ns > event][:1] if pid in counted else []
        parts["never_off"] = sum(1 for pid, event in scheduled.items() if pid in counted
                                 and not any(ns > event for ns in off.get(pid, [])))
        for pid, (client, event, passed, received, taken) in list(first.items())[self.arguments.warm_up:]:
            at = {"helper": passed, "daemon": received, "taken": taken, "known": known.get(pid),
                  "announced": announced.get(pid), "disabled": disabled.get(client) or min(off.get(pid, []), default=None)}
            for part, ns in at.items():
                if ns is not None:
                    parts[part].append((ns - event) / 1e6)
        return {"seen": len(first), "opened": len(opened), "searched": searched} | {
            part: quantiles(values) if isinstance(values, list) else values for part, values in parts.items()}


def quantiles(values):
    if not values:
        return None
    values = sorted(values)
    return {name: round(values[min(len(values) - 1, int(share * len(values)))], 3)
            for name, share in (("p50", .5), ("p90", .9), ("p99", .99), ("max", 1))} | {"n": len(values)}


def measure(arguments, observer):
    rig = Rig(arguments, observer)
    try:
        ended, cpu, seconds = rig.arrive()
        held = rig.held()
        status = rig.status()["daemon"]
    finally:
        rig.close()
    result = {"observer": observer, "processes": len(ended), "seconds": round(seconds, 1), "cpu_percent": round(cpu, 2), "cpu_ms_per_process": round(10 * cpu * seconds / len(ended), 2),
              "held": held, "records": status["observer_records"], "lost": status["observer_lost"],
              "problem": status["observer_problem"]}
    result["start_to_disabled_ms"] = quantiles(rig.since_start())
    result["steps_ms"] = rig.steps()
    if arguments.standin:
        delays, first, result["missed"], result["contexts"], disabled = rig.logged_delays()
        result["delay_ms"] = quantiles(delays)
        result["first_disable_ms"] = quantiles(first)
        if observer == "on":
            result["parts_ms"] = rig.parts(disabled)
    else:
        made = [e for e in ended[arguments.warm_up:] if e[0]]
        result["contexts"] = len(made)
        # a process that was not disabled ran until it was killed
        result["missed"] = sum(1 for first, last, kernels, end in made if kernels and end - last < 20_000_000)
        result["delay_ms"] = quantiles([max(0, last - first) / 1e6 if kernels else 0 for first, last, kernels, _ in made])
        result["ran_a_kernel"] = sum(1 for e in made if e[2])
        if observer == "on":
            result["parts_ms"] = rig.parts({})
    if arguments.keep_trace and observer == "on":
        shutil.copy(rig.trace, arguments.keep_trace)
    rig.delete()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim", help=argparse.SUPPRESS)
    parser.add_argument("--standin", action="store_true", help="the RM stand-in in place of a GPU")
    parser.add_argument("--shadow", default="/dev/full", help="device whose ioctls BPF sees in place of a GPU's (stand-in)")
    parser.add_argument("--processes", type=int, default=100, help="of each round (default: %(default)s)")
    parser.add_argument("--kernel-ms", type=float, default=5, help="of the stand-in's programs (default: %(default)s)")
    parser.add_argument("--pause-ms", type=int, default=20,
                        help="from the open of the stand-in to the context; libcuda takes longer (default: %(default)s)")
    parser.add_argument("--realtime", type=int, default=0, metavar="N",
                        help="`--priority N` of the daemon, for a machine that is busy (default: ordinary threads)")
    parser.add_argument("--daemon-options", default="", help="further options of `gpuseg run`")
    parser.add_argument("--rate", type=float, default=50, help="processes that begin in a second (default: %(default)s)")
    parser.add_argument("--life", type=float, default=1, help="seconds from start to kill (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=10,
                        help="processes before those that count: the daemon's code is compiled meanwhile (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="of each kind (default: %(default)s)")
    parser.add_argument("--observer", default="off,on", help="what to compare (default: %(default)s)")
    parser.add_argument("--gpuseg", default=os.path.join(ROOT, "gpuseg"), help="command line of gpuseg")
    parser.add_argument("--keep-trace", metavar="FILE", help="the daemon's record of what the observer saw, for a closer look")
    parser.add_argument("--out", help="write the results there, as JSON lines")
    arguments = parser.parse_args()
    if arguments.victim:
        victim(arguments.victim)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))   # ends what it has started
    bad = 0
    for _ in range(arguments.rounds):
        for observer in arguments.observer.split(","):
            result = measure(arguments, observer)
            line = json.dumps(result)
            print(line, flush=True)
            if arguments.out:
                with open(arguments.out, "a") as f:
                    f.write(line + "\n")
            bad += result["held"] + (result["missed"] if observer == "on" else 0)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
