"""The changes to the emulator, by what they concern. Each function is one change, and its doc is the reason."""

import os
from pathlib import Path

from changes.bodies import parse_bodies_quickly, write_answers_quickly
from changes.dynamodb import copy_items_quickly, execute_batches_directly, parse_expressions_once
from changes.functions import (
    answer_functions_at_once,
    do_not_wait_for_log_lines,
    hand_out_events_when_asked,
    prepare_processes,
    tee_function_output,
    wait_without_polling,
)
from changes.mappings import (
    follow_streams_aside,
    invoke_for_lanes_at_once,
    poll_queues_without_delay,
    take_numbers_from_parameters,
)
from changes.permissions import (
    authorize_batches_as_single_calls,
    authorize_statements_one_by_one,
    hide_missing_objects,
    present_http_as_https,
    record_permissions,
    remember_principals,
)
from changes.shape import Mismatch, check_version
from changes.websockets import pass_refusals_on

__all__ = ["Mismatch", "apply"]

# Names a file to which each permission that a function used is appended.
RECORD_VARIABLE = "ROWMILL_RECORD_PERMISSIONS"


def apply(log_dir: Path, stack: str) -> None:
    """Changes the emulator, before it serves.

    Raises `Mismatch` if it is not the one that the changes were written for."""
    check_version()
    from ministack import app
    from ministack.core import iam_actions, iam_evaluator, lambda_runtime
    from ministack.services import apigateway, dynamodb, lambda_svc, s3
    from ministack.services.cloudformation import provisioners

    present_http_as_https(app, iam_evaluator)
    remember_principals(iam_evaluator)
    parse_bodies_quickly(iam_actions, dynamodb)
    write_answers_quickly(dynamodb)
    if record := os.environ.get(RECORD_VARIABLE):
        record_permissions(iam_evaluator, Path(record))
    authorize_batches_as_single_calls(iam_actions)
    authorize_statements_one_by_one(iam_actions)
    hide_missing_objects(app, iam_evaluator, s3)
    pass_refusals_on(apigateway)
    execute_batches_directly(dynamodb)
    copy_items_quickly(dynamodb)
    parse_expressions_once(dynamodb)
    answer_functions_at_once(lambda_runtime)
    hand_out_events_when_asked(lambda_runtime)
    wait_without_polling(lambda_runtime)
    prepare_processes(lambda_runtime)
    do_not_wait_for_log_lines(lambda_runtime)
    tee_function_output(lambda_runtime, log_dir, stack)
    take_numbers_from_parameters(provisioners)
    invoke_for_lanes_at_once(lambda_svc)
    poll_queues_without_delay(lambda_svc)
    follow_streams_aside(lambda_svc)
