"""System calls that confined programs may not make, and the filter that says so to the kernel.

Standard library only: this is read by the process that is about to confine itself. Numbers are those of Linux on
x86-64 and on 64-bit Arm; None where an architecture lacks the call.
"""

from __future__ import annotations

import platform
import struct

DENIED: dict[str, tuple[int | None, int | None]] = {
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
    "sched_setaffinity": (203, 122),
    # memory that outlives or evades the limit on memory
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    # files without opening them
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

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the table, and the kernel's name for the architecture."""
CLONE, CLONE3, PRLIMIT = (56, 220), (435, 435), (302, 261)

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _REFUSE, _UNKNOWN = 0x80000000, 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD, _X32 = 0x10000, 0x40000000


def filter_program() -> bytes:
    """The seccomp filter of this machine's architecture, as an array of `struct sock_filter`.

    Threads may be made, processes not; limits may be read and set for oneself only. `clone3` says that it does not
    exist, upon which the C library makes threads by `clone`, whose flags a filter can see.

    Raises:
        OSError: the architecture is neither x86-64 nor 64-bit Arm.
    """
    machine = platform.machine()
    if machine not in ARCHITECTURES:
        raise OSError(f"foreign code cannot be confined on {machine}")
    column, architecture = ARCHITECTURES[machine]
    denied = [numbers[column] for numbers in DENIED.values() if numbers[column] is not None]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in denied:
        lines += [(_EQUAL, 0, 1, number or 0), (_RETURN, 0, 0, _REFUSE)]
    lines += [(_EQUAL, 0, 1, CLONE3[column]), (_RETURN, 0, 0, _UNKNOWN)]
    lines += [
        (_EQUAL, 0, 3, CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_BITS, 4, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _REFUSE),
        (_EQUAL, 0, 2, PRLIMIT[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
