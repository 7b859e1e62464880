"""The JSON of requests and answers, quicker."""

import json
import types

import orjson

from changes.shape import expect_parameters, named


def parse_bodies_quickly(iam_actions, dynamodb) -> None:
    """To find out what a request does, the emulator parses its body up to four times, by Python's own parser. Here it parses
    it once, and by a compiled parser. Then the handler of the request takes what was parsed, and may change it."""
    last = (None, None)

    def parse_once(body, **options):
        nonlocal last
        last_body, parsed = last
        if body is not last_body or options:
            parsed = parse(body, **options)
            last = (body, parsed)
        return parsed

    def take(body, **options):
        nonlocal last
        parsed = parse_once(body, **options)
        last = (None, None)
        return parsed

    for module, loads in ((iam_actions, parse_once), (dynamodb, take)):
        named(named(module, "json"), "loads")
        module.json = types.SimpleNamespace(**{**vars(json), "loads": loads})


def parse(text, **options):
    try:
        return json.loads(text, **options) if options else orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)  # the same error, or what only Python's parser takes


def write_answers_quickly(dynamodb) -> None:
    """The answers of DynamoDB are written by a compiled writer."""
    respond = named(dynamodb, "json_response")
    expect_parameters(respond, ["data", "status", "content_type"])

    def respond_quickly(data, *arguments, **options):
        try:
            body = orjson.dumps(data)
        except TypeError:
            return respond(data, *arguments, **options)
        status, headers, _ = respond({}, *arguments, **options)
        return status, headers, body

    dynamodb.json_response = respond_quickly
