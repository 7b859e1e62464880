use serde_json::{Map, Value, json};

use crate::text::test_files::{START, columns, csv, cut, no_limits};
use crate::text::{Record, RowSchema, SchemaError, SchemaViolation, read_items};

fn compiled(schema: Value) -> RowSchema {
    RowSchema::compile(Some(&schema)).expect("a valid schema")
}

/// A CSV record with these cells, as the item reader reads it.
fn record(cells: &[(&str, &str)]) -> Record {
    let line = cells.iter().map(|(_, cell)| format!("\"{}\"", cell.replace('"', "\"\""))).collect::<Vec<_>>().join(",");
    let names: Vec<_> = cells.iter().map(|(name, _)| *name).collect();
    let (chunks, _) = cut(line.as_bytes(), &csv(b','), no_limits(), START, &[]);
    let mut items = read_items(&chunks[0], line.as_bytes(), &csv(b','), &columns(&names));
    items.next().and_then(|item| item.record.ok()).expect("a good record")
}

fn check(schema: &RowSchema, cells: &[(&str, &str)]) -> Result<Value, SchemaViolation> {
    schema.check(record(cells)).map(Value::Object)
}

/// The value of one cell under the schema of its column; "left out" if it is omitted; `None` if it violates the schema.
fn coerced(property: Value, cell: &str) -> Option<Value> {
    let schema = compiled(json!({"properties": {"x": property}}));
    check(&schema, &[("x", cell)]).map(|row| row.get("x").cloned().unwrap_or(json!("left out"))).ok()
}

#[test]
fn without_a_schema_every_cell_is_a_string_and_every_object_passes() {
    let schema = RowSchema::compile(None).expect("nothing to compile");
    assert_eq!(check(&schema, &[("a", "1"), ("b", "")]), Ok(json!({"a": "1", "b": ""})));
    let row = json!({"a": [1, {"b": null}]});
    assert_eq!(schema.check(Record::Json(row.clone())).map(Value::Object), Ok(row));
    assert!(schema.check(Record::Json(json!([]))).is_err());
}

#[test]
fn a_cell_is_converted_to_the_type_that_the_schema_declares_for_its_column() {
    let cases = [
        (json!("integer"), "42", Some(json!(42))),
        (json!("integer"), " -7 ", Some(json!(-7))),
        (json!("integer"), "+007", Some(json!(7))),
        (json!("integer"), "5.00", Some(json!(5))),
        (json!("integer"), "5.5", None),
        (json!("integer"), "1e3", None),
        (json!("integer"), "", Some(json!("left out"))),
        (json!("integer"), " ", None),
        (json!("number"), "2.50", Some(number("2.50"))),
        (json!("number"), "-1e3", Some(number("-1e3"))),
        (json!("number"), "+00.5", Some(number("0.5"))),
        (json!("number"), "-.5E2", Some(number("-0.5E2"))),
        (json!("number"), "7.e1", Some(number("7e1"))),
        (json!("number"), ".", None),
        (json!("number"), "12", Some(json!(12))),
        (json!("number"), "NaN", None),
        (json!("number"), "inf", None),
        (json!("number"), "1e999", None),
        (json!("boolean"), "TRUE", Some(json!(true))),
        (json!("boolean"), "0", Some(json!(false))),
        (json!("boolean"), "yes", None),
        (json!("string"), "42", Some(json!("42"))),
        (json!("string"), "", Some(json!(""))),
        (json!("null"), "", Some(json!(null))),
        (json!("object"), "{}", None),
        (json!(["integer", "null"]), "", Some(json!(null))),
        (json!(["string", "null"]), "", Some(json!(null))),
        (json!(["boolean", "integer"]), "1", Some(json!(1))),
        (json!(["boolean", "integer"]), "true", Some(json!(true))),
        (json!(["string", "integer"]), "7", Some(json!(7))),
        (json!(["string", "integer"]), "007", Some(json!("007"))),
        (json!(["string", "number"]), "1.50", Some(json!("1.50"))),
        (json!(["string", "number"]), "1.5", Some(number("1.5"))),
        (json!(["string", "number"]), "12E4", Some(json!("12E4"))),
        (json!(["string", "integer"]), "", Some(json!(""))),
    ];
    for (types, cell, expected) in cases {
        assert_eq!(coerced(json!({"type": types.clone()}), cell), expected, "{types} of {cell:?}");
    }
}

/// A number as it is written in JSON.
fn number(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("a JSON number")
}

#[test]
fn a_number_of_a_cell_keeps_every_digit() {
    let long =
        ["18446744073709551615", "-9223372036854775808", "1000000000000000000000", "123456789012345678901234567890"];
    for digits in long {
        assert_eq!(coerced(json!({"type": "integer"}), digits), Some(number(digits)));
        assert_eq!(coerced(json!({"type": ["integer", "string"]}), digits), Some(number(digits)));
    }
    for decimal in ["0.1234567890123456789012345678901", "-12345678901234567890.10"] {
        assert_eq!(coerced(json!({"type": "number"}), decimal), Some(number(decimal)));
        assert_eq!(coerced(json!({"type": ["number", "string"]}), decimal), Some(json!(decimal)));
    }
}

#[test]
fn a_number_is_checked_with_all_its_digits() {
    let maximum = number("{\"maximum\": 18446744073709551617, \"type\": \"integer\"}");
    let schema = compiled(json!({"properties": {"x": maximum}}));
    assert!(check(&schema, &[("x", "18446744073709551617")]).is_ok());
    assert!(check(&schema, &[("x", "18446744073709551618")]).is_err(), "as a float it would be equal");
    let huge = Record::Json(number("{\"x\": 1e99999999999}"));
    assert!(schema.check(huge).is_err(), "and it takes no time");
}

#[test]
fn types_are_found_wherever_a_schema_declares_them() {
    let schema = compiled(json!({
        "$ref": "#/$defs/base",
        "$defs": {"base": {"properties": {"a": {"$ref": "#/$defs/count"}}}, "count": {"type": "integer"}},
        "allOf": [{"properties": {"b": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}}],
        "properties": {"c": {"enum": [1, 2]}, "d": {"const": true}, "e": {}, "f": {"minLength": 1}}
    }));
    let cells = [("a", "1"), ("b", ""), ("c", "2"), ("d", "true"), ("e", "5"), ("f", "6"), ("g", "7")];
    let row = json!({"a": 1, "b": null, "c": 2, "d": true, "e": "5", "f": "6", "g": "7"});
    assert_eq!(check(&schema, &cells), Ok(row));
    let schema = compiled(json!({"properties": {"a": {}}, "additionalProperties": {"type": "number"}}));
    assert_eq!(check(&schema, &[("a", "1"), ("b", "1")]), Ok(json!({"a": "1", "b": 1})));
}

#[test]
fn a_violation_names_the_column_and_the_rule_but_not_the_content() {
    let schema = compiled(json!({
        "type": "object",
        "required": ["id", "city"],
        "properties": {
            "id": {"type": "integer", "minimum": 10},
            "code": {"type": "string", "pattern": "^[A-Z]+$", "maxLength": 5},
            "kind": {"enum": ["a", "b"]},
            "city": {}
        },
        "additionalProperties": false
    }));
    let cases = [
        ([("id", "secret"), ("city", "x"), ("code", "A")], "id", "the cell is not of type \"integer\" (rule `type`)."),
        (
            [("id", "1"), ("city", "x"), ("code", "A")],
            "id",
            "the cell is less than the minimum of 10 (rule `minimum`).",
        ),
        (
            [("id", ""), ("city", "x"), ("code", "A")],
            "id",
            "a value is required, but the cell is empty (rule `required`).",
        ),
        (
            [("id", "10"), ("kind", "a"), ("code", "A")],
            "city",
            "the schema requires it, but the file has no such column (rule `required`).",
        ),
        (
            [("id", "10"), ("city", "x"), ("code", "secret")],
            "code",
            "the cell is longer than 5 characters (rule `maxLength`).",
        ),
        (
            [("id", "10"), ("city", "x"), ("kind", "secret")],
            "kind",
            "the cell is not one of \"a\" or \"b\" (rule `enum`).",
        ),
        (
            [("id", "10"), ("city", "x"), ("town", "secret")],
            "town",
            "the schema does not allow it (rule `additionalProperties`).",
        ),
    ];
    for (cells, column, message) in cases {
        let violation = check(&schema, &cells).expect_err("a violation");
        assert_eq!(violation.column.as_deref(), Some(column), "{violation:?}");
        assert_eq!(violation.message, format!("Column `{column}`: {message}"));
    }
}

#[test]
fn a_json_row_is_checked_without_conversion() {
    let schema = compiled(json!({
        "required": ["a"],
        "properties": {"a": {"type": "integer"}, "deep/er": {"items": {"properties": {"b": {"type": "null"}}}}}
    }));
    let violation = |row: Value| schema.check(Record::Json(row)).expect_err("a violation");
    assert_eq!(violation(json!({"a": "1"})).message, "Column `a`: the value is not of type \"integer\" (rule `type`).");
    assert_eq!(
        violation(json!({})).message,
        "Column `a`: the schema requires it, but the row does not have it (rule `required`)."
    );
    let deep = violation(json!({"a": 1, "deep/er": [{"b": 5}]}));
    assert_eq!(deep.column.as_deref(), Some("deep/er"));
    assert_eq!(deep.message, "Column `deep/er`, at `/0/b`: the value is not of type \"null\" (rule `type`).");
}

#[test]
fn an_unusable_schema_is_rejected_with_the_reason() {
    let refused = |schema: Value| RowSchema::compile(Some(&schema)).expect_err("refused");
    assert!(matches!(refused(json!(true)), SchemaError::NotAnObject));
    assert!(matches!(
        refused(json!({"$schema": "http://json-schema.org/draft-07/schema#"})),
        SchemaError::OtherDraft { .. }
    ));
    for reference in ["https://127.0.0.1/schema.json", "file:///etc/hostname", "#/$defs/none", "other.json"] {
        let error = refused(json!({"properties": {"a": {"$ref": reference}}}));
        assert!(matches!(error, SchemaError::UnknownReference { .. }), "{reference}: {error}");
    }
    let invalid = refused(json!({"properties": {"a": {"type": "integre"}}}));
    assert!(invalid.to_string().starts_with("The schema is not valid at `#/properties/a/type`: "), "{invalid}");
    let types = "The types are array, boolean, integer, null, number, object, string.";
    let error = refused(json!({"properties": {"a": {"items": {"type": "numbr"}}}})).to_string();
    let place = "#/properties/a/items/type";
    assert_eq!(error, format!("The schema is not valid at `{place}`: `numbr` is not a type. {types}"));
    let error = refused(json!({"type": ["object", "nul"]})).to_string();
    assert_eq!(error, format!("The schema is not valid at `#/type`: `nul` is not a type. {types}"));
    for twisted in [json!({"type": 7}), json!({"type": []}), json!({"type": ["null", "null"]})] {
        let error = refused(twisted).to_string();
        assert!(error.contains("`#/type`") && error.ends_with(types), "{error}");
    }
    let error = refused(json!({"properties": {"type": "number"}})).to_string();
    assert!(!error.contains("The types are"), "a property with this name: {error}");
    for (pattern, reason) in [
        ("(", "unclosed group"),
        ("(?=a)b", "look-around"),
        ("^(?!x)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        (r"(?<x>a)\k<x>", "back-reference"),
        ("[b-a]", "not a valid regular expression"),
    ] {
        for schema in [json!({"properties": {"a": {"pattern": pattern}}}), json!({"patternProperties": {pattern: {}}})]
        {
            let error = refused(schema).to_string();
            assert!(error.starts_with(&format!("The pattern `{pattern}` in the schema ")), "{error}");
            assert!(error.contains(reason), "{error}");
        }
    }
    let data = json!({"const": {"pattern": "(?=a)"}});
    assert!(RowSchema::compile(Some(&data)).is_ok(), "it is no pattern");
    assert!(RowSchema::compile(Some(&json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}))).is_ok());
}

#[test]
fn a_recursive_schema_does_not_hang_or_overflow_the_stack() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}}),
        json!({"properties": {"a": {"$ref": "#"}}}),
    ] {
        let schema = compiled(schema);
        let _ = schema.check(Record::Json(json!({"a": {"a": {}}})));
        let _ = check(&schema, &[("a", "1")]);
    }
}

#[test]
fn matching_a_pattern_takes_linear_time() {
    let schema = compiled(json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}));
    let mut row = Map::new();
    row.insert("a".to_owned(), Value::String("a".repeat(100_000) + "!"));
    assert!(schema.check(Record::Json(Value::Object(row))).is_err());
}
