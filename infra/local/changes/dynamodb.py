"""A faster DynamoDB. No answer of the emulator changes."""

import copy
import functools
import json
import marshal
import re
import types
from typing import NamedTuple

import orjson

from changes.shape import expect_parameters, named

# The texts of statements are those of the functions, so there are few. If a client makes more, the memo begins anew.
TEXTS_MAX = 1000
STATEMENTS_MAX = 25
COMPARABLE = {"S", "N", "B"}
PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
NUMBER_LENGTH_MAX = 38
LEVELS_MAX = 32
# What the emulator has in place of a sort key, in a table without one.
NO_SORT = "__no_sort__"


def execute_batches_directly(dynamodb) -> None:
    """The emulator parses the text of each statement of a batch twice, makes JSON of its answer, and reads it again. That
    was half of the work of an import. Here a text is parsed once, and *plain writes* of plain values, as those of an import
    mostly are, go straight to the table. Any other statement goes the whole way."""
    batch, parse = named(dynamodb, "_batch_execute_statement"), named(dynamodb, "parse_partiql_statement")
    # `insert` below does what this function does: look at both when it changes.
    expect_parameters(named(dynamodb, "_partiql_insert"), ["table", "parsed"])
    set_item, compare = named(dynamodb, "_set_item"), named(dynamodb, "_compare_ddb")
    key_of, size_of = named(dynamodb, "_extract_key_val"), named(dynamodb, "_item_size_bytes")
    size_max, condition_failed = named(dynamodb, "_DDB_ITEM_MAX_BYTES"), named(dynamodb, "_conditional_check_failed")
    tables, answer = named(dynamodb, "_tables"), named(dynamodb, "json_response")
    expect_parameters(batch, ["data"])
    expect_parameters(parse, ["text", "parameters"])
    expect_parameters(set_item, ["table", "pk_val", "sk_val", "item"])
    expect_parameters(condition_failed, ["data", "old_item", "message"])
    plain_writes = {}

    def plain_write(text: str, parameters: int):
        if (text, parameters) not in plain_writes:
            if len(plain_writes) >= TEXTS_MAX:
                plain_writes.clear()
            plain_writes[text, parameters] = plain_write_of(parse, text, parameters)
        return plain_writes[text, parameters]

    def insert(table, write, values):
        """The answer to a plain insert, or None if there is such an item, or it cannot be made."""
        item = {name: values[at] for name, at in write.item}
        key = key_of(item.get(table["pk_name"])), key_of(item.get(table["sk_name"])) if table["sk_name"] else NO_SORT
        if not key[0] or key[1] in table["items"].get(key[0], {}) or is_too_large(item):
            return None
        set_item(table, *key, item)
        return {"TableName": write.table}

    def update(table, write, values, statement):
        """The answer to a plain update, or None if it does not name its item by its key, or cannot be made."""
        conditions = [(name, operator, values[at]) for name, operator, at in write.conditions]
        keys = {name: key_of(value) for name, operator, value in conditions if operator == "=" and name in (table["pk_name"], table["sk_name"])}
        if len(keys) != (2 if table["sk_name"] else 1) or not all(COMPARABLE.issuperset(value) for _, _, value in conditions):
            return None
        key = keys[table["pk_name"]], keys.get(table["sk_name"], NO_SORT)
        item = table["items"].get(key[0], {}).get(key[1])
        if item is None or not all(compare(item.get(name), operator, value) for name, operator, value in conditions):
            error = json.loads(condition_failed(statement, item)[2])
            found = {"Item": error["Item"]} if "Item" in error else {}
            return {"Error": {"Code": "ConditionalCheckFailed", "Message": error["message"], **found}, "TableName": write.table}
        # Attributes are replaced as a whole, so the old and the new item may share the others.
        changed = {**item, **{name: values[at] for name, at in write.assignments}}
        if is_too_large(changed):
            return None
        set_item(table, *key, changed)
        return {"TableName": write.table}

    def is_too_large(item) -> bool:
        # The JSON of an item is longer than the item, and quicker to measure.
        try:
            return len(orjson.dumps(item)) > size_max and size_of(item) > size_max
        except TypeError:  # more than orjson writes
            return size_of(item) > size_max

    def execute(statement):
        """The answer to a plain write that takes effect or whose condition fails, else None."""
        values = statement.get("Parameters") or []
        write = plain_write(statement.get("Statement"), len(values))
        table = write and tables.get(write.table)
        if not table or not all(map(is_plain, values)):
            return None
        return insert(table, write, values) if write.item else update(table, write, values, statement)

    def execute_batch(data):
        statements, capacity = data.get("Statements") or [], data.get("ReturnConsumedCapacity", "NONE")
        if not 1 <= len(statements) <= STATEMENTS_MAX:
            return batch(data)
        responses, units = [], {}
        for statement in statements:
            response = execute(statement)
            if response:
                used = [{"TableName": response["TableName"], "CapacityUnits": 1.0}]
            else:
                _, _, body = batch({"Statements": [statement], "ReturnConsumedCapacity": capacity})
                whole = json.loads(body)
                response, used = whole["Responses"][0], whole.get("ConsumedCapacity", [])
            responses.append(response)
            for table in used:
                units[table["TableName"]] = units.get(table["TableName"], 0.0) + table["CapacityUnits"]
        if capacity == "NONE":
            return answer({"Responses": responses})
        consumed = [{"TableName": name, "CapacityUnits": sum_of_table} for name, sum_of_table in units.items()]
        return answer({"Responses": responses, "ConsumedCapacity": consumed})

    dynamodb._batch_execute_statement = execute_batch


def is_plain(value, level: int = 1) -> bool:
    """Whether it is a text, a flag, a null or a plain number, or a map or list of such: the emulator has nothing to say against it."""
    try:
        ((kind, content),) = value.items()
        if kind == "S":
            return type(content) is str
        if kind in ("BOOL", "NULL"):
            return type(content) is bool
        if kind == "N":
            return len(content) <= NUMBER_LENGTH_MAX and PLAIN_NUMBER.fullmatch(content) is not None
        parts = {"M": dict.values, "L": list.__iter__}[kind](content)
        if level == LEVELS_MAX:
            return False
        for part in parts:
            if not is_plain(part, level + 1):
                return False
        return True
    except (AttributeError, KeyError, TypeError, ValueError):
        return False  # no attribute value, or another kind


class PlainWrite(NamedTuple):
    """`INSERT INTO table VALUE {name: ?, …}`, or `UPDATE table SET name = ? … WHERE name = ? AND …`. Each pair names
    an attribute and the position of its parameter; a condition has its operator in between."""

    table: str
    item: list
    assignments: list
    conditions: list


class Placeholder(dict):
    """A parameter without its value."""

    def __init__(self, position: int):
        super().__init__(S=None)
        self.position = position


def plain_write_of(parse, text: str, parameters: int) -> PlainWrite | None:
    """The plain write with this text, if it is one."""
    try:
        parsed = parse(text, [Placeholder(position) for position in range(parameters)])
        if "RETURNING" in text.upper() or parsed.get("item", {}).keys() == {"M"}:
            return None  # the emulator looks for the word everywhere, and takes such a value as the whole item
        if parsed["op"] == "INSERT":
            item = [(name, value.position) for name, value in parsed["item"].items()]
            write = PlainWrite(parsed["table"], item, [], [])
        elif parsed["op"] == "UPDATE" and not parsed["removes"]:
            assignments = [(name, value.position) for (name,), (_, value, _) in parsed["assignments"]]
            write = PlainWrite(parsed["table"], [], assignments, list(conditions_of(parsed["where"])))
        else:
            return None
    except (AttributeError, TypeError, ValueError):
        return None  # wrong, or no plain write
    used = sorted(pair[-1] for pair in write.item + write.assignments + write.conditions)
    return write if used == list(range(parameters)) else None


def conditions_of(where):
    if where[0] == "and":
        yield from conditions_of(where[1])
        yield from conditions_of(where[2])
    else:
        _, operator, (path, (name,), *_), (_, value, _) = where
        if (where[0], path) != ("cmp", "path"):
            raise ValueError
        yield name, operator, value.position


def parse_expressions_once(dynamodb) -> None:
    """The emulator parses a condition anew for each item that a query reads, and each expression for each request."""
    tokens_of, fault_of = named(dynamodb, "_tokenize"), named(dynamodb, "_condition_syntax_error")
    expect_parameters(tokens_of, ["expr"])
    expect_parameters(fault_of, ["expr", "slot"])
    remembered = functools.lru_cache(TEXTS_MAX)(tokens_of)
    dynamodb._tokenize = lambda expr: list(remembered(expr))
    dynamodb._condition_syntax_error = functools.lru_cache(TEXTS_MAX)(fault_of)


def copy_items_quickly(dynamodb) -> None:
    """The emulator copies items by `copy.deepcopy`, several times for each update. Items are JSON, and `marshal` copies that
    ten times as fast."""
    named(dynamodb, "copy")

    def deepcopy(value, *memo):
        try:
            return marshal.loads(marshal.dumps(value))
        except ValueError:  # more than JSON
            return copy.deepcopy(value, *memo)

    dynamodb.copy = types.SimpleNamespace(copy=copy.copy, deepcopy=deepcopy)
