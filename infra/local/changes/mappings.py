"""Event source mappings: which batches of queues and streams invoke which function, and when."""

import contextlib
import threading
import time

from changes.shape import Mismatch, expect_parameters, named

# Interval between two polls of the tables' streams when there was no record.
STREAM_INTERVAL_SECONDS = 0.02


def take_numbers_from_parameters(provisioners) -> None:
    """A `MaximumConcurrency` or `BatchSize` from a template parameter is text. The comparison with it ends the poller of all
    queues, and no SDK can read a list of mappings with it."""
    handlers = named(provisioners, "_RESOURCE_HANDLERS")["AWS::Lambda::EventSourceMapping"]
    create, update = handlers["create"], handlers["update"]
    expect_parameters(create, ["logical_id", "props", "stack_name"])
    expect_parameters(update, ["physical_id", "old_props", "new_props", "stack_name"])

    def with_numbers(properties: dict) -> dict:
        scaling = {name: int(value) for name, value in (properties.get("ScalingConfig") or {}).items()}
        batch = {"BatchSize": int(properties["BatchSize"])} if "BatchSize" in properties else {}
        return properties | batch | ({"ScalingConfig": scaling} if scaling else {})

    def create_with_numbers(logical_id, props, stack_name):
        return create(logical_id, with_numbers(props), stack_name)

    def update_with_numbers(physical_id, old_props, new_props, stack_name):
        return update(physical_id, old_props, with_numbers(new_props), stack_name)

    handlers.update(create=create_with_numbers, update=update_with_numbers)


def invoke_for_lanes_at_once(lambda_svc) -> None:
    """The emulator invokes a function for one batch of a FIFO queue at a time, because its batches may span message groups.
    A batch of one message spans none: such mappings have the concurrency that they ask for."""
    limit = named(lambda_svc, "_sqs_esm_concurrency")
    expect_parameters(limit, ["esm", "func_rec", "config", "queue"])

    def limit_by_groups(esm, func_rec, config, queue=None):
        return limit(esm, func_rec, config, None if esm.get("BatchSize") == 1 else queue)

    lambda_svc._sqs_esm_concurrency = limit_by_groups


def poll_queues_without_delay(lambda_svc) -> None:
    """Every send and every write to a table with a stream wakes the poller of event source mappings.
    If all workers are busy then, the poller sleeps for 50 ms, and a worker that becomes idle in that
    time gets no work. A poll takes microseconds, so a sleep of a millisecond is enough."""
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
            time.sleep(window / 10 if handed_over else STREAM_INTERVAL_SECONDS)
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
