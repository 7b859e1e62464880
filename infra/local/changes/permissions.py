"""Who may do what: IAM as AWS evaluates it."""

import contextvars
import inspect
import itertools
import re
import time
from pathlib import Path

from changes.shape import Mismatch, expect_parameters, named

HOST = "127.0.0.1"
# For how long the emulator may remember who calls and what the caller may do.
PRINCIPAL_SECONDS = 1.0
# The beginning of a PartiQL statement that writes to a table.
STATEMENT = re.compile(r'\s*(?P<verb>INSERT|UPDATE|DELETE)\s+(?:INTO\s+|FROM\s+)?"(?P<table>[^"]+)"', re.IGNORECASE)


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
        statements = [STATEMENT.match(entry["Statement"]) for entry in iam_actions.json.loads(body)["Statements"]]
        arn = f"arn:aws:dynamodb:{region}:{account_id}:table/"
        needed = [(f"dynamodb:PartiQL{found['verb'].capitalize()}", arn + found["table"]) for found in statements]
        return list(dict.fromkeys(needed))

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
