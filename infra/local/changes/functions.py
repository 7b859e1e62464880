"""How the processes of the functions run, behind the Lambda Runtime API."""

import contextlib
import os
import resource
import socket
import socketserver
import threading
import time
from pathlib import Path

from changes.shape import Mismatch, expect_parameters, named

# The longest wait for a function that has answered and neither asks for the next event nor ends.
ASKING_SECONDS = 5.0
# What a function may reserve beyond its MemorySize: threads have stacks of 2 MiB that they hardly use.
STACKS_MEBIBYTES = 64
# How long a function's request for its next event waits before the emulator looks whether the function is to end.
NEXT_EVENT_SECONDS = 1.0
# The longest wait for the end of a Runtime API.
CLOSING_SECONDS = 1.0
# How far functions stand back behind the emulator: from 0, not at all, to 19.
FUNCTIONS_NICENESS = 10


def answer_functions_at_once(lambda_runtime) -> None:
    """Disables Nagle's algorithm on the Runtime API. Headers and body are sent in two writes, and the
    second would wait 40 ms for the function's delayed acknowledgement, twice per invocation."""
    worker = named(lambda_runtime, "ProvidedWorker")
    build = named(worker, "_build_handler_class")
    expect_parameters(build, ["self", "generation", "pending"])

    def build_without_nagle(self, generation, pending):
        handler = build(self, generation, pending)
        named(handler, "disable_nagle_algorithm")
        handler.disable_nagle_algorithm = True
        return handler

    worker._build_handler_class = build_without_nagle


class QuietServer(socketserver.ThreadingTCPServer):
    """A server that sleeps until there is a connection, where `serve_forever` wakes up again and again."""

    def __init__(self, *arguments):
        self._closing, self._closed = False, threading.Event()
        super().__init__(*arguments)

    def serve_forever(self, poll_interval=None):
        # The socket may be closed meanwhile.
        with contextlib.suppress(OSError, ValueError):
            while not self._closing:
                self.handle_request()
        self._closed.set()

    def shutdown(self):
        self._closing = True
        with contextlib.suppress(OSError), socket.create_connection(self.server_address, CLOSING_SECONDS):
            self._closed.wait(CLOSING_SECONDS)


class PatientQueue:
    """A queue whose readers look up less often."""

    def __init__(self, queue):
        self._queue = queue

    def get(self, timeout):
        return self._queue.get(timeout=max(timeout, NEXT_EVENT_SECONDS))


def wait_without_polling(lambda_runtime) -> None:
    """Two threads of each function process wake up ten times a second to see whether it is to end. Of a hundred processes
    they keep the interpreter busy."""
    worker = named(lambda_runtime, "ProvidedWorker")
    build = named(worker, "_build_handler_class")
    expect_parameters(build, ["self", "generation", "pending"])
    if "socketserver" not in named(worker, "_spawn").__code__.co_names:
        raise Mismatch(f"{worker.__qualname__}._spawn should use socketserver, but does not")
    socketserver.ThreadingTCPServer = QuietServer

    def build_patient(self, generation, pending):
        return build(self, generation, PatientQueue(pending))

    worker._build_handler_class = build_patient


def hand_out_events_when_asked(lambda_runtime) -> None:
    """On Lambda an environment gets its next event when its process asks for one. The emulator hands it out
    as soon as the answer to the one before has arrived. A process that ends between its answer and its next
    request would take an event with it."""
    worker = named(lambda_runtime, "ProvidedWorker")
    build, invoke = named(worker, "_build_handler_class"), named(worker, "invoke")
    expect_parameters(build, ["self", "generation", "pending"])
    expect_parameters(invoke, ["self", "event", "request_id", "trace_id", "invoked_function_arn"])

    def build_with_count(self, generation, pending):
        handler = build(self, generation, pending)
        answer = named(handler, "do_GET")
        # Requests for an event, and events that were handed out.
        self.asked, self.handed_out = 0, 0

        def do_get_and_count(request):
            self.asked += 1
            answer(request)
            self.handed_out += 1

        handler.do_GET = do_get_and_count
        return handler

    def invoke_when_asked(self, *arguments, **options):
        until = time.monotonic() + ASKING_SECONDS
        while (
            self._proc is not None
            and self._proc.poll() is None
            and self.asked <= self.handed_out
            and time.monotonic() < until
        ):
            time.sleep(0.0005)
        return invoke(self, *arguments, **options)

    worker._build_handler_class = build_with_count
    worker.invoke = invoke_when_asked


def prepare_processes(lambda_runtime) -> None:
    """Each process of a function is prepared between its start and its first event."""
    worker = named(lambda_runtime, "ProvidedWorker")
    await_init = named(worker, "_await_init")
    expect_parameters(await_init, ["self", "init_timeout"])

    def prepare_and_await_init(self, init_timeout=None):
        if self._proc is not None:
            limit_memory(self._proc.pid, int(self.config.get("MemorySize") or 128))
            let_yield(self._proc.pid)
        await_init(self, init_timeout)

    worker._await_init = prepare_and_await_init


def limit_memory(process: int, mebibytes: int) -> None:
    """The emulator ignores `MemorySize`. A function that needs more ends here as it would on Lambda, and
    does not take the machine's memory. `RLIMIT_DATA` counts what a process may write to, so a part is added
    for stacks that threads reserve and do not use."""
    bytes_max = (mebibytes + STACKS_MEBIBYTES) << 20
    # Other systems have no such call: there functions have no limit.
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process, resource.RLIMIT_DATA, (bytes_max, bytes_max))


def let_yield(process: int) -> None:
    """On AWS the services have machines of their own. Here a function that computes for long would take the
    processor from the emulator, and with it from every other function. So the functions yield to it."""
    # Linux has a niceness for each thread. Others have no such folder.
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), FUNCTIONS_NICENESS)


def do_not_wait_for_log_lines(lambda_runtime) -> None:
    """The emulator delays every answer by up to 50 ms to wait for late log lines. Here all lines also
    go to a file, so it does not need to wait."""
    drain = named(named(lambda_runtime, "Worker"), "_drain_stderr_bounded")
    expect_parameters(drain, ["self", "first_line_wait", "idle_confirm", "hard_cap"])
    _, _, hard_cap = drain.__defaults__
    drain.__defaults__ = (0.0, 0.0, hard_cap)


class TeedStream:
    """A function's output that is also appended, line by line, to its log file."""

    def __init__(self, stream, log):
        self._stream = stream
        self._log = log

    def readline(self) -> bytes:
        line = self._stream.readline()
        if line:
            # One unbuffered write per line, because several processes of a function share the file.
            self._log.write(line)
        return line

    def close(self) -> None:
        self._stream.close()
        self._log.close()


def tee_function_output(lambda_runtime, log_dir: Path, stack: str) -> None:
    """Every line a function prints also goes to `<log dir>/<function>.log`. Functions are named
    `<stack>-<function>` in the template."""
    worker = named(lambda_runtime, "ProvidedWorker")
    pump = named(worker, "_pump_output")
    expect_parameters(pump, ["self", "stream", "log_queue"])

    def pump_and_tee(self, stream, log_queue):
        function = self.func_name.removeprefix(f"{stack}-")
        log = open(log_dir / f"{function}.log", "ab", buffering=0)
        pump(self, TeedStream(stream, log), log_queue)

    worker._pump_output = pump_and_tee
