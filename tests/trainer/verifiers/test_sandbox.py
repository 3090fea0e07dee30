"""Foreign programs: what they may do, and what hostile ones cannot."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.errors import ConfigurationError
from trainer.verifiers import Judges, sandbox
from trainer.verifiers.syscalls import ARCHITECTURES, DENIED, NEVER, ONLY

LANDLOCK_ABI = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
SECONDS, MEMORY_MB = 20.0, 256


def said(program: str, **changes) -> str:
    """What a program that must come to its end prints."""
    ran = sandbox.run(program, **({"seconds": SECONDS, "memory_mb": MEMORY_MB} | changes))
    assert ran.well, ran
    return ran.output


def attempt(statement: str) -> str:
    """A program that tries something and prints the name of the error that comes of it."""
    reported = "except BaseException as error:\n    print(type(error).__name__)\nelse:\n    print('done')"
    return f"try:\n    {statement}\n{reported}"


def test_an_ordinary_program_reads_computes_and_prints():
    program = "import collections, heapq, math, re\nprint(math.isqrt(int(input())))"
    assert said(program, stdin="17\n") == "4\n"


@pytest.mark.parametrize("leaves", ["exit()", "quit()", "exit(0)", "import sys; sys.exit()"])
def test_a_program_may_leave_by_its_own_will(leaves):
    assert said(f"print(input())\n{leaves}\nprint('more')", stdin="17\n") == "17\n"


@pytest.mark.parametrize("name", ["program", "__main__"])
def test_a_program_is_a_module_in_which_dataclasses_and_pickle_find_what_it_defines(name):
    program = "from dataclasses import dataclass\nimport pickle\n@dataclass\nclass Point:\n    x: int = 3\n"
    test = "assert pickle.loads(pickle.dumps(Point())) == Point(3)"
    assert sandbox.run(program, SECONDS, MEMORY_MB, tests=[test], name=name).well
    assert said(program + test, name=name) == ""


def test_threads_work_and_so_does_asyncio():
    assert said("import threading\nt = threading.Thread(target=print, args=('hi',))\nt.start()\nt.join()") == "hi\n"
    assert said("import asyncio\nasyncio.run(asyncio.sleep(0))\nprint('slept')") == "slept\n"


@pytest.mark.parametrize(
    "statement",
    [
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 80))",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.setsid()",
        "import os; os.chmod('.', 0o777)",
        "import os; os.utime('/etc/passwd')",
        "import os; os.memfd_create('more')",
        "import os, resource; resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
        "import ctypes; ctypes.CDLL(None).unshare(0x10000000) and exec('raise PermissionError')",
        "import socket; socket.socketpair(type=socket.SOCK_DGRAM)",
        "import ctypes; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) and exec('raise PermissionError')",
        "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "import fcntl, os, struct; fcntl.fcntl(0, 15, struct.pack('ii', 1, os.getppid()))",
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETSIG, 9)",
        "import fcntl, os, struct; fcntl.ioctl(0, 0x8901, struct.pack('i', os.getppid()))",
        "import fcntl, os, struct; fcntl.ioctl(0, 0x8902, struct.pack('i', os.getppid()))",
        "open('kept', 'w')",
    ],
)
def test_the_network_other_processes_and_changes_to_files_are_refused(statement):
    assert said(attempt(statement)) == "PermissionError\n"


def test_a_fork_bomb_starts_not_one_process():
    tries = "    try:\n        os.fork()\n        count += 1\n    except OSError:\n        pass\n"
    bomb = f"import os\ncount = 0\nfor _ in range(1000):\n{tries}print(count)"
    assert said(bomb) == "0\n"


SIGNALS_BY_THE_KERNEL = """
import fcntl, os, socket, struct
reading, writing = os.pipe()
here, there = socket.socketpair()
owned = struct.pack("i", VICTIM)
for act in [
    lambda: fcntl.fcntl(reading, fcntl.F_SETOWN, VICTIM),
    lambda: fcntl.ioctl(here, 0x8901, owned),
    lambda: fcntl.ioctl(here, 0x8902, owned),
    lambda: [fcntl.fcntl(file, fcntl.F_SETSIG, 9) for file in (reading, here)],
    lambda: [fcntl.fcntl(file, fcntl.F_SETFL, os.O_NONBLOCK | 0o20000) for file in (reading, here)],  # O_ASYNC
    lambda: os.write(writing, b"x") + there.send(b"x"),
]:
    try:
        act()
    except OSError:
        pass
"""


def test_the_kernel_sends_no_signals_for_a_program_either():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
        said(SIGNALS_BY_THE_KERNEL.replace("VICTIM", str(victim.pid)))
        told, _ = victim.communicate("still here")
    assert (told, victim.returncode) == ("still here", 0)


@pytest.mark.skipif(LANDLOCK_ABI < 6, reason="this kernel has no Landlock that keeps signals in")
def test_where_the_kernel_can_it_keeps_signals_in_without_the_filter_too():
    tries = "import ctypes, os\nfrom trainer.verifiers import confined\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    tries += "confined.give_up_privileges(libc)\nconfined.hide_files(libc, [])\n"
    ran = subprocess.run(
        [sys.executable, "-c", tries + attempt("os.kill(os.getppid(), 0)")], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "PermissionError\n"


def test_every_call_of_the_table_is_refused():
    numbers = [n for n in (of[ARCHITECTURES[platform.machine()][0]] for of in DENIED.values()) if n is not None]
    assert len(numbers) > 80
    program = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
    tries = f"print([n for n in {numbers} if libc.syscall(n, 0, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1])"
    assert said(program + tries) == "[]\n"


def test_calls_that_the_table_is_too_old_to_know_do_not_exist():
    tries = "print(libc.syscall(463, -1, 0, 0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])"  # setxattrat
    assert said(f"import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\n{tries}") == "-1 ENOSYS\n"


@pytest.mark.parametrize(
    ("header", "column"),
    [("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 0), ("/usr/include/asm-generic/unistd.h", 1)],
)
def test_the_numbers_are_those_of_the_kernels_headers(header, column):
    if not Path(header).exists():
        pytest.skip("the kernel's headers are not installed")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)$", Path(header).read_text(), re.MULTILINE)
    known = {name: int(number) for name, number in defined}
    table = DENIED | {name: looked[0] for name, looked in (ONLY | NEVER).items()}
    ours = {name: numbers[column] for name, numbers in table.items() if name in known}
    assert ours == {name: known[name] for name in ours}
    assert len(ours) > 70


def test_what_a_terminal_is_asked_and_pairs_of_sockets_still_work():
    program = "import os, socket, sys\na, b = socket.socketpair()\na.setblocking(False)\nb.send(b'hi')\n"
    assert (
        said(f"{program}os.set_inheritable(a.fileno(), True)\nprint(a.recv(2), sys.stdout.isatty())") == "b'hi' False\n"
    )


def test_a_server_on_this_machine_hears_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        port = server.getsockname()[1]
        said(attempt(f"import socket; socket.create_connection(('127.0.0.1', {port}), timeout=1)"))
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.skipif(LANDLOCK_ABI < 1, reason="this kernel has no Landlock")
def test_files_of_the_outside_cannot_be_read(tmp_path):
    secret = tmp_path / "answers.jsonl"
    secret.write_text("42")
    for path in (secret, "/etc/passwd", f"/proc/{os.getpid()}/environ", Path(__file__)):
        assert said(attempt(f"open({str(path)!r}).read()")) == "PermissionError\n"
    assert said("import os; print(os.listdir('.'))") == "[]\n"


WITHOUT_LANDLOCK = """
import ctypes, runpy
class OlderKernel(ctypes.CDLL):
    def __getattr__(self, name):
        return (lambda *arguments: -1) if name == "syscall" else super().__getattr__(name)
ctypes.CDLL = OlderKernel
"""


@pytest.mark.parametrize(
    "change",
    [
        "open(PATH, 'w')",
        "open(PATH, 'a')",
        "open(PATH, 'r+')",
        "open(PATH + '.new', 'x')",
        "os.open(PATH, os.O_RDONLY | os.O_TRUNC)",
        "os.truncate(PATH, 0)",
        "os.unlink(PATH)",
        "os.rename(PATH, PATH + '.new')",
        "os.link(PATH, PATH + '.new')",
        "os.symlink(PATH, PATH + '.new')",
        "os.mkdir(PATH + '.new')",
        "os.rmdir(os.path.dirname(PATH) + '/empty')",
        "os.mkfifo(PATH + '.new')",
        "os.chmod(PATH, 0)",
        "os.utime(PATH)",
        "os.setxattr(PATH, 'user.a', b'b')",
        "open('kept', 'w')",
    ],
)
def test_on_a_kernel_without_landlock_files_can_be_read_and_not_changed(monkeypatch, tmp_path, change):
    stub = tmp_path / "confined.py"
    stub.write_text(f"{WITHOUT_LANDLOCK}runpy.run_path({str(sandbox.CONFINED)!r}, run_name='__main__')")
    monkeypatch.setattr(sandbox, "CONFINED", stub)
    (tmp_path / "users" / "empty").mkdir(parents=True)
    checkpoint = tmp_path / "users" / "checkpoint"
    checkpoint.write_text("weights")
    program = f"import os\nPATH = {str(checkpoint)!r}\nprint(open(PATH).read())\n"
    assert said(program + attempt(change)) == "weights\nPermissionError\n"
    assert checkpoint.read_text() == "weights"
    assert sorted(path.name for path in checkpoint.parent.iterdir()) == ["checkpoint", "empty"]


def test_the_environment_and_other_programs_variables_stay_outside(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "secret")
    assert "A_TOKEN" not in said("import os; print(dict(os.environ))")


def test_a_program_without_end_is_stopped():
    ran = sandbox.run("while True: pass", seconds=1.0, memory_mb=MEMORY_MB)
    assert (ran.well, ran.timed_out) == (False, True)


def test_a_program_that_sleeps_and_ignores_signals_is_stopped():
    ran = sandbox.run(
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(3600)", 1.0, MEMORY_MB
    )
    assert (ran.well, ran.timed_out) == (False, True)


def test_a_program_that_eats_memory_gets_no_more_than_its_share():
    assert said(attempt("x = bytearray(10**9)")) == "MemoryError\n"
    assert said("x = bytearray(10**8); print(len(x))") == "100000000\n"


def test_a_program_that_prints_without_end_is_cut():
    ran = sandbox.run("while True: print('x' * 10**6)", seconds=SECONDS, memory_mb=MEMORY_MB)
    assert not ran.well
    assert len(ran.output) <= 8 << 20


def test_a_deep_recursion_that_kills_the_interpreter_is_a_crash_not_ours():
    ran = sandbox.run("import ctypes; ctypes.string_at(0)", seconds=SECONDS, memory_mb=MEMORY_MB)
    assert (ran.well, ran.killed) == (False, True)


def test_a_machine_that_cannot_confine_programs_runs_none(monkeypatch, tmp_path):
    stub = tmp_path / "confined.py"
    elsewhere = "import platform, runpy\nplatform.machine = lambda: 'riscv64'\n"
    stub.write_text(f"{elsewhere}runpy.run_path({str(sandbox.CONFINED)!r}, run_name='__main__')")
    monkeypatch.setattr(sandbox, "CONFINED", stub)
    judges = Judges({"code": "code"})
    with pytest.raises(ConfigurationError, match="cannot confine foreign programs"):
        judges.start()
    judges.close()


def test_what_a_program_finds_in_the_frames_above_it_does_not_end_the_run():
    found = said("import sys\nabove = sys._getframe(2).f_locals\nprint([*above, *above['request']])")
    assert "'word'" in found
    assert "unconfined" not in found


def test_a_set_has_the_same_order_in_every_process():
    assert len({said("print(list(map(str, {'a', 'b', 'c', 'd', 'e', 'f'})))") for _ in range(3)}) == 1


def test_nothing_can_be_imported_from_the_folder_of_the_sandbox_or_of_the_program():
    assert said(attempt("import confined")) == "ModuleNotFoundError\n"
    assert said("import sys\nprint([path for path in sys.path if not path.startswith(sys.base_prefix)])") == "[]\n"


def test_a_program_is_compiled_as_a_file_of_its_own():
    assert said("class Point:\n    x: int = 3\nprint(Point.__annotations__['x'])") == "<class 'int'>\n"
