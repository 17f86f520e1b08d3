"""The system calls that project code may not make, by their numbers on the supported architectures.

A call that is newer than all of these does not exist for project code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

NEWEST = 470  # beyond it nothing is known, so nothing is allowed
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
