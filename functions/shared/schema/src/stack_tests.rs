use serde_json::{Map, Value, json};

use crate::bounds::Bounded;
use crate::validator::{COMPILE_STACK_BYTES, Validator, check_stack_bytes};
use crate::violation::Row;

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

/// A row with so many objects around this.
fn row(depth: usize, end: &Value) -> Value {
    (0..depth).fold(end.clone(), |row, _| json!({ "a": row }))
}

/// Runs this on three quarters of the stack that counts as enough. A stack that overflows ends the process.
fn on_three_quarters_of<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    let thread = std::thread::Builder::new().stack_size(bytes / 4 * 3);
    std::thread::scope(|scope| thread.spawn_scoped(scope, work).unwrap().join().unwrap())
}

/// Whether rows of several depths with this at their ends are valid.
fn check(schema: &Value, end: &Value) -> [bool; 6] {
    let bounded = Bounded::of(schema).unwrap();
    let validator = on_three_quarters_of(COMPILE_STACK_BYTES, || Validator::compile_here(schema, &bounded)).unwrap();
    [0, 1, 2, 10, 50, DEEPEST_ROW - 1].map(|depth| {
        let row = row(depth, end);
        on_three_quarters_of(check_stack_bytes(&row), || validator.validate_here(&row, &Row::Json).is_ok())
    })
}

#[test]
fn the_deepest_schema_fits_into_the_stack() {
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
        assert_eq!(check(&schema, &json!({})), [true; 6], "{keyword}");
        assert_eq!(check(&schema, &json!({ "a": 0, "b": 1 })), [false; 6], "{keyword}");
    }
    // These look at a choice twice on each level, so a row that is valid takes endless time.
    let unevaluated: [(&str, Level); 2] = [
        ("if", |next| json!({ "if": next, "unevaluatedProperties": false })),
        ("oneOf", |next| json!({ "oneOf": [false, next], "unevaluatedProperties": false })),
    ];
    for (keyword, level) in unevaluated {
        println!("unevaluatedProperties beside {keyword}");
        assert_eq!(check(&deepest(level), &json!({ "a": 0, "b": 1 })), [false; 6], "{keyword}");
    }
}

#[test]
fn the_reader_of_json_takes_no_deeper_row() {
    let reads = |depth| serde_json::from_str::<Value>(&row(depth, &json!({})).to_string()).is_ok();
    assert!(reads(DEEPEST_ROW - 1));
    assert!(!reads(DEEPEST_ROW));
}

#[test]
fn a_row_is_checked_on_a_thread_with_little_stack() {
    let schema = deepest(|next| json!({ "oneOf": [next, false] }));
    let row = row(DEEPEST_ROW - 1, &json!({}));
    let check = || Bounded::of(&schema).unwrap().compile().unwrap().validate_json(&row).is_ok();
    assert!(on_three_quarters_of(1024 * 1024, check));
}
