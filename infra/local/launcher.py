"""Runs the embedded local stack: the pinned emulator on one loopback port, in this process.

The folder `changes` patches the emulator at run time. Each change checks the parts that it replaces, and
the launcher refuses to start if one is missing or has another shape. The reason for a change is
documented at the change; `README.md` in this folder has the measurements.

Exits on SIGTERM or SIGINT. With `--exit-with-stdin` it also exits when standard input closes before
`stay` was written to it, that is, when the program that started it dies. In both cases all function
processes are ended.
"""

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from pathlib import Path

# Python runs this file isolated (`-I`), without the script's folder in its path. The first start compiles what it imports, for
# the later ones, and writes nothing among the sources.
sys.path.insert(0, str(Path(__file__).parent))
sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")

import changes  # noqa: E402

HOST = "127.0.0.1"
# Time for running requests to end before the emulator stops.
GRACE_SECONDS = 2.0


def main() -> int:
    arguments = parse_arguments()
    try:
        prepare_environment(arguments.port, arguments.log_level, arguments.functions_endpoint_url)
        changes.apply(arguments.log_dir, arguments.stack)
    except changes.Mismatch as mismatch:
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


def serve(port: int, exit_with_stdin: bool) -> int:
    import uvicorn
    import uvloop
    from ministack.app import app

    from changes.gateway import with_body_quota

    # The emulator comes with hypercorn. This server and this loop are compiled: a request costs them a tenth of it.
    config = uvicorn.Config(
        with_body_quota(app),
        http="httptools",
        ws="wsproto",
        lifespan="on",
        log_level=os.environ["LOG_LEVEL"].lower(),
        access_log=False,
        server_header=False,
        date_header=False,  # the emulator's
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

    async def run() -> None:
        server, loop = Server(config), asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        # The terminal that started it may close.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if exit_with_stdin:
            watch_stdin(lambda: loop.call_soon_threadsafe(stop.set))
        # The socket is made here, for a clear error if the port is in use.
        serving = asyncio.ensure_future(server.serve([socket.create_server((HOST, port), backlog=2048)]))
        stopped = asyncio.ensure_future(stop.wait())
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            # Running invocations would block the server's shutdown, so their functions are ended first.
            await loop.run_in_executor(None, stop_functions)
            server.should_exit = True
            await asyncio.wait({serving}, timeout=GRACE_SECONDS * 2)
        if serving.done():
            serving.result()  # raises its error

    class Server(uvicorn.Server):
        # The signals are those of `run`.
        capture_signals = contextlib.nullcontext

    # Objects created by the imports stay alive, so the garbage collector does not need to scan them. Nor does it need to
    # scan the items of the tables each time they have grown by a quarter.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 1000)
    try:
        asyncio.Runner(loop_factory=uvloop.new_event_loop).run(run())
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
