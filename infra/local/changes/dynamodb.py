"""A faster DynamoDB. No answer of the emulator changes."""

import copy
import functools
import json
import marshal
import types
from typing import NamedTuple

import orjson

from changes.shape import expect_parameters, named

# The texts of statements are those of the functions, so there are few. If a client makes more, the memo begins anew.
TEXTS_MAX = 1000
STATEMENTS_MAX = 25
COMPARABLE = {"S", "N", "B"}
UNCHECKED = {"S", "BOOL", "NULL"}
DIGITS_MAX = 38


def execute_batches_directly(dynamodb) -> None:
    """The emulator parses the text of each statement of a batch twice, makes JSON of its answer, and reads it again. That
    was half of the work of an import. Here a text is parsed once, and *plain writes*, which all those of an import are, go
    straight to the emulator's functions for one item. Any other statement goes the whole way."""
    batch, parse = named(dynamodb, "_batch_execute_statement"), named(dynamodb, "parse_partiql_statement")
    insert, set_item = named(dynamodb, "_partiql_insert"), named(dynamodb, "_set_item")
    parameter_error, compare = named(dynamodb, "_partiql_parameter_error"), named(dynamodb, "_compare_ddb")
    key_of, size_of = named(dynamodb, "_extract_key_val"), named(dynamodb, "_item_size_bytes")
    size_max, condition_failed = named(dynamodb, "_DDB_ITEM_MAX_BYTES"), named(dynamodb, "_conditional_check_failed")
    tables, answer = named(dynamodb, "_tables"), named(dynamodb, "json_response")
    expect_parameters(batch, ["data"])
    expect_parameters(parse, ["text", "parameters"])
    expect_parameters(insert, ["table", "parsed"])
    expect_parameters(set_item, ["table", "pk_val", "sk_val", "item"])
    expect_parameters(condition_failed, ["data", "old_item", "message"])
    plain_writes = {}

    def plain_write(text: str, parameters: int):
        if (text, parameters) not in plain_writes:
            if len(plain_writes) >= TEXTS_MAX:
                plain_writes.clear()
            plain_writes[text, parameters] = plain_write_of(parse, text, parameters)
        return plain_writes[text, parameters]

    def update(table, write, values, statement):
        """The answer to a plain update, or None if it does not name its item by its key, or cannot be made."""
        conditions = [(name, operator, values[at]) for name, operator, at in write.conditions]
        keys = {name: key_of(value) for name, operator, value in conditions if operator == "=" and name in (table["pk_name"], table["sk_name"])}
        if len(keys) != (2 if table["sk_name"] else 1) or not all(COMPARABLE.issuperset(value) for _, _, value in conditions):
            return None
        key = keys[table["pk_name"]], keys.get(table["sk_name"], "__no_sort__")
        item = table["items"].get(key[0], {}).get(key[1])
        if item is None or not all(compare(item.get(name), operator, value) for name, operator, value in conditions):
            return condition_failed(statement, item)
        # Attributes are replaced as a whole, so the old and the new item may share the others.
        changed = {**item, **{name: values[at] for name, at in write.assignments}}
        # The JSON of an item is longer than the item, and quicker to measure.
        if len(orjson.dumps(changed)) > size_max and size_of(changed) > size_max:
            return None
        set_item(table, *key, changed)
        return 200, None, None

    def execute(statement):
        """The answer to a plain write that takes effect or whose condition fails, else None."""
        values = statement.get("Parameters") or []
        write = plain_write(statement.get("Statement"), len(values))
        table = write and tables.get(write.table)
        if not table or not all(is_flat(value) or not parameter_error(value) for value in values):
            return None
        if write.item:
            answered = insert(table, {"item": {name: values[at] for name, at in write.item}})
        else:
            answered = update(table, write, values, statement)
        status, _, body = answered or (500, None, b"{}")
        if status == 200:
            return {"TableName": write.table}
        error = json.loads(body)
        code = error.get("__type", "").removesuffix("Exception")
        if code not in ("ConditionalCheckFailed", "DuplicateItem"):
            return None
        item = {"Item": error["Item"]} if "Item" in error else {}
        return {"Error": {"Code": code, "Message": error["message"], **item}, "TableName": write.table}

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


def is_flat(value) -> bool:
    """Whether it is a text or a plain number, or a map of texts, plain numbers, flags and nulls: then it needs no further
    check."""
    try:
        ((kind, content),) = value.items()
        if kind != "M":
            return is_leaf(kind, content)
        for part in content.values():
            ((kind, content),) = part.items()
            if not is_leaf(kind, content):
                return False
    except (AttributeError, ValueError):
        return False  # no attribute value
    return True


def is_leaf(kind, content) -> bool:
    return kind in UNCHECKED or kind == "N" and is_plain_number(content)


def is_plain_number(text) -> bool:
    return type(text) is str and text.isdigit() and text.isascii() and len(text) <= DIGITS_MAX


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
        if parsed["op"] == "INSERT":
            item = [(name, value.position) for name, value in parsed["item"].items()]
            write = PlainWrite(parsed["table"], item, [], [])
        elif parsed["op"] == "UPDATE" and not parsed["removes"] and parsed["returning"] is None:
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
