"""What a hostile pull request's Python tries: each attack returns what it got, or fails. It needs no library.

`targets` names what is there to be taken. Nothing outside of what the test planted is written, and no signal ends
anything. This file is part of the pull request as it stands here: add an attack, and it is tried everywhere.
"""

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys


def read_the_key(targets):
    return open(targets["key"]).read()


def read_the_state(targets):
    return open(targets["state"], "rb").read(16).decode()


def read_another_repository(targets):
    return open(targets["other"]).read()


def read_through_a_link(targets):
    link = os.path.join(os.environ["HOME"], "link")
    os.symlink(targets["key"], link)
    return open(link).read()


def read_through_a_second_name(targets):
    link = os.path.join(os.environ["HOME"], "second")
    os.link(targets["key"], link)
    return open(link).read()


def list_the_home(targets):
    return " ".join(os.listdir(targets["home"]))


def read_the_services_environment(targets):
    return "environ " + open(f"/proc/{targets['service']}/environ", "rb").read(1).hex()


def read_the_services_memory(targets):
    with open(f"/proc/{targets['service']}/maps") as maps:
        start = int(next(line for line in maps if " rw-p " in line).split("-")[0], 16)
    with open(f"/proc/{targets['service']}/mem", "rb") as memory:
        memory.seek(start)
        return memory.read(1).hex()


def read_the_parents_environment(targets):
    return "environ " + open(f"/proc/{os.getppid()}/environ", "rb").read(1).hex()


def read_memory_by_call(targets):
    held = ctypes.create_string_buffer(8)
    pieces = (ctypes.c_size_t * 2)(ctypes.addressof(held), 8)
    libc = ctypes.CDLL(None, use_errno=True)
    there = (ctypes.c_size_t * 2)(int(targets["address"]), 8)
    return _print_done(libc.process_vm_readv(int(targets["service"]), pieces, 1, there, 1, 0))


def trace_the_service(targets):
    """PTRACE_SEIZE stops nobody."""
    return _print_done(ctypes.CDLL(None, use_errno=True).ptrace(0x4206, int(targets["victim"]), None, None))


def write_the_mirrors_configuration(targets):
    return _append(targets["mirror"], "# alternateRefsCommand = id\n")


def write_a_start_file(targets):
    return _append(targets["bashrc"], "id\n")


def write_a_customization(targets):
    return _append(targets["customization"], "print('mine')\n")


def write_the_warehouse(targets):
    return _append(os.path.join(targets["warehouse"], "part-00000.parquet"), "x")


def write_beside_the_scratch(targets):
    return _append(os.path.join(os.path.dirname(os.environ["HOME"]), "spark.sock.mine"), "x")


def empty_a_file(targets):
    os.truncate(targets["victims_file"], 0)
    return "emptied"


def rename_a_file(targets):
    os.rename(targets["victims_file"], targets["victims_file"] + ".mine")
    os.rename(targets["victims_file"] + ".mine", targets["victims_file"])
    return "renamed"


def open_a_file_to_all(targets):
    os.chmod(targets["victims_file"], 0o666)
    return "opened to all"


def date_a_file_back(targets):
    os.utime(targets["victims_file"], (0, 0))
    return "dated back"


def run_a_command(targets):
    done = subprocess.run(["/bin/sh", "-c", f"cat {targets['key']}"], capture_output=True, text=True, check=True)
    return done.stdout


def connect_to_the_service(targets):
    return _talk(socket.AF_INET, ("127.0.0.1", int(targets["port"])))


def connect_to_a_database(targets):
    return _talk(socket.AF_UNIX, targets["database"])


def connect_to_a_hidden_address(targets):
    return _talk(socket.AF_UNIX, "\0" + targets["abstract"])


def send_a_packet(targets):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        return f"sent {line.sendto(b'loot', ('127.0.0.1', int(targets['port'])))}"


def connect_while_sending(targets):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        return f"sent {line.sendto(b'GET / HTTP/1.0', 0x20000000, ('127.0.0.1', int(targets['port'])))}"


def listen_for_others(targets):
    with socket.socket(socket.AF_INET) as line:
        line.bind(("127.0.0.1", 0))
        line.listen()
        return f"listens on {line.getsockname()[1]}"


def use_io_uring(targets):
    """Nothing that goes through a ring is seen by a filter of calls."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(425, 1, ctypes.create_string_buffer(120))
    if descriptor < 0 and ctypes.get_errno() == 22:
        return "a ring"  # it is there, and wants other arguments
    return _print_done(descriptor)


def signal_the_service(targets):
    os.kill(int(targets["service"]), 0)
    return "may be ended"


def signal_the_parent(targets):
    os.kill(os.getppid(), 0)
    return "may be ended"


def signal_by_handle(targets):
    signal_by = os.pidfd_open(int(targets["victim"]))
    os.close(signal_by)
    return "held"


def limit_the_service(targets):
    limits = resource.prlimit(int(targets["service"]), resource.RLIMIT_CORE)
    return f"limits {resource.prlimit(int(targets['service']), resource.RLIMIT_CORE, limits)}"


def slow_the_service(targets):
    os.setpriority(os.PRIO_PROCESS, int(targets["victim"]), 19)
    return "slowed"


def watch_a_folder(targets):
    libc = ctypes.CDLL(None, use_errno=True)
    return _print_done(libc.inotify_add_watch(libc.inotify_init1(0), targets["home"].encode(), 0xFFF))


def make_a_namespace(targets):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(0x10000000) == 0 else 1)
    return _print_done(0 if os.waitpid(pid, 0)[1] == 0 else -1)


def share_memory(targets):
    libc = ctypes.CDLL(None, use_errno=True)
    segment = _print_done(libc.shmget(0, 4096, 0o1666))
    libc.shmctl(int(segment), 0, None)
    return segment


def use_a_key_ring(targets):
    """KEYCTL_GET_KEYRING_ID of the session's."""
    return _print_done(ctypes.CDLL(None, use_errno=True).syscall(250, 0, -3, 1))


def leave_the_group(targets):
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
        except OSError:
            os._exit(1)
        os._exit(0)
    return _print_done(0 if os.waitpid(pid, 0)[1] == 0 else -1)


def write_a_device(targets):
    with open("/dev/shm/mergeplan-attack-" + str(os.getpid()), "w") as file:
        file.write("x")
    os.remove(file.name)
    return "written"


ATTACKS = {
    name: attack
    for name, attack in list(globals().items())
    if callable(attack) and getattr(attack, "__module__", "") == __name__ and not name.startswith("_")
}


def attack_all(targets):
    """What each attack got, '' for one that failed."""
    outcomes = {}
    for name, attack in ATTACKS.items():
        try:
            outcomes[name] = str(attack(targets)) or "it worked"
        except BaseException:  # an attacker goes on
            outcomes[name] = ""
    return outcomes


def print_all(targets):
    """A line for each attack."""
    for name, got in attack_all(targets).items():
        print("LOOT", json.dumps([name, got[:200]]))


def _append(path, text):
    with open(path, "a") as file:
        file.write(text)
    return f"wrote {path}"


def _talk(family, address):
    with socket.socket(family) as line:
        line.settimeout(5)
        line.connect(address)
        return "connected"


def _print_done(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "no")
    return str(result)


if __name__ == "__main__":
    print_all(json.loads(sys.argv[1]))
