"""System calls that confined programs may not make or only with some arguments, and the filter that tells the kernel.

Standard library only: this is read by the process that is about to confine itself. Numbers are those of Linux on
x86-64 and on 64-bit Arm; None where an architecture lacks the call.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable

Line = tuple[int, int, int, int]
"""Of a filter: what to do, lines to skip when it is so and when it is not, and with what number."""
Numbers = tuple[int | None, int | None]
Looked = tuple[Numbers, int, int, tuple[int, ...]]

DENIED: dict[str, Numbers] = {
    # the network
    "socket": (41, 198),
    "bind": (49, 200),
    "listen": (50, 201),
    "connect": (42, 203),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # other processes: to start, signal, read or re-prioritise them
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "setpriority": (141, 140),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # memory and messages that others hold by a number or a name, or that evade the limit on memory
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "memfd_create": (319, 279),
    # files, but by a descriptor that is open already
    "creat": (85, None),
    "openat2": (437, 437),  # whose flags no filter can see
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rmdir": (84, None),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "open_by_handle_at": (304, 265),
    # the machine
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _REFUSE, _UNKNOWN = 0x80000000, 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_CHANGES = 0o1 | 0o2 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC

ONLY: dict[str, Looked] = {
    "clone": ((56, 220), 0, _BITS, (0x10000,)),  # a thread
    "prlimit64": ((302, 261), 0, _EQUAL, (0,)),  # of oneself
    # is it a terminal (two forms), its size, bytes to read; do not block; close on exec or not. Others give a file to
    # another process, which then gets its signals (FIOSETOWN), or change files on some file systems.
    "ioctl": ((16, 29), 1, _EQUAL, (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),
}
"""Calls that are allowed with these arguments only: the numbers, which argument, from 0, is or has a bit of what."""
NEVER: dict[str, Looked] = {
    "open": ((2, None), 1, _BITS, (_CHANGES,)),
    "openat": ((257, 56), 2, _BITS, (_CHANGES,)),
    "fcntl": ((72, 25), 1, _EQUAL, (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX: the kernel would send the signal
    "prctl": ((157, 167), 0, _EQUAL, (1,)),  # PR_SET_PDEATHSIG: the program is to end with the trainer
    "socketpair": ((53, 199), 1, _BITS, (2,)),  # datagrams, which can be sent to any address
}
"""Calls that are allowed, but not with these arguments."""

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the tables, and the kernel's name for the architecture."""
CLONE3 = 435
NEWER = 463
"""The calls from here on came with Linux 6.13 and later; what they can do is in no table here."""


def filter_program() -> bytes:
    """The seccomp filter of this machine's architecture, as an array of `struct sock_filter`.

    Threads may be made, processes not; limits may be read and set for oneself only. `clone3` says that it does not
    exist, upon which the C library makes threads by `clone`, whose flags a filter can see; so do newer calls than are
    known here.

    Raises:
        OSError: the architecture is neither x86-64 nor 64-bit Arm.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(f"foreign code cannot be confined on {machine}")
    column, architecture = ARCHITECTURES[machine]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        (_AT_LEAST, 0, 1, NEWER),
        (_RETURN, 0, 0, _UNKNOWN),
        (_EQUAL, 0, 1, CLONE3),
        (_RETURN, 0, 0, _UNKNOWN),
    ]
    for numbers in DENIED.values():
        lines += _for_call(numbers[column], [(_RETURN, 0, 0, _REFUSE)])
    for numbers, argument, test, values in ONLY.values():
        lines += _for_call(numbers[column], _look(argument, test, values, met=_ALLOW, otherwise=_REFUSE))
    for numbers, argument, test, values in NEVER.values():
        lines += _for_call(numbers[column], _look(argument, test, values, met=_REFUSE, otherwise=_ALLOW))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _for_call(number: int | None, lines: list[Line]) -> list[Line]:
    """Lines for the call of this number alone, which end in a return; none where the architecture lacks it."""
    return [] if number is None else [(_EQUAL, 0, len(lines), number), *lines]


def _look(argument: int, test: int, values: Iterable[int], met: int, otherwise: int) -> list[Line]:
    """The lower half of the argument decides: what is looked at here is 32 bits wide, or has no more meaning."""
    lines = [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument)]
    for value in values:
        lines += [(test, 0, 1, value), (_RETURN, 0, 0, met)]
    return [*lines, (_RETURN, 0, 0, otherwise)]
