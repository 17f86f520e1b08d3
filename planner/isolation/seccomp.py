"""seccomp: the system calls that project code may make, as a filter that the kernel runs before each call.

It closes what Landlock does not cover: sockets that are no TCP, modes and owners of files, memory and limits of other
processes, new namespaces, io_uring, keys, shared memory. https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from mergeplan.planner.isolation.system import machine_name, system_call

SET_FILTER, NEW_LISTENER = 1, 8
ALLOW, ASK, KILL = 0x7FFF0000, 0x7FC00000, 0x80000000
LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_BITS, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
OTHER_TABLE = 0x40000000  # x32 calls
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, TYPE_MASK = 1, 0xF
NEW_NAMESPACES = 0x7E020000  # flags of clone(2)
FAST_OPEN = 0x20000000  # of send(2): connects as it sends
OWNERS = (8, 15, 1024, 1026)  # fcntl(2): F_SETOWN, F_SETOWN_EX, F_SETLEASE, F_NOTIFY
TERMINAL = (0x8901, 0x8902, 0x5412, 0x541C)  # ioctl(2): FIOSETOWN, SIOCSPGRP, TIOCSTI, TIOCLINUX
SET_SECCOMP = 22  # prctl(2)
MODES = frozenset("chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat".split())
NOT_DONE = 0  # the call comes back as if it had been
Step = tuple[int, int, int, int]
NEWEST = 470  # beyond it nothing is known: a newer call does not exist for project code
AUDIT_ARCHITECTURES: Mapping[str, int] = MappingProxyType({"x86_64": 0xC000003E, "aarch64": 0xC00000B7})

# name: (x86_64, aarch64); -1 where there is none
_TABLE = """
    ptrace 101 117             process_vm_readv 310 270   process_vm_writev 311 271  process_madvise 440 440
    process_mrelease 448 448   pidfd_open 434 434         pidfd_getfd 438 438        pidfd_send_signal 424 424
    kcmp 312 272               perf_event_open 298 241    bpf 321 280                userfaultfd 323 282
    add_key 248 217            request_key 249 218        keyctl 250 219
    io_uring_setup 425 425     io_uring_enter 426 426     io_uring_register 427 427
    mount 165 40               umount2 166 39             pivot_root 155 41          chroot 161 51
    move_mount 429 429         open_tree 428 428          fsopen 430 430             fsconfig 431 431
    fsmount 432 432            fspick 433 433             mount_setattr 442 442      open_tree_attr 467 467
    statmount 457 457          listmount 458 458          unshare 272 97             setns 308 268
    init_module 175 105        finit_module 313 273       delete_module 176 106      kexec_load 246 104
    kexec_file_load 320 294    reboot 169 142             swapon 167 224             swapoff 168 225
    acct 163 89                quotactl 179 60            quotactl_fd 443 443        settimeofday 164 170
    clock_settime 227 112      clock_adjtime 305 266      adjtimex 159 171           sethostname 170 161
    setdomainname 171 162      syslog 103 116             iopl 172 -1                ioperm 173 -1
    modify_ldt 154 -1          personality 135 92         vhangup 153 58
    name_to_handle_at 303 264  open_by_handle_at 304 265  fanotify_init 300 262      fanotify_mark 301 263
    inotify_init 253 -1        inotify_init1 294 26       inotify_add_watch 254 27
    chmod 90 -1                fchmod 91 52               fchmodat 268 53            fchmodat2 452 452
    chown 92 -1                fchown 93 55               lchown 94 -1               fchownat 260 54
    utime 132 -1               utimes 235 -1              utimensat 280 88           futimesat 261 -1
    setxattr 188 5             lsetxattr 189 6            fsetxattr 190 7            removexattr 197 14
    lremovexattr 198 15        fremovexattr 199 16        setxattrat 463 463         removexattrat 466 466
    file_setattr 469 469       mq_open 240 180            mq_unlink 241 181
    shmget 29 194              shmat 30 196               shmctl 31 195              semget 64 190
    semctl 66 191              semop 65 193               semtimedop 220 192         msgget 68 186
    msgsnd 69 189              msgrcv 70 188              msgctl 71 187
    setpriority 141 140        ioprio_set 251 30          sched_setaffinity 203 122  sched_setscheduler 144 119
    sched_setparam 142 118     sched_setattr 314 274      migrate_pages 256 238      move_pages 279 239
    tkill 200 130              rt_sigqueueinfo 129 138    rt_tgsigqueueinfo 297 240
"""
_SPECIAL = """
    socket 41 198    connect 42 203   bind 49 200      listen 50 201    accept 43 202    accept4 288 242
    clone 56 220     clone3 435 435   kill 62 129      tgkill 234 131   prlimit64 302 261
    fcntl 72 25      ioctl 16 29      prctl 157 167    sendto 44 206    sendmsg 46 211   sendmmsg 307 269
    seccomp 317 277  setpgid 109 154  setsid 112 157   socketpair 53 199
"""


def _call_numbers(table: str, column: int) -> dict[str, int]:
    words = table.split()
    return {words[at]: int(words[at + column]) for at in range(0, len(words), 3) if int(words[at + column]) >= 0}


def _parse_table(table: str) -> Mapping[str, Mapping[str, int]]:
    return {name: MappingProxyType(_call_numbers(table, at)) for at, name in enumerate(AUDIT_ARCHITECTURES, 1)}


FORBIDDEN: Mapping[str, Mapping[str, int]] = MappingProxyType(_parse_table(_TABLE))
SPECIAL: Mapping[str, Mapping[str, int]] = MappingProxyType(_parse_table(_SPECIAL))


class Network(StrEnum):
    """The sockets that are allowed.

    In order: Unix sockets that the parent process connects to a socket of its own, the same for TCP too, those whose
    addresses it allows, Unix sockets to answer on, or none.
    """

    PROXY = "proxy"
    FORWARDED = "forwarded"
    LISTED = "listed"
    ANSWER = "answer"
    NONE = "none"


NOTIFIED = (Network.PROXY, Network.FORWARDED, Network.LISTED)  # the parent process decides on each `connect`
TCP = (Network.FORWARDED, Network.LISTED)
HOSTS = (Network.ANSWER, Network.LISTED)  # they accept connections, and their forks are filtered further


def filter_calls(network: Network, *, signals_kept: bool, modes: bool = False) -> int:
    """Filter all calls from now on; return the descriptor that is notified of each `connect`, or -1.

    It is -1 if no `connect` is allowed. `signals_kept` says that Landlock keeps signals inside. With `modes`, setting
    those of files is no error, and does nothing. It needs `no_new_privs`. Raise OSError if it fails.
    """
    steps = filter_program(machine_name(), network, os.getpid(), signals_kept, modes=modes)
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    instructions = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(instructions))
    notify = network in NOTIFIED
    number = SPECIAL[machine_name()]["seccomp"]
    result = system_call(
        number, SET_FILTER, NEW_LISTENER if notify else 0, ctypes.create_string_buffer(filters, len(filters))
    )
    return result if notify else -1


def filter_program(
    architecture: str, network: Network, pid: int, signals_kept: bool, *, modes: bool = False
) -> tuple[Step, ...]:
    """Return the filter in classic BPF; raise KeyError for an architecture whose calls are not known here."""
    forbidden, special = FORBIDDEN[architecture], SPECIAL[architecture]
    steps: list[Step] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, AUDIT_ARCHITECTURES[architecture]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_GREATER_EQUAL, 0, 1, OTHER_TABLE),
        (RETURN, 0, 0, KILL),
        (JUMP_GREATER_EQUAL, 0, 1, NEWEST),
        (RETURN, 0, 0, _error_value(errno.ENOSYS)),
    ]
    for name, number in forbidden.items():
        if network is Network.LISTED and name in MODES:
            continue  # Spark sets the modes of its tables' folders
        failed = NOT_DONE if modes and name in MODES else errno.EPERM
        steps += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, _error_value(failed))]
    for name, block in _argument_rules(network, pid, signals_kept):
        steps += [(JUMP_EQUAL, 0, len(block), special[name]), *block]
    return (*steps, (RETURN, 0, 0, ALLOW))


def _argument_rules(network: Network, pid: int, signals_kept: bool) -> Iterator[tuple[str, list[Step]]]:
    """Yield the calls that are allowed with some arguments only: each block loads one and returns."""
    yield (
        "clone3",
        [(RETURN, 0, 0, _error_value(errno.ENOSYS))],
    )  # its flags cannot be seen; clone(2) is used in its place
    yield "clone", _unless_bits(0, NEW_NAMESPACES)
    yield "prlimit64", _allow_only((0, pid))
    yield "fcntl", _forbid_values(1, OWNERS)
    yield "ioctl", _forbid_values(1, TERMINAL)
    for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        yield name, _unless_bits(place, FAST_OPEN)
    if not signals_kept and network is not Network.LISTED:  # Spark ends its own workers
        yield "kill", _allow_only((0, pid, -pid))
        yield "tgkill", _allow_only((pid,))
    families = (AF_UNIX, AF_INET, AF_INET6) if network in TCP else (AF_UNIX,)
    yield "socket", _allow_streams(families)
    yield "socketpair", _allow_streams((AF_UNIX,))
    yield "connect", [(RETURN, 0, 0, ASK if network in NOTIFIED else _error_value(errno.EACCES))]
    if network not in HOSTS:
        yield "prctl", _forbid_values(0, (SET_SECCOMP,))
        yield "seccomp", [(RETURN, 0, 0, _error_value(errno.EPERM))]
        for name in ("bind", "listen", "accept", "accept4", "setpgid", "setsid"):
            yield name, [(RETURN, 0, 0, _error_value(errno.EPERM))]


def _allow_only(values: tuple[int, ...]) -> list[Step]:
    tests = [(JUMP_EQUAL, len(values) - at, 0, value & 0xFFFFFFFF) for at, value in enumerate(values)]
    return [_load_argument(0), *tests, (RETURN, 0, 0, _error_value(errno.EPERM)), (RETURN, 0, 0, ALLOW)]


def _forbid_values(place: int, values: tuple[int, ...]) -> list[Step]:
    tests = [(JUMP_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [_load_argument(place), *tests, (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, _error_value(errno.EPERM))]


def _unless_bits(place: int, bits: int) -> list[Step]:
    return [
        _load_argument(place),
        (JUMP_BITS, 0, 1, bits),
        (RETURN, 0, 0, _error_value(errno.EPERM)),
        (RETURN, 0, 0, ALLOW),
    ]


def _allow_streams(families: tuple[int, ...]) -> list[Step]:
    refuse = (RETURN, 0, 0, _error_value(errno.EPERM))
    tests = [(JUMP_EQUAL, len(families) - at, 0, family) for at, family in enumerate(families)]
    family = [_load_argument(0), *tests, refuse]
    kind = [_load_argument(1), (AND, 0, 0, TYPE_MASK), (JUMP_EQUAL, 1, 0, SOCK_STREAM), refuse]
    return [*family, *kind, (RETURN, 0, 0, ALLOW)]


def _load_argument(place: int) -> Step:
    return (LOAD, 0, 0, FIRST_ARGUMENT + 8 * place)  # its lower half, on machines that begin with it


def _error_value(number: int) -> int:
    return 0x00050000 | number
