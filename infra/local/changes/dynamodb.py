"""A faster DynamoDB. No answer of the emulator changes."""

import copy
import json
import marshal
import types
from typing import NamedTuple

from changes.shape import expect_parameters, named

# The texts of statements are those of the functions, so there are few. If a client makes more, the memo begins anew.
TEXTS_MAX = 1000
STATEMENTS_MAX = 25
COMPARABLE = {"S", "N", "B"}


def execute_batches_directly(dynamodb) -> None:
    """The emulator parses the text of each statement of a batch twice, makes JSON of its answer, and reads it again. That
    was half of the work of an import. Here a text is parsed once, and *plain writes*, which all those of an import are, go
    straight to the emulator's functions for one item. Any other statement goes the whole way."""
    batch, parse = named(dynamodb, "_batch_execute_statement"), named(dynamodb, "parse_partiql_statement")
    insert, update = named(dynamodb, "_partiql_insert"), named(dynamodb, "_partiql_update")
    parameter_error, compare = named(dynamodb, "_partiql_parameter_error"), named(dynamodb, "_compare_ddb")
    tables, answer = named(dynamodb, "_tables"), named(dynamodb, "json_response")
    expect_parameters(batch, ["data"])
    expect_parameters(parse, ["text", "parameters"])
    expect_parameters(insert, ["table", "parsed"])
    expect_parameters(update, ["table", "parsed", "data"])
    plain_writes = {}

    def plain_write(text: str, parameters: int):
        if (text, parameters) not in plain_writes:
            if len(plain_writes) >= TEXTS_MAX:
                plain_writes.clear()
            plain_writes[text, parameters] = plain_write_of(parse, text, parameters)
        return plain_writes[text, parameters]

    def execute(statement):
        """The answer to a plain write that takes effect or whose condition fails, else None."""
        values = statement.get("Parameters") or []
        write = plain_write(statement.get("Statement"), len(values))
        table = write and tables.get(write.table)
        if not table or any(map(parameter_error, values)):
            return None
        if write.item:
            status, _, body = insert(table, {"item": {name: values[at] for name, at in write.item}})
        else:
            conditions = [(name, operator, values[at]) for name, operator, at in write.conditions]
            if not all(COMPARABLE.issuperset(value) for _, _, value in conditions):
                return None
            parsed = {
                "conditions": conditions,
                "where_fn": lambda item: all(compare(item.get(name), operator, value) for name, operator, value in conditions),
                "assignments": [([name], ("lit", values[at], "value")) for name, at in write.assignments],
            }
            status, _, body = update(table, parsed, statement)
        if status == 200:
            return {"TableName": write.table}
        error = json.loads(body)
        code = error["__type"].removesuffix("Exception")
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
