"""Executes the same batches of PartiQL statements, good ones and bad ones, with the changed emulator and the unchanged one.
Answers and stored items must be the same.

    same_answers.py <folder of the launcher> [seed]
"""

import collections
import copy
import json
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

from changes.dynamodb import copy_items_quickly, execute_batches_directly  # noqa: E402
from ministack.services import dynamodb  # noqa: E402

BATCHES = 1000
# Each with the names of its keys. A value `M` alone is the whole item to the emulator, so a key of this name is odd.
TABLES = {"records": ["bucket", "key"], "single": ["bucket"], "odd": ["M"]}
INSERT = "INSERT INTO \"%s\" VALUE {'bucket': ?, 'key': ?, 'version': ?, 'fields': ?}"
UPDATE = 'UPDATE "%s" SET "version" = ? SET "fields" = ? WHERE "bucket" = ? AND "key" = ? AND "version" < ?'
KEY = 'WHERE "bucket" = ? AND "key" = ?'


def nested(levels: int) -> dict:
    value = {"S": "x"}
    for level in range(levels - 1):
        value = {"L": [value]} if level % 2 else {"M": {"a": value}}
    return value


VALUES = [
    {"S": "x"}, {"S": ""}, {"S": "y" * 410_000}, {"N": "1"}, {"N": "-12.50e3"}, {"N": "1e999"}, {"N": "one"}, {"BOOL": True},
    {"NULL": True}, {"L": [{"N": "1"}, {"S": ""}]}, {"L": [{"N": "1e999"}]}, {"M": {}}, {"M": {"a": {"N": "-0.5"}, "b": {"S": "é"}}},
    {"N": "9" * 38}, {"N": "9" * 39}, {"M": {"a": {"N": "7"}, "b": {"N": "1e999"}}}, {"S": "\n" * 250_000},
    {"SS": ["a", "b"]}, {"B": "YWI="}, {}, {"X": 1}, {"X": 2**70}, {"N": "-7"}, {"N": "12.50"}, {"N": "٣"}, {"N": "1.0\n"}, {"N": "0." + "0" * 140 + "1"},
    {"M": {"before": {"M": {"a": {"N": "-2.5"}, "b": {"L": [{"NULL": True}, {"M": {"c": {"N": "1e999"}}}]}}}}},
    *map(nested, (31, 32, 33)),
]  # fmt: skip
# Most of them end the whole batch.
MALFORMED = [
    {"N": 5}, {"L": {"S": "x"}}, {"M": [{"S": "x"}]}, {"L": "ab"}, {"M": None}, {"S": None}, {"S": 5}, {"BOOL": "x"}, {"NULL": None},
    nested(600),
]  # fmt: skip


def statement(chance: random.Random) -> dict:
    bucket, key = ({"S": f"{name}{chance.randrange(6)}"} for name in "bk")
    version = {"S": f"v{chance.randrange(9)}"}
    if chance.random() < 0.1:
        key = chance.choice(VALUES)
    if chance.random() < 0.1:
        version = chance.choice(VALUES)
    fields = chance.choice(VALUES if chance.random() < 0.99 else MALFORMED)
    text, parameters = chance.choices(
        [
            (INSERT, [bucket, key, version, fields]),
            (UPDATE, [version, fields, bucket, key, version]),
            (f'UPDATE "%s" SET "version" = ? {KEY} AND "version" < ?', [version, bucket, key, version]),
            (f'UPDATE "%s" SET "version" = ? {KEY} RETURNING ALL NEW *', [version, bucket, key]),
            (f'UPDATE "%s" SET "version" = ?, "fields" = "version" {KEY}', [version, bucket, key]),
            (f'UPDATE "%s" REMOVE "fields" {KEY}', [bucket, key]),
            (f'UPDATE "%s" SET "n" = 5 {KEY} AND ("version" < ? OR "n" = ?)', [bucket, key, version, version]),
            (f'DELETE FROM "%s" {KEY}', [bucket, key]),
            (f'SELECT * FROM "%s" {KEY}', [bucket, key]),
            ("INSERT INTO \"%s\" VALUE {'bucket': ?, 'key': ?, 'n': 1.50}", [bucket, key]),
            ('INSERT INTO "%s" VALUE ?', [{"M": {"bucket": bucket, "key": key}}]),
            ("INSERT INTO \"%s\" VALUE {'M': ?}", [chance.choice([key, {"M": {"M": key}}])]),
            ("INSERT INTO \"%s\" VALUE {'bucket': ?, 'key': ?, 'a RETURNING b': ?}", [bucket, key, version]),
            ("?%s", [bucket]),
        ],
        weights=[8, 8, 4] + 11 * [1],
    )[0]
    parameters = parameters[: chance.choice([None] * 20 + [-1])] + chance.choice([[]] * 20 + [[version]])
    made = {"Statement": text % chance.choice(["records"] * 16 + ["single"] * 3 + ["odd", "unknown"]), "Parameters": parameters}
    if chance.random() < 0.5:
        made["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return made


def outcome(execute, request: dict, tables: dict):
    """The answer of this version and the tables after it, from the same tables before it."""
    for name, contents in tables.items():
        dynamodb._tables[name].update(copy.deepcopy(contents))
    try:
        status, _, body = execute(copy.deepcopy(request))
        answer = status, json.loads(body)
    except Exception as error:
        answer = type(error).__name__, None
    return answer, {name: {part: dynamodb._tables[name][part] for part in tables[name]} for name in tables}


def create(name: str, keys: list) -> None:
    attributes = [{"AttributeName": key, "AttributeType": "S"} for key in keys]
    schema = [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]
    table = {"TableName": name, "KeySchema": schema, "AttributeDefinitions": attributes, "BillingMode": "PAY_PER_REQUEST"}
    assert dynamodb._create_table(table)[0] == 200


def main() -> int:
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance = random.Random(seed)
    for name, keys in TABLES.items():
        create(name, keys)
    unchanged = dynamodb._batch_execute_statement
    execute_batches_directly(dynamodb)
    copy_items_quickly(dynamodb)
    changed = dynamodb._batch_execute_statement

    tables = {name: {"items": {}, "ItemCount": 0, "TableSizeBytes": 0} for name in TABLES}
    seen = collections.Counter()
    for number in range(BATCHES):
        request = {"Statements": [statement(chance) for _ in range(chance.choice([1, 3, 25, 25, 26]))]}
        if chance.random() < 0.5:
            request["ReturnConsumedCapacity"] = "TOTAL"
        expected, found = (outcome(execute, request, tables) for execute in (unchanged, changed))
        if expected != found:
            print(f"seed {seed}, batch {number}: {json.dumps(request)[:300]}\nunchanged: {str(expected[0])[:800]}\nchanged:   {str(found[0])[:800]}")
            return 1
        (status, body), tables = expected
        for answer in (body or {}).get("Responses", []):
            seen[answer.get("Error", {}).get("Code", "done")] += 1
    few = [kind for kind in ("done", "DuplicateItem", "ConditionalCheckFailed", "ValidationError", "ResourceNotFound") if seen[kind] < 100]
    print(f"{BATCHES} batches: {dict(seen)}")
    if few:
        print(f"too few answers to prove anything: {few}")
    return 1 if few else 0


sys.exit(main())
