"""Run one foreign program in this process, after giving up all that it must not have. Started by `sandbox`.

    python -s -P -S confined.py REQUEST REPORT PARENT

REQUEST and REPORT are file descriptors: JSON with the program in, one of two secret words out: that the program ended
well, or that the kernel refused to confine it and it was not run. PARENT is the process that started this one, and
whose end is this one's. Standard library only, and no import from the project: this must run where nothing of it can
be read.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import resource
import signal
import sys
import types
from collections.abc import Iterable

if __name__ == "__main__":  # -P keeps the folder of this file off the path
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from syscalls import filter_program  # type: ignore[import-not-found]

    del sys.path[0]

MEGABYTE = 1 << 20
OUTPUT_MB = 8
OPEN_FILES = 64

_DEATH_OF_PARENT, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 1, 38, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT = 444, 445, 446  # landlock, the same numbers everywhere
_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read files, list folders
_ALL_OF_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_ALONE = 1 << 0 | 1 << 1  # no abstract Unix sockets of others, no signals to others
READABLE = ("/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/null", "/dev/urandom")


def main(request_file: int, report_file: int, parent: int) -> None:
    """Confine this process, run the program, report."""
    with os.fdopen(request_file) as file:
        request = json.load(file)
    unconfined = request.pop("unconfined_word")  # not to be found where the program can look
    limit(request["memory_mb"], request["cpu_seconds"])
    try:
        end_with(parent)
        confine()
    except OSError as error:
        os.write(report_file, unconfined.encode())
        sys.exit(str(error))
    del unconfined
    if run(request["program"], request["tests"], request["name"]):
        os.write(report_file, request["word"].encode())


def end_with(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends: it waits here for as long as we run.

    The filter keeps the program from taking this back.
    """
    _checked(ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL, 0, 0, 0), "a signal at the parent's death")
    if os.getppid() != parent:
        sys.exit(f"process {parent} ended before the kernel was asked to tell")


def confine() -> None:
    """Give up all but reading what Python needs. OSError: the kernel refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    give_up_privileges(libc)
    hide_files(libc, [*READABLE, *sys.path, os.getcwd()])
    filter_system_calls(libc, filter_program())


def run(program: str, tests: list[str], name: str) -> bool:
    """Run the program and then each test in its names; True when it got to the end.

    The program is a module that can be found by its name: dataclasses and pickle look there for what it defines.
    """
    module = sys.modules[name] = types.ModuleType(name)
    names = module.__dict__
    for leaves in ("exit", "quit"):  # without `site` there are none
        setattr(builtins, leaves, sys.exit)
    try:
        exec(_compiled(program, "program.py"), names)
        for number, test in enumerate(tests):
            exec(_compiled(test, f"test_{number}.py"), names)
    except SystemExit as ended:
        if tests or ended.code not in (None, 0):
            return False
    sys.stdout.flush()
    return True


def _compiled(source: str, name: str) -> types.CodeType:
    """As a file of its own would be: without this file's imports from the future."""
    return compile(source, name, "exec", dont_inherit=True)


def limit(memory_mb: int, cpu_seconds: int) -> None:
    """Memory, CPU time, bytes written, open files; no core file."""
    limits = {
        resource.RLIMIT_AS: memory_mb * MEGABYTE,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: OUTPUT_MB * MEGABYTE,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))


def give_up_privileges(libc: ctypes.CDLL) -> None:
    """No capabilities, even for root, and none to be had again."""
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _checked(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def hide_files(libc: ctypes.CDLL, readable: Iterable[str]) -> None:
    """Landlock (Linux 5.13): only `readable` can be read. Not all kernels have it; seccomp alone forbids changes.

    From Linux 6.12 on it also keeps signals and abstract sockets within the process.
    """
    abi = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return
    attributes = [_ALL_OF_ABI[min(abi, 3)], 0, _ALONE] if abi >= 6 else [_ALL_OF_ABI[min(abi, 3)]]
    handled = (ctypes.c_uint64 * len(attributes))(*attributes)  # files, network, scope
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), 0)
    _checked(min(ruleset, 0), "landlock")
    for path in readable:
        _allow_reading(libc, ruleset, path)
    _checked(libc.syscall(_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow_reading(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    rights = _READ if os.path.isdir(path) else 1 << 2
    rule = rights.to_bytes(8, sys.byteorder) + opened.to_bytes(4, sys.byteorder)
    _checked(libc.syscall(_ADD_RULE, ruleset, 1, rule, 0), "landlock")
    os.close(opened)


def filter_system_calls(libc: ctypes.CDLL, program: bytes) -> None:
    """Seccomp: no network, no other processes, no change of files. Every thread to come has the same filter."""
    body = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("lines", ctypes.c_void_p)]

    wanted = Program(len(program) // 8, ctypes.cast(body, ctypes.c_void_p))
    _checked(libc.prctl(_SECCOMP, _FILTER, ctypes.byref(wanted), 0, 0), "seccomp")


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"the kernel refused {what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
