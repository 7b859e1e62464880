use serde_json::{Map, Value, json};

use crate::bounds::Bounded;
use crate::validator::NEEDED_BYTES;

/// Objects in one another: the reader of JSON takes no more.
const DEEPEST_ROW: usize = 127;

/// A schema that goes through as many subschemas as the bounds allow, each made by `level` from the next one, before it
/// goes one level down in the row.
fn deepest(level: impl Fn(&Value) -> Value) -> Value {
    let of = |length: usize| {
        let next = |n: usize| json!({ "$ref": format!("#/$defs/{n}") });
        let mut defs: Map<String, Value> = (0..length).map(|n| (n.to_string(), level(&next(n + 1)))).collect();
        defs.insert(length.to_string(), json!({ "properties": { "a": next(0), "b": false } }));
        json!({ "$ref": "#/$defs/0", "$defs": defs })
    };
    let deepest = (1..64).rev().map(of).find(|schema| Bounded::of(schema).is_ok());
    deepest.expect("some of them are within the bounds")
}

/// The deepest row with this at its end.
fn row(end: Value) -> Value {
    (1..DEEPEST_ROW).fold(end, |row, _| json!({ "a": row }))
}

/// Checks a row on three quarters of the stack that counts as enough. A stack that overflows ends the process.
fn is_valid(schema: &Value, row: &Value) -> bool {
    let validator = Bounded::of(schema).unwrap().compile().unwrap();
    let thread = std::thread::Builder::new().stack_size(NEEDED_BYTES / 4 * 3);
    std::thread::scope(|scope| {
        thread.spawn_scoped(scope, || validator.validate_here(row).is_ok()).unwrap().join().unwrap()
    })
}

#[test]
fn the_deepest_row_under_the_deepest_schema_fits_into_the_stack() {
    type Level = fn(&Value) -> Value;
    let levels: [(&str, Level); 10] = [
        ("$ref", Value::clone),
        ("$dynamicRef", |next| json!({ "$dynamicRef": next["$ref"] })),
        ("allOf of one", |next| json!({ "allOf": [next] })),
        ("allOf", |next| json!({ "allOf": [true, next] })),
        ("anyOf", |next| json!({ "anyOf": [false, next] })),
        ("oneOf", |next| json!({ "oneOf": [next, false] })),
        ("not", |next| json!({ "not": { "not": next } })),
        ("if", |next| json!({ "if": next, "else": false })),
        ("then", |next| json!({ "if": true, "then": next })),
        ("dependentSchemas", |next| json!({ "dependentSchemas": { "a": next } })),
    ];
    for (keyword, level) in levels {
        println!("{keyword}");
        let schema = deepest(level);
        assert!(is_valid(&schema, &row(json!({}))), "{keyword}");
        assert!(!is_valid(&schema, &row(json!({ "a": 0, "b": 1 }))), "{keyword}");
    }
    // These look at a choice twice on each level, so a row that is valid takes endless time.
    let unevaluated: [(&str, Level); 2] = [
        ("if", |next| json!({ "if": next, "unevaluatedProperties": false })),
        ("oneOf", |next| json!({ "oneOf": [false, next], "unevaluatedProperties": false })),
    ];
    for (keyword, level) in unevaluated {
        println!("unevaluatedProperties beside {keyword}");
        assert!(!is_valid(&deepest(level), &row(json!({ "a": 0, "b": 1 }))), "{keyword}");
    }
}

#[test]
fn the_reader_of_json_takes_no_deeper_row() {
    let reads = |row: &Value| serde_json::from_str::<Value>(&row.to_string()).is_ok();
    assert!(reads(&row(json!({}))));
    assert!(!reads(&row(json!({ "a": {} }))));
}

#[test]
fn a_row_is_checked_on_a_thread_with_little_stack() {
    let schema = deepest(|next| json!({ "oneOf": [next, false] }));
    let check = || Bounded::of(&schema).unwrap().compile().unwrap().validate_json(&row(json!({}))).is_ok();
    let thread = std::thread::Builder::new().stack_size(1024 * 1024);
    assert!(std::thread::scope(|scope| thread.spawn_scoped(scope, check).unwrap().join().unwrap()));
}
