"""Runs the embedded local stack: the pinned emulator on one loopback port, in this process.

`apply_changes` patches the emulator at run time. Each patch checks the parts that it replaces, and
the launcher refuses to start if one is missing or has another shape. The reason for a patch is
documented at the patch; `README.md` in this folder has the measurements.

Exits on SIGTERM or SIGINT. With `--exit-with-stdin` it also exits when standard input closes before
`stay` was written to it, that is, when the program that started it dies. In both cases all function
processes are ended.
"""

import argparse
import asyncio
import contextlib
import contextvars
import gc
import importlib.metadata
import inspect
import itertools
import json
import os
import re
import resource
import signal
import sys
import threading
import time
from pathlib import Path

EMULATOR_VERSION = "1.5.33"
HOST = "127.0.0.1"
# Time for running requests to end before the emulator stops.
GRACE_SECONDS = 2.0
# Pause between two polls of the tables' streams when there was no record.
STREAM_PAUSE_SECONDS = 0.02
# The longest wait for a function that has answered and neither asks for the next event nor ends.
ASKING_SECONDS = 5.0
# For how long the emulator may remember who calls and what the caller may do.
PRINCIPAL_SECONDS = 1.0
# What a function may reserve beyond its MemorySize: threads have stacks of 2 MiB that they hardly use.
STACKS_MEBIBYTES = 64
# How far functions stand back behind the emulator: from 0, not at all, to 19.
FUNCTIONS_NICENESS = 10
# Names a file to which each permission that a function used is appended.
RECORD_VARIABLE = "ROWMILL_RECORD_PERMISSIONS"
# The beginning of a PartiQL statement that writes to a table.
STATEMENT = re.compile(r'\s*(?P<verb>INSERT|UPDATE|DELETE)\s+(?:INTO\s+|FROM\s+)?"(?P<table>[^"]+)"', re.IGNORECASE)


class Mismatch(Exception):
    """The installed emulator is not the one this launcher was written for."""


def main() -> int:
    arguments = parse_arguments()
    try:
        prepare_environment(arguments.port, arguments.log_level, arguments.functions_endpoint_url)
        check_version()
        apply_changes(arguments.log_dir, arguments.stack)
    except Mismatch as mismatch:
        print(f"launcher: {mismatch}", file=sys.stderr)
        return 2
    return serve(arguments.port, arguments.exit_with_stdin)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True, help="loopback port to listen on")
    parser.add_argument("--log-dir", type=Path, required=True, help="folder for one <function>.log each")
    parser.add_argument("--stack", required=True, help="name of the stack whose functions will run")
    parser.add_argument("--functions-endpoint-url", help="AWS endpoint of the functions, if not this port (for tests)")
    parser.add_argument("--log-level", default="WARNING", help="log level of the emulator itself")
    parser.add_argument("--exit-with-stdin", action="store_true", help="exit when standard input closes, unless `stay` was written to it")
    arguments = parser.parse_args()
    arguments.log_dir.mkdir(parents=True, exist_ok=True)
    return arguments


def prepare_environment(port: int, log_level: str, functions_endpoint_url: str | None) -> None:
    """Sets the environment of the emulator. Must run before the emulator is imported."""
    os.environ.update(
        GATEWAY_PORT=str(port),
        BIND_HOST=HOST,
        MINISTACK_HOST=HOST,
        LAMBDA_EXECUTOR="local",
        # IAM policies, S3 signatures and the bucket's CORS rules are enforced. Each function gets a session of its role.
        AUTH="true",
        # The root user of the emulated account, for the command and the tests.
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        LOG_LEVEL=log_level,
        # The only source of the functions' endpoint.
        AWS_ENDPOINT_URL=functions_endpoint_url or f"http://{HOST}:{port}",
        # Services with ports of their own that Rowmill does not use.
        IOT_MTLS_ENABLED="0",
        SFTP_ENABLED="0",
        # The emulator removes labelled containers from any Docker it finds, so it must find none.
        DOCKER_HOST="unix:///nonexistent",
        # Functions must not inherit metadata, proxy or profile settings from the developer's shell.
        AWS_EC2_METADATA_DISABLED="true",
        NO_PROXY="127.0.0.1,localhost",
    )
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "PERSIST_STATE", "S3_PERSIST", "USE_SSL"):
        os.environ.pop(name, None)


def check_version() -> None:
    installed = importlib.metadata.version("ministack")
    if installed != EMULATOR_VERSION:
        raise Mismatch(f"written for ministack {EMULATOR_VERSION}, found {installed}")


# -- Changes to the emulator --------------------------------------------------------------------------


def apply_changes(log_dir: Path, stack: str) -> None:
    from ministack import app
    from ministack.core import iam_actions, iam_evaluator, lambda_runtime
    from ministack.services import apigateway, lambda_svc, s3

    present_http_as_https(app, iam_evaluator)
    remember_principals(iam_evaluator)
    if record := os.environ.get(RECORD_VARIABLE):
        record_permissions(iam_evaluator, Path(record))
    authorize_batches_as_single_calls(iam_actions)
    authorize_statements_one_by_one(iam_actions)
    hide_missing_objects(app, iam_evaluator, s3)
    pass_refusals_on(apigateway)
    answer_functions_at_once(lambda_runtime)
    hand_out_events_when_asked(lambda_runtime)
    prepare_processes(lambda_runtime)
    do_not_wait_for_log_lines(lambda_runtime)
    tee_function_output(lambda_runtime, log_dir, stack)
    take_concurrency_from_parameters(lambda_svc)
    poll_queues_without_pause(lambda_svc)
    follow_streams_aside(lambda_svc)


def named(owner: object, name: str) -> object:
    """`owner.name`, or a `Mismatch` with the missing name."""
    try:
        return getattr(owner, name)
    except AttributeError:
        where = getattr(owner, "__qualname__", None) or getattr(owner, "__name__", repr(owner))
        raise Mismatch(f"ministack {EMULATOR_VERSION} should have {where}.{name}, but has not") from None


def expect_parameters(function: object, expected: list[str]) -> None:
    found = list(inspect.signature(function).parameters)
    if found != expected:
        raise Mismatch(f"{function.__qualname__} should take {expected}, but takes {found}")


def present_http_as_https(app, iam_evaluator) -> None:
    """The policies of the bucket and of the queues deny requests without TLS (`aws:SecureTransport`), and
    the emulator is served over plain HTTP on the loopback interface. Policies see each request as if it
    came over TLS, also those that the emulator makes by itself, such as the bucket's notifications. With a
    certificate of its own, every client of the local stack would have to trust it."""
    pin = named(app, "pin_request_origin")
    expect_parameters(pin, ["source_ip", "secure_transport"])
    origin = named(iam_evaluator, "_request_origin")
    if origin.get() != (HOST, False):
        raise Mismatch(f"{iam_evaluator.__name__}._request_origin should be plain HTTP from {HOST} by default, but is not")
    iam_evaluator._request_origin = contextvars.ContextVar(origin.name, default=(HOST, True))

    def pin_as_https(source_ip, secure_transport):
        pin(source_ip, True)

    app.pin_request_origin = pin_as_https


def remember_principals(iam_evaluator) -> None:
    """The emulator finds out who calls, and parses the policies of the caller's role, twice for each request. Here it
    remembers both for a moment. On AWS, too, a change of a policy is effective after a while only."""
    for name, parameters in (
        ("resolve_credential", ["access_key_id", "account_id", "session_token"]),
        ("resolve_principal", ["access_key_id", "account_id", "credential"]),
    ):
        resolve = named(iam_evaluator, name)
        expect_parameters(resolve, parameters)
        setattr(iam_evaluator, name, remembered(resolve))


def remembered(function):
    """The function, which remembers its answer to the same arguments for `PRINCIPAL_SECONDS`."""
    answers, until = {}, 0.0

    def answer(*arguments, **named_arguments):
        nonlocal until
        now = time.monotonic()
        if now >= until:
            answers.clear()
            until = now + PRINCIPAL_SECONDS
        key = arguments + tuple(named_arguments.items())
        if key not in answers:
            answers[key] = function(*arguments, **named_arguments)
        return answers[key]

    return answer


def record_permissions(iam_evaluator, record: Path) -> None:
    """Appends `<role> <statement> <action> <resource>` to a file, once for each permission that allowed a call: the role by
    its logical id, the statement by its Sid, the resource by its position in the statement. Several stacks may share a file.
    `tests/tests/template/permissions` compares the file with the template."""
    gather = named(iam_evaluator, "_gather_role_policies")
    expect_parameters(gather, ["role_name", "account_id"])
    evaluate, first_match = named(iam_evaluator, "evaluate"), named(iam_evaluator, "_first_match")
    expect_parameters(evaluate, ["ctx", "policies", "limits"])
    expect_parameters(first_match, ["ctx", "stmts", "effect"])
    matches = named(iam_evaluator, "fnmatch_iam_cs")
    recorded = set()

    def gather_with_roles(role_name, account_id):
        policies = gather(role_name, account_id)
        for statement in itertools.chain.from_iterable(policies):
            # CloudFormation names a role `<stack>-<logical id>-<suffix>`.
            statement.role = role_name.split("-")[-2]
        return policies

    def evaluate_and_record(ctx, policies, *limits):
        result = evaluate(ctx, policies, *limits)
        # The statements of a resource's own policy have no role.
        own = [statement for statement in itertools.chain.from_iterable(policies) if hasattr(statement, "role")]
        if result.decision == "Allow" and (statement := first_match(ctx, own, "Allow")):
            position = next(at for at, pattern in enumerate(statement.resources) if matches(ctx.resource_arn, pattern))
            line = f"{statement.role} {statement.sid} {ctx.action} {position}\n"
            if line not in recorded:
                recorded.add(line)
                # One write per line, because several stacks may share the file.
                with open(record, "ab", buffering=0) as file:
                    file.write(line.encode())
        return result

    iam_evaluator._gather_role_policies = gather_with_roles
    iam_evaluator.evaluate = evaluate_and_record


def authorize_batches_as_single_calls(iam_actions) -> None:
    """AWS has no permission for a batch of messages: a batch needs that of the single call. The emulator
    checks an action with the name of the batch, which no right policy allows."""
    extract = named(iam_actions, "extract_iam_action")

    def extract_single(*arguments, **named_arguments):
        action = extract(*arguments, **named_arguments)
        return action.removesuffix("Batch") if action and action.startswith("sqs:") else action

    iam_actions.extract_iam_action = extract_single


def authorize_statements_one_by_one(iam_actions) -> None:
    """AWS has no permission for a batch of PartiQL statements either: each statement needs the permission
    of what it does (`dynamodb:PartiQLInsert`, …) on its table."""
    checks = named(iam_actions, "dynamodb_transaction_checks")
    expect_parameters(checks, ["iam_action", "body", "region", "account_id"])

    def checks_of_statements(iam_action, body, region, account_id):
        if iam_action != "dynamodb:BatchExecuteStatement":
            return checks(iam_action, body, region, account_id)
        statements = [STATEMENT.match(entry["Statement"]) for entry in json.loads(body)["Statements"]]
        arn = f"arn:aws:dynamodb:{region}:{account_id}:table/"
        return [(f"dynamodb:PartiQL{found['verb'].capitalize()}", arn + found["table"]) for found in statements]

    iam_actions.dynamodb_transaction_checks = checks_of_statements


def hide_missing_objects(app, iam_evaluator, s3) -> None:
    """S3 tells that an object is missing only to those who may list the bucket (`s3:ListBucket`). To others its
    answer is 403. The emulator tells everybody."""
    handle = named(s3, "handle_request")
    if list(inspect.signature(handle).parameters)[:5] != ["method", "path", "headers", "body", "query_params"]:
        raise Mismatch(f"{s3.__name__}.handle_request should begin with method, path, headers, body, query_params")
    parse, error = named(s3, "_parse_bucket_key"), named(s3, "_error")
    caller, region_of = named(app, "extract_access_key_id"), named(app, "extract_region")
    enforce = named(iam_evaluator, "enforce")

    async def handle_and_hide(method, path, headers, body, query_params, *others, **named_others):
        answer = await handle(method, path, headers, body, query_params, *others, **named_others)
        bucket, key = parse(path, headers)
        if answer[0] != 404 or method not in ("GET", "HEAD") or not key or "uploadId" in query_params:
            return answer
        arn, region = f"arn:aws:s3:::{bucket}", region_of(headers, query_params)
        if enforce(caller(headers, query_params), "s3:ListBucket", "s3", region, resource_arn=arn) is None:
            return answer
        status, answer_headers, answer_body = error("AccessDenied", "Access Denied", 403, path)
        return status, answer_headers, b"" if method == "HEAD" else answer_body

    s3.handle_request = handle_and_hide


def pass_refusals_on(apigateway) -> None:
    """API Gateway answers the handshake of a WebSocket that the function of `$connect` refuses with the function's
    status. The emulator closes it, and the server makes 403 of that."""
    handle, invoke = named(apigateway, "handle_websocket"), named(apigateway, "_invoke_ws_lambda")
    refuse = named(apigateway, "_refuse_ws_handshake")
    expect_parameters(handle, ["scope", "receive", "send", "api_id", "path_override"])
    expect_parameters(refuse, ["scope", "send", "status", "message", "connection_id", "request_id"])
    if list(inspect.signature(invoke).parameters)[5:8] != ["connection_id", "event_type", "message_id"]:
        raise Mismatch(f"{invoke.__qualname__} should take connection_id, event_type, message_id from its sixth parameter on")
    refusals = contextvars.ContextVar("refusals")

    async def invoke_and_note(*arguments, **named_arguments):
        answer = await invoke(*arguments, **named_arguments)
        connection_id, event_type, request_id = arguments[5:8]
        status = int((answer or {}).get("statusCode", 200))
        if event_type == "CONNECT" and not 200 <= status < 300:
            refusals.get().append((status, "", connection_id, request_id))
        return answer

    async def handle_and_answer(scope, receive, send, api_id, path_override=None):
        refused = []
        refusals.set(refused)

        async def send_or_refuse(message):
            if message["type"] == "websocket.close" and refused:
                await refuse(scope, send, *refused.pop())
            else:
                await send(message)

        await handle(scope, receive, send_or_refuse, api_id, path_override)

    apigateway._invoke_ws_lambda = invoke_and_note
    apigateway.handle_websocket = handle_and_answer


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


def take_concurrency_from_parameters(lambda_svc) -> None:
    """A `MaximumConcurrency` or `BatchSize` from a template parameter is text, and the comparison with it ends the
    poller of all queues. And the emulator invokes a function for one batch of a FIFO queue at a time, because its batches
    may span message groups. A batch of one message spans none: such mappings have the concurrency that they ask for."""
    limit = named(lambda_svc, "_sqs_esm_concurrency")
    expect_parameters(limit, ["esm", "func_rec", "config", "queue"])

    def limit_as_number(esm, func_rec, config, queue=None):
        scaling = esm.get("ScalingConfig") or {}
        if isinstance(scaling.get("MaximumConcurrency"), str):
            scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
        if isinstance(esm.get("BatchSize"), str):
            esm["BatchSize"] = int(esm["BatchSize"])
        spans_no_groups = esm.get("BatchSize") == 1
        return limit(esm, func_rec, config, None if spans_no_groups else queue)

    lambda_svc._sqs_esm_concurrency = limit_as_number


def poll_queues_without_pause(lambda_svc) -> None:
    """Every send and every write to a table with a stream wakes the poller of event source mappings.
    If all workers are busy then, the poller sleeps for 50 ms, and a worker that becomes idle in that
    time gets no work. A poll takes microseconds, so a pause of a millisecond is enough."""
    gap = "_ESM_IDLE_WAKE_GAP_SECONDS"
    named(lambda_svc, gap)
    if gap not in named(lambda_svc, "_poll_loop").__code__.co_names:
        raise Mismatch(f"{lambda_svc.__name__}._poll_loop should use {gap}, but does not")
    setattr(lambda_svc, gap, 0.001)


def follow_streams_aside(lambda_svc) -> None:
    """The poller of all queues also delivers stream records and waits for the function each time. A
    function that starts, retries a call, or waits would block every queue and every other stream. Each
    mapping of a stream gets its own thread.

    The emulator knows no batching windows. A mapping with one gets its next batch after a tenth of the
    window, so that a busy table does not invoke a function all the time, and a single change still
    arrives at once."""
    poll, mappings = named(lambda_svc, "_poll_dynamodb_streams"), named(lambda_svc, "_iter_all_esms")
    expect_parameters(poll, [])
    expect_parameters(mappings, [])
    if "_poll_dynamodb_streams" not in named(lambda_svc, "_poll_loop").__code__.co_names:
        raise Mismatch(f"{lambda_svc.__name__}._poll_loop should call _poll_dynamodb_streams, but does not")
    if "_iter_all_esms" not in poll.__code__.co_names:
        raise Mismatch(f"{lambda_svc.__name__}._poll_dynamodb_streams should call _iter_all_esms, but does not")
    thread, followers = threading.local(), {}

    def mappings_of_thread() -> list:
        only = getattr(thread, "mapping", None)
        return [found for found in mappings() if only is None or found[2]["UUID"] == only]

    def follow(mapping: str) -> None:
        thread.mapping = mapping
        while found := mappings_of_thread():
            handed_over = False
            # The poller ignores failures too.
            with contextlib.suppress(Exception):
                handed_over = poll()
            window = float(found[0][2].get("MaximumBatchingWindowInSeconds") or 0)
            time.sleep(window / 10 if handed_over else STREAM_PAUSE_SECONDS)
        del followers[mapping]

    def leave_to_the_followers() -> bool:
        for _, _, mapping in mappings():
            uuid = mapping["UUID"]
            if ":dynamodb:" in mapping.get("EventSourceArn", "") and uuid not in followers:
                followers[uuid] = threading.Thread(target=follow, args=[uuid], daemon=True, name="launcher-stream")
                followers[uuid].start()
        return False

    lambda_svc._iter_all_esms = mappings_of_thread
    lambda_svc._poll_dynamodb_streams = leave_to_the_followers


# -- Serving ------------------------------------------------------------------------------------------


def serve(port: int, exit_with_stdin: bool) -> int:
    from hypercorn.asyncio import serve as hypercorn_serve
    from hypercorn.config import Config
    from ministack.app import app

    config = Config()
    config.bind = [f"{HOST}:{port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = GRACE_SECONDS
    config.loglevel = os.environ["LOG_LEVEL"]

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        # The terminal that started it may close.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if exit_with_stdin:
            watch_stdin(lambda: loop.call_soon_threadsafe(stop.set))
        # Running invocations would block the server's shutdown, so their functions are ended first.
        server = asyncio.ensure_future(hypercorn_serve(app, config, shutdown_trigger=stop.wait))
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait({server, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            await loop.run_in_executor(None, stop_functions)
            await asyncio.wait({server}, timeout=GRACE_SECONDS * 2)
        if server.done():
            server.result()  # raises its error, for example that the port is in use

    # Objects created by the imports stay alive, so the garbage collector does not need to scan them.
    gc.collect()
    gc.freeze()
    try:
        asyncio.run(run())
    finally:
        stop_functions()
    # Do not wait for threads of the emulator that still sleep.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def watch_stdin(closed) -> None:
    def read_to_the_end() -> None:
        said = b""
        with contextlib.suppress(OSError):
            while part := os.read(0, 4096):
                said += part
        if said.strip() != b"stay":
            closed()

    threading.Thread(target=read_to_the_end, daemon=True, name="launcher-stdin").start()


def stop_functions() -> None:
    """Ends every function process. The emulator itself does not do that when it stops."""
    from ministack.core import lambda_runtime

    lambda_runtime.reset()


if __name__ == "__main__":
    sys.exit(main())
