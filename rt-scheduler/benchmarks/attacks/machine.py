# SPDX-License-Identifier: Apache-2.0
"""A daemon as the service runs it, on the virtual GPU, with an honest client and an attacker of other users."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NATIVE = ROOT / "rt-scheduler/native/build"
TOOLS = ROOT / "rt-scheduler/tools/target"
TASK_CLIENT = ROOT / "rt-scheduler/tools/src/test/c/task_client.c"
LIBRARY = ROOT / "segment-api"
ATTACKER, HONEST, CROWD = 65531, 65532, 65530
DAEMON_PRIORITY, HONEST_THREAD, VGPU_PRIORITY = 80, 60, 98
LIMITS = f"{HONEST} priority 80\n{HONEST} share 100%\n{CROWD} contexts 4\n"
START_S = 120


class Machine:
    """Virtual GPU, daemon, one best-effort client that stays."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpuseg-attacks-", dir="/dev/shm"))
        self.work.chmod(0o755)
        self.directory = self.work / "run"
        self.directory.mkdir(mode=0o755)
        self.children = []

    def compile(self, name, *arguments):
        program = self.work / name
        subprocess.run(["gcc", "-std=c11", "-O1", "-g", f"-I{LIBRARY}/include", *arguments, "-lpthread",
                        "-o", program], check=True)
        return program

    def child(self, command, environment=None):
        """Starts a program; its output is in .said."""
        file = open(self.work / f"said{len(self.children)}", "w+", encoding="utf-8", errors="replace")
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                   env=dict(os.environ, **(environment or {})))
        process.said = pathlib.Path(file.name)
        self.children.append(process)
        return process

    def until(self, process, word, limit_s=START_S):
        limit = time.monotonic() + limit_s
        while word not in process.said.read_text():
            if (process.poll() is not None and word not in process.said.read_text()) or time.monotonic() > limit:
                raise RuntimeError(f"{process.args[0]}: {process.said.read_text().strip()[-400:]}")
            time.sleep(0.02)
        return process

    def java(self):
        opens = re.search(r"<jvm\.opens>(.*?)</jvm\.opens>", (ROOT / "pom.xml").read_text(), re.S).group(1).split()
        options = [o for o in (ROOT / "config/daemon.jvm").read_text().splitlines() if o.startswith("-")]
        return ["java", *opens, *options, f"-Dgpuseg.root={ROOT}", "-cp",
                f"{next(TOOLS.glob('gpuseg-tools-*.jar'))}:{TOOLS}/lib/*"]

    def stand_in(self):
        """NVIDIA's Resource Manager, as the tests have it: options of Java and the environment of a daemon."""
        fake, socket = NATIVE / "libgpuseg-rm-fake.so", self.work / "rm.sock"
        self.until(self.child([NATIVE / "gpuseg-rm-standin", socket, "0", "1"]), "ready")
        (self.work / "gpus/0000:06:00.0").mkdir(parents=True)
        programs = self.work / "programs"
        programs.mkdir()
        watchdog = programs / "gpuseg-watchdog"
        watchdog.write_text(f"#!/bin/sh\nLD_PRELOAD='{fake}' exec {NATIVE}/gpuseg-watchdog \"$@\"\n")
        watchdog.chmod(0o755)
        return [f"-Dgpuseg.programs={programs}", f"-Dgpuseg.nvidia.library={fake}",
                f"-Dgpuseg.nvidia.gpus={self.work}/gpus"], {"GPUSEG_RM_STANDIN": str(socket)}

    def start(self):
        limits = self.work / "limits.d"
        limits.mkdir()
        (limits / "attacks.conf").write_text(LIMITS)
        settings = self.work / "settings.yaml"
        settings.write_text(f"limits: {limits}\n")
        self.until(self.child([NATIVE / "gpuseg-vgpu", "--dir", self.directory, "--disable-cost", "100us", "--enable-cost",
                               "100us", "--switch-cost", "20us", "--scheduling", f"fifo:{VGPU_PRIORITY}"]), "ready")
        options, environment = self.stand_in() if self.mechanism == "nvidia" else ([], {})
        java = self.java()
        self.daemon = self.child(
            [*java[:1], *options, *java[1:], "dev.gpuseg.daemon.launch.DaemonMain", "run", "--dir", self.directory,
             "--mechanism", self.mechanism, "--policy", "fp", "--config", settings, "--priority", DAEMON_PRIORITY], environment)
        self.until(self.daemon, "daemon ready")
        self.task_client = self.compile("task_client", "-D_GNU_SOURCE", TASK_CLIENT, LIBRARY / "build/libgpuseg.a")
        self.hostile = shutil.copy(NATIVE / "gpuseg-hostile", self.work)
        self.demo_task = shutil.copy(NATIVE / "gpuseg-demo-task", self.work)
        self.child([self.demo_task, "--dir", self.directory, "--name", "background", "--duration", "4000s", "--period", "4ms",
                    "--segments", "gpu:0ms+1ms", "--cpu-mode", "sleep"])

    def as_user(self, user, *command):
        group = (self.directory / "gpuseg.sock").stat().st_gid
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--inh-caps=-all", *command]

    def answer(self, *options):
        return subprocess.run([NATIVE / "gpuseg-ask", "status", *options], env=dict(os.environ, GPUSEG_DIR=str(self.directory)),
                              capture_output=True, text=True, check=True).stdout

    def status(self):
        return json.loads(self.answer("--json"))

    def counters(self):
        return {c["label"]: c["value"] for c in self.status()["counters"]}

    def honest_p99_ms(self, seconds):
        """Of a client that works for so long: 1.2 ms of work each 5 ms, its response from the release of the job."""
        command = ["chrt", "--fifo", HONEST_THREAD, *self.as_user(
            HONEST, self.demo_task, "--dir", self.directory, "--name", "honest", "--duration", "1000s", "--period", "5ms",
            "--segments", "gpu:200us+1ms", "--priority", "80", "--budget", "5ms", "--always-wait", "--scheduling",
            f"fifo:{HONEST_THREAD}", "--cpu-mode", "sleep")]
        client = self.child(command)
        time.sleep(seconds)
        tasks = [t for t in self.status()["tasks"] if t["name"] == "honest"]
        if client.poll() is not None or not tasks or tasks[0]["jobs"] < seconds * 100:
            raise RuntimeError(f"the honest client does not work: {client.said.read_text().strip()[-400:]} {tasks}")
        self.end(client)
        return tasks[0]["response_ns"]["p99"] / 1e6

    def processor_s(self, processes):
        """Processor time that they have used, with that of their children that have ended; s."""
        ticks = 0
        for process in processes:
            try:
                fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            except FileNotFoundError:
                continue
            ticks += sum(int(field) for field in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def stolen_ms():
        """What the hypervisor has kept from the processors of this machine so far, their mean."""
        ticks = int(pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[8])
        return 1e3 * ticks / os.sysconf("SC_CLK_TCK") / os.cpu_count()

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def close(self):
        for process in reversed(self.children):
            self.end(process)
        shutil.rmtree(self.work, ignore_errors=True)
