use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use crate::text::test_files::{START, columns, csv, cut, no_limits};
use crate::text::{Cells, Record, RowSchema, read_items};

/// The cells of a row with these columns.
fn row(cells: &[(&str, &str)]) -> Cells {
    let line = cells.iter().map(|(_, cell)| format!("\"{}\"", cell.replace('"', "\"\""))).collect::<Vec<_>>().join(",");
    let names: Vec<_> = cells.iter().map(|(name, _)| *name).collect();
    let (chunks, _) = cut(line.as_bytes(), &csv(b','), no_limits(), START, &[]);
    match read_items(&chunks[0], line.as_bytes(), &csv(b','), &columns(&names)).next().map(|item| item.record) {
        Some(Ok(Record::Cells(cells))) => cells,
        other => panic!("{other:?}"),
    }
}

fn compiled(schema: &Value) -> RowSchema {
    RowSchema::compile(Some(schema)).expect("a valid schema")
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).expect("a number")
}

/// Numbers as limits, and as cells.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-5",
    "100",
    "1.0",
    "0.5",
    "0.1",
    "0.10",
    "99.99",
    "1e2",
    "9007199254740993",
    "9007199254740992",
    "999999999999999999",
    "1000000000000000000000",
    "0.30000000000000004",
    "0.3",
];

/// Keywords that mean something to the quick check, or nothing to anyone.
fn keyword() -> impl Strategy<Value = (&'static str, Value)> {
    let limit = select(&NUMBERS[..]).prop_map(number);
    let limits = select(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"][..]);
    const TYPES: [&str; 5] = ["integer", "number", "string", "boolean", "null"];
    let option = select(vec![
        json!("a"),
        json!(""),
        json!("1"),
        json!("é"),
        json!(1),
        json!(-5),
        number("1.0"),
        number("0.5"),
        json!(true),
        json!(false),
        Value::Null,
        number("9007199254740993"),
        json!([1]),
    ]);
    prop_oneof![
        3 => select(&TYPES[..]).prop_map(|name| ("type", json!(name))),
        2 => subsequence(&TYPES[..], 1..4).prop_map(|names| ("type", json!(names))),
        4 => (limits, limit).prop_map(|(keyword, limit)| (keyword, limit)),
        2 => select(&["1", "2", "3", "0.01", "0.1", "0.3", "2.5", "9007199254740993", "1e1"][..])
            .prop_map(|divisor| ("multipleOf", number(divisor))),
        1 => (0_u64..5).prop_map(|length| ("minLength", json!(length))),
        1 => (0_u64..5).prop_map(|length| ("maxLength", json!(length))),
        1 => select(&["^[a-z]+$", "\\d", "é", "^\\S*$", "^(a|b)$"][..]).prop_map(|pattern| ("pattern", json!(pattern))),
        1 => prop::collection::vec(option.clone(), 1..6).prop_map(|options| {
            let unique = options.iter().enumerate().filter(|(index, option)| !options[..*index].contains(option));
            ("enum", unique.map(|(_, option)| option.clone()).collect())
        }),
        1 => option.prop_map(|option| ("const", option)),
        1 => Just(("format", json!("email"))),
        1 => Just(("title", json!("a title"))),
    ]
}

fn property() -> impl Strategy<Value = Value> {
    let keywords = prop::collection::vec(keyword(), 0..4);
    prop_oneof![
        20 => keywords.prop_map(|keywords| keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        1 => any::<bool>().prop_map(Value::Bool),
    ]
}

fn schema(property: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let names = ["x", "y", "z"];
    let additional = select(vec![None, None, Some(true), Some(false)]);
    (prop::collection::vec(property, 1..4), subsequence(&["x", "y", "z", "w"][..], 0..3), additional).prop_map(
        move |(properties, required, additional)| {
            let properties: Map<String, Value> = names.map(str::to_owned).into_iter().zip(properties).collect();
            let mut schema = json!({"type": "object", "properties": properties, "required": required});
            if let Some(additional) = additional {
                schema["additionalProperties"] = json!(additional);
            }
            schema
        },
    )
}

fn any_cell() -> impl Strategy<Value = String> {
    let odd = [
        "",
        " ",
        "a",
        "ab",
        "abcde",
        "é",
        "éééé",
        "1",
        "-1",
        "+1",
        "007",
        "-0",
        "0.0",
        "-0.0",
        "1.50",
        "1e2",
        "1e400",
        "1.",
        ".5",
        " 12 ",
        "12\t",
        "\u{a0}1",
        "true",
        "TRUE",
        "False",
        "null",
        "NaN",
        "inf",
        "0x1",
        "1_000",
        "18446744073709551616",
        "1000000000000000000001",
        "0.30000000000000001",
        "0.1000000000000000000001",
    ];
    prop_oneof![
        select(odd.to_vec()).prop_map(str::to_owned),
        select(&NUMBERS[..]).prop_map(str::to_owned),
        "-?[0-9]{1,4}(\\.[0-9]{1,3})?",
        "[0-9]{14,20}(\\.[0-9]{1,3})?",
        "[a-zé\" ]{0,6}",
    ]
}

/// Keywords and cells as nearly all files have them.
fn usual_property() -> impl Strategy<Value = Value> {
    let length = |range| (0_u64..3, range);
    prop_oneof![
        (-20_i64..20, 0_u64..2000).prop_map(|(low, size)| {
            json!({"type": "integer", "minimum": low, "maximum": low.saturating_add_unsigned(size)})
        }),
        (-20_i64..20, select(&["1", "0.01", "0.5", "2"][..])).prop_map(|(low, divisor)| {
            json!({"type": ["number", "null"], "exclusiveMinimum": low, "multipleOf": number(divisor)})
        }),
        length(0_u64..10).prop_map(|(low, high)| json!({"type": "string", "minLength": low, "maxLength": low + high})),
        length(3_u64..9)
            .prop_map(|(_, high)| json!({"type": ["string", "null"], "maxLength": high, "pattern": "^[^ ]*$"})),
        Just(json!({"enum": ["a", "b", "true", "é"]})),
        Just(json!({"enum": [1, 2, 30]})),
        Just(json!({"enum": ["a", null], "description": "one letter"})),
        Just(json!({"const": "a"})),
        Just(json!({"type": "boolean"})),
        Just(json!({})),
    ]
}

fn usual_cell() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "-?[1-9][0-9]{0,3}",
        1 => "-?[1-9][0-9]{0,3}\\.[0-9]{2}",
        2 => "[abé ]{1,4}",
        1 => select(&["", "0", "1", "true", "FALSE", "a", "b", " 7 "][..]).prop_map(str::to_owned),
    ]
}

const COLUMNS: [&str; 4] = ["x", "y", "z", "w"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_row_that_is_surely_valid_is_valid(
        schema in schema(property()), cells in prop::collection::vec(any_cell(), 1..5),
    ) {
        let Ok(schema) = RowSchema::compile(Some(&schema)) else { return Ok(()) };
        let cells: Vec<_> = COLUMNS.into_iter().zip(cells.iter().map(String::as_str)).collect();
        let cells = row(&cells);
        let full = schema.validate_in_full(&cells);
        prop_assert!(full.is_ok() || !schema.is_surely_valid(&cells));
        prop_assert_eq!(schema.validate(&Record::Cells(cells.clone())), full.clone());
        prop_assert_eq!(schema.check(Record::Cells(cells)).map(drop), full);
    }

    #[test]
    fn a_usual_row_that_is_valid_is_surely_valid(
        schema in schema(usual_property()), cells in prop::collection::vec(usual_cell(), 1..5),
    ) {
        let schema = compiled(&schema);
        let cells: Vec<_> = COLUMNS.into_iter().zip(cells.iter().map(String::as_str)).collect();
        let cells = row(&cells);
        prop_assert_eq!(schema.is_surely_valid(&cells), schema.validate_in_full(&cells).is_ok());
    }
}

#[test]
fn only_flat_schemas_are_checked_quickly() {
    let valid = row(&[("a", "1"), ("b", "2")]);
    let flat = [
        json!({}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "title": "T", "type": "object"}),
        json!({"properties": {"a": {"type": "integer", "default": 5}, "b": true, "c": {"pattern": "x"}}}),
        json!({"properties": {"a": {"type": "string", "pattern": "^\\d$"}}, "required": ["a", "b"], "$defs": {"x": {}}}),
        json!({"properties": {"a": {}, "b": {"type": ["null", "number"]}}, "additionalProperties": false}),
    ];
    for schema in flat {
        assert!(compiled(&schema).is_surely_valid(&valid), "{schema}");
    }
    let others = [
        json!({"properties": {"a": {"type": ["string", "integer"]}}}),
        json!({"properties": {"a": {"anyOf": [{"type": "integer"}]}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}}),
        json!({"properties": {"a": {"type": "integer", "minimum": number("1e0")}}}),
        json!({"patternProperties": {"a": {}}}),
        json!({"additionalProperties": {"type": "string"}}),
        json!({"minProperties": 1}),
        json!({"properties": {"a": {"pattern": "^[\\p{L}\\d]{1,100}$"}}}),
        json!({"type": ["object", "null"]}),
    ];
    for schema in others {
        let schema = compiled(&schema);
        assert!(!schema.is_surely_valid(&valid) && schema.validate_in_full(&valid).is_ok(), "{schema:?}");
    }
}

#[test]
fn a_row_with_other_columns_than_the_first_one_is_checked_right() {
    let schema = compiled(&json!({"properties": {"a": {"type": "integer"}}}));
    assert!(schema.is_surely_valid(&row(&[("a", "1"), ("b", "x")])));
    assert!(schema.is_surely_valid(&row(&[("a", "2"), ("b", "y")])), "equal columns of another file");
    let other = row(&[("b", "x"), ("a", "1")]);
    assert!(!schema.is_surely_valid(&other));
    assert_eq!(schema.validate(&Record::Cells(other)), Ok(()));
    assert!(schema.validate(&Record::Cells(row(&[("b", "1"), ("a", "x")]))).is_err());
}
