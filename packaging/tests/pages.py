# SPDX-License-Identifier: Apache-2.0
"""Plays a page of the documents in a shell and compares what is printed with what the page shows.

Used by `tutorial` (in this tree) and `strangers` (in clean Debian roots). A comment before a block says what it is; a page
has no program and no command without one:

    <!-- file PATH -->          a program, written to that path
    <!-- run -->                commands. One that fails fails the page
    <!-- run; again from "TITLE" -->   if they fail, go on at that heading again (four times): a busy machine
    <!-- setup -->              commands that change the machine; only a Player with setup=True types them
    <!-- shows -->              what the block before printed: the same lines, where a number stands for any number
    <!-- shows; part -->        these lines in this order, among others; a line of the page may be the begin of one
    <!-- shows; late -->        and at least one job was late; "in time": none was, in one of three attempts
    <!-- needs nvidia -->       commands for a machine with that; skipped elsewhere
"""
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import time

VERBOSE = os.environ.get("VERBOSE")  # print the whole session
ATTEMPTS = 3
AGAIN = 4
BLOCK = re.compile(r"(?:^<!-- ([^\n]*?) -->\n)?^```(\w+)\n(.*?)^```$|^## ([^\n]*)$", re.M | re.S)
COMMANDS = ("sh", "bash")
PROGRAMS = {"c": ".c", "cpp": ".cpp", "python": ".py"}


class Failure(Exception):
    pass


class Block:
    def __init__(self, match, text):
        self.heading = match.group(4)
        self.mark, self.language, self.body = match.group(1) or "", match.group(2) or "", match.group(3) or ""
        self.line = text.count("\n", 0, match.start()) + 1
        self.kind, _, self.rest = self.mark.partition(" ")
        self.kind = self.kind.rstrip(";")

    def says(self, word):
        return word in [part.strip() for part in self.mark.split(";")[1:]]


def blocks(page):
    text = page.read_text()
    found = [Block(match, text) for match in BLOCK.finditer(text)]
    for block in found:
        if not block.heading and block.language in (*COMMANDS, *PROGRAMS) and block.kind not in ("file", "run", "setup", "needs"):
            raise Failure(f"line {block.line}: a block that nobody plays; write <!-- file PATH -->, run, setup or needs before it")
    return found


# What commands say beside their output; the watchdog does when the machine stops the daemon for a while.
ASIDES = ("gpuseg: ", "gpuseg-watchdog: ")


def shape(line):
    numbers = re.sub(r"\d+(\.\d+)?", "#", line)
    return re.sub(r"\s+", " ", re.sub(r"#(ns|us|ms|s)\b", "#T", numbers)).strip()   # a time has the unit that suits it


def compare(block, said):
    """Whether the output has the shape of the page; returns what is wrong or None."""
    expected = [shape(line) for line in block.body.splitlines() if line.strip()]
    lines = [shape(line) for line in said.splitlines() if line.strip() and not line.startswith(ASIDES)]
    if block.says("part"):
        rest = iter(lines)
        missing = [want for want in expected if not any(line.startswith(want) for line in rest)]
        if missing:
            return f"not printed (in this order): {missing[0]}"
    elif lines != expected:
        return f"the page shows other lines: {expected}"
    late = re.search(r"(\d+) late", said)
    if block.says("late") and int(late.group(1)) == 0:
        return "no job was late"
    if block.says("in time") and int(late.group(1)) > 0:
        return late.group(0)
    return None


class Shell:
    """One bash, in which a whole page is typed."""

    def __init__(self, command, limit_s=240, cwd=None, env=None):
        """command starts a bash that reads its standard input; env None = this process's."""
        self.limit_s = limit_s
        token = secrets.token_hex(8)
        self.done, self.failed = f"done-{token}", f"failed-{token}"
        self.process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, start_new_session=True)
        self.type(f"exec 9>&1; trap 'echo \"{self.failed} status $?: ${{BASH_COMMAND%%$'\"'\\n'\"'*}}\" >&9' ERR")

    def type(self, commands, limit_s=None):
        """What the commands print. Raises Failure if one fails or the time passes."""
        limit_s = limit_s or self.limit_s
        self.process.stdin.write(f"{commands}\necho {self.done}\n".encode())
        self.process.stdin.flush()
        said = b""
        until = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while self.done.encode() + b"\n" not in said:
                if not selector.select(max(0, until - time.monotonic())):
                    raise Failure(f"not done after {limit_s} s; it said: {said.decode(errors='replace')}")
                more = os.read(self.process.stdout.fileno(), 65536)
                if not more:
                    raise Failure(f"the shell ended; it said: {said.decode(errors='replace')}")
                said += more
        text = said.decode(errors="replace").replace(self.done + "\n", "")
        wrong = re.search(f"^{self.failed} (.*)$\n?", text, re.M)
        if wrong:
            raise Failure(f"{wrong.group(1)}; it said: {text.replace(wrong.group(0), '')}")
        return text

    def write(self, path, body):
        end = "end-" + secrets.token_hex(4)
        self.type(f"cat > {path} << '{end}'\n{body}{end}")

    def close(self):
        """Ends everything that the page started: all of it is in the session of the shell."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            listed = subprocess.run(["ps", "-o", "pid=", "-s", str(self.process.pid)], capture_output=True, text=True).stdout
            for pid in listed.split():
                try:
                    os.kill(int(pid), number)
                except ProcessLookupError:
                    continue
            time.sleep(0.5)
        self.process.wait()


def play(page, shell, setup=False, as_typed=lambda commands: commands):
    """Types the page. Yields (what, None or what is wrong or a reason to skip, seconds). as_typed: what this user types
    where the page says so, such as no sudo for root."""
    found = blocks(page)
    again = 0
    said, commands = "", ""
    i = 0
    while i < len(found):
        block = found[i]
        i += 1
        where = f"{page.name}:{block.line}"
        began = time.monotonic()
        if block.kind == "file":
            shell.write(block.rest, block.body)
        elif block.kind == "needs":
            yield f"{where}: commands for {block.rest}", "skip: no NVIDIA driver: /dev/nvidiactl missing", 0
        elif block.kind == "run" or block.kind == "setup" and setup:
            commands = as_typed(block.body)
            try:
                said = shell.type(commands)
            except Failure as e:
                back = re.search(r'again from "(.*)"', block.mark)
                if back is None or again >= AGAIN or shell.process.poll() is not None:
                    raise Failure(f"{where}: {e}") from None
                again += 1
                print(f"{where}: attempt {again} of {AGAIN + 1} is repeated: {e}", file=sys.stderr)
                i = next(n for n, b in enumerate(found) if b.heading == back.group(1))
                continue
            if VERBOSE:
                print(commands + said)
            yield f"{where}: {commands.splitlines()[0]}", None, time.monotonic() - began
        elif block.kind == "shows":
            wrong = compare(block, said)
            attempt = 1
            while wrong and block.says("in time") and attempt < ATTEMPTS:
                attempt += 1
                print(f"{where}: attempt {attempt} after: {wrong}", file=sys.stderr)
                wrong = compare(block, shell.type(commands.splitlines()[-1]))
            yield f"{where}: what it shows", wrong and f"{wrong}; it printed:\n{said}", time.monotonic() - began


def self_test():
    """The comparison must be able to fail. Returns what is wrong or None."""
    page = Block(BLOCK.match("<!-- shows; late -->\n```text\na: 3 late, 1.5 ms\n```"), "")
    part = Block(BLOCK.match("<!-- shows; part -->\n```text\nb 1\nc\n```"), "")
    for block, said, right in ((page, "a: 12 late, 20 ms\n", True), (page, "a: 0 late, 20 ms\n", False),
                               (page, "a: 12 late\n", False), (part, "a\nb 7 more\nx\nc\n", True), (part, "c\nb 7\n", False)):
        if (compare(block, said) is None) != right:
            return f"{said!r} against {block.body!r}"
    shell = Shell(["bash", "--norc"])
    try:
        if shell.type("true") or shell.type("until false; do break; done; echo good") != "good\n":
            return "a command that succeeds is no failure"
        try:
            shell.type("false | true\nls /no/such/file > /dev/null\necho on")
        except Failure as e:
            return None if "ls /no/such/file" in str(e) and "on" in str(e) else f"which command failed: {e}"
        return "a command that fails is a failure"
    finally:
        shell.close()


def counted(results, minutes=False):
    """Prints results, the time of each if minutes, and the line of counts. Returns an exit status."""
    passed = failed = skipped = 0
    try:
        for what, wrong, seconds in results:
            took = f"{seconds:7.1f} s  " if minutes else ""
            if wrong is None:
                passed += 1
                print(f"ok    {took}{what}", flush=True)
            elif wrong.startswith("skip: "):
                skipped += 1
                print(f"skip  {took}{what}: {wrong[6:]}", flush=True)
            else:
                failed += 1
                print(f"FAIL  {took}{what}: {wrong}", flush=True)
    except Failure as e:
        failed += 1
        print(f"FAIL  {e}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
