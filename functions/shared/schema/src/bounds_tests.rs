use serde_json::{Map, Value, json};

use crate::bounds::{Bounded, COMPILED_MAX_BYTES, EXPANDED_MAX, PATTERN_MAX_BYTES, PATTERNS_MAX};
use crate::error::SchemaError;
use crate::validator::Validator;

fn compiled(schema: &Value) -> Result<Validator, SchemaError> {
    Bounded::of(schema)?.compile()
}

/// The part of the schema that exceeds its bound.
fn too_large(schema: &Value) -> &'static str {
    match compiled(schema) {
        Err(SchemaError::TooLarge { what, .. }) => what,
        other => panic!("{:?}", other.map(|_| "compiled")),
    }
}

/// A schema whose references double at each level.
fn doubling(levels: usize, reference: impl Fn(usize) -> String) -> Value {
    let level = |n: usize| json!({ "allOf": [{ "$ref": reference(n + 1) }, { "$ref": reference(n + 1) }] });
    let mut defs: Map<String, Value> = (0..levels).map(|n| (format!("d{n}"), level(n))).collect();
    defs.insert(format!("d{levels}"), json!({ "type": "object", "$anchor": format!("d{levels}") }));
    for (name, schema) in &mut defs {
        schema["$anchor"] = json!(name);
    }
    json!({ "$ref": reference(0), "$defs": defs })
}

#[test]
fn references_that_double_at_each_level_are_refused_at_once() {
    for reference in
        [|n: usize| format!("#/$defs/d{n}"), |n: usize| format!("#d{n}"), |n: usize| format!("#/%24defs/d{n}")]
    {
        let what = too_large(&doubling(40, reference));
        assert!(what.contains("reference"), "{what}");
        assert!(Bounded::of(&doubling(8, reference)).is_ok(), "a few levels are no bomb");
    }
}

#[test]
fn a_definition_that_nobody_refers_to_and_recursion_count_once() {
    let defs: Map<String, Value> = (0..100).map(|n| (format!("d{n}"), json!({ "type": "string" }))).collect();
    assert!(Bounded::of(&json!({ "$defs": defs })).is_ok());
    let tree =
        json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" }, "v": { "type": "integer" } } });
    assert!(Bounded::of(&tree).is_ok());
    let wide: Map<String, Value> = (0..=EXPANDED_MAX).map(|n| (format!("c{n}"), json!({}))).collect();
    assert!(too_large(&json!({ "properties": wide })).contains("subschemas"));
}

#[test]
fn the_patterns_of_a_schema_are_bounded_in_number_and_length_and_size_together() {
    let with = |patterns: Vec<String>| {
        let columns: Map<String, Value> = (0..)
            .zip(patterns)
            .map(|(n, pattern): (u32, _)| (format!("c{n}"), json!({ "pattern": pattern })))
            .collect();
        json!({ "properties": columns })
    };
    assert!(Bounded::of(&with(vec!["^a+$".into(); PATTERNS_MAX + 1])).is_ok(), "equal ones count once");
    let many = with((0..=PATTERNS_MAX).map(|n| format!("^a{n}$")).collect());
    assert!(too_large(&many).contains("different patterns"));
    let long = with(vec!["a".repeat(PATTERN_MAX_BYTES + 1)]);
    assert!(too_large(&long).contains("one pattern"));
    // One of these compiles to 1.5 MB, so the first two fit.
    let letters = |count: u32| with((0..count).map(|n| format!(r"\p{{L}}{{100}}{n}")).collect());
    assert!(compiled(&letters(2)).is_ok());
    assert!(too_large(&letters(100)).contains("compiled patterns"));
    let keys = json!({ "patternProperties": { r"\p{L}{400}": {} } });
    assert!(too_large(&keys).contains("compiled patterns"), "the names of columns too");
}

#[test]
fn what_a_schema_takes_is_bounded() {
    let patterns: Map<String, Value> = (0..PATTERNS_MAX).map(|n| (format!(r"^[a-z]{{1,20}}{n}$"), json!({}))).collect();
    let schema = json!({ "patternProperties": patterns });
    let bounded = Bounded::of(&schema).unwrap();
    assert!(bounded.compiled_bytes < COMPILED_MAX_BYTES);
    assert!(bounded.held_bytes() <= 4 * COMPILED_MAX_BYTES + 16 * 1024 * 1024);
}

#[test]
fn a_schema_that_is_nested_too_deeply_is_refused() {
    let nested = (0..70).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert!(too_large(&nested).contains("levels"));
}

#[test]
fn a_message_about_a_row_does_not_list_a_whole_enum() {
    let values: Vec<String> = (0..10_000).map(|n| format!("value {n}")).collect();
    let schema = compiled(&json!({ "properties": { "a": { "enum": values } } })).unwrap();
    let violation = schema.validate_json(&json!({ "a": "no" })).unwrap_err();
    assert!(violation.message.len() < 1_000, "{}", violation.message.len());
}

#[test]
fn a_long_chain_of_references_is_refused_before_it_fills_the_stack() {
    // As many as fit into the body of a request.
    let chain = |length: usize| {
        let mut defs: Map<String, Value> =
            (0..length).map(|n| (format!("{n}"), json!({ "$ref": format!("#/$defs/{}", n + 1) }))).collect();
        defs.insert(length.to_string(), json!({}));
        json!({ "$ref": "#/$defs/0", "$defs": defs })
    };
    assert!(chain(7_000).to_string().len() < 256 * 1024);
    let what = too_large(&chain(7_000));
    assert!(what.contains("reference"), "{what}");
    assert!(compiled(&chain(50)).is_ok());
    // Measured in pieces, from its end.
    let mut pieces = chain(500);
    pieces["allOf"] = (0..=9).rev().map(|piece| json!({ "$ref": format!("#/$defs/{}", piece * 50) })).collect();
    assert!(too_large(&pieces).contains("levels"));
}

/// Cycles of two subschemas each, and a way from each cycle into the next one.
fn clusters(count: usize) -> Value {
    let mut defs = Map::new();
    for n in 0..count {
        let next = if n + 1 < count { format!("#/$defs/l{}", n + 1) } else { format!("#/$defs/l{n}") };
        defs.insert(format!("l{n}"), json!({ "$ref": format!("#/$defs/p{n}") }));
        defs.insert(format!("p{n}"), json!({ "allOf": [{ "$ref": format!("#/$defs/l{n}") }, { "$ref": next }] }));
    }
    let all: Vec<Value> = (0..count).rev().map(|n| json!({ "$ref": format!("#/$defs/p{n}") })).collect();
    json!({ "anyOf": all, "$defs": defs })
}

#[test]
fn a_chain_through_cycles_is_measured_whole() {
    assert!(Bounded::of(&clusters(3)).is_ok());
    let what = too_large(&clusters(1_500));
    assert!(what.contains("reference"), "{what}");
}

#[test]
fn references_of_each_form_count_and_those_under_a_property_called_like_a_keyword_too() {
    // The definitions of a resource inside the schema, named by its own address, absolute and relative.
    let inside = |reference: fn(usize) -> String| {
        let mut defs: Map<String, Value> =
            (0..500).map(|n| (format!("{n}"), json!({ "$ref": reference(n + 1) }))).collect();
        defs.insert("500".to_owned(), json!({}));
        let resource = json!({ "$id": "http://example.com/a/rows", "$ref": reference(0), "$defs": defs });
        json!({ "$ref": "http://example.com/a/rows", "$defs": { "rows": resource } })
    };
    let forms: [fn(usize) -> String; 4] = [
        |n| format!("#/$defs/{n}"),
        |n| format!("rows#/$defs/{n}"),
        |n| format!("../a/./rows#/%24defs/{n}"),
        |n| format!("http://example.com/a/rows#/$defs/{n}"),
    ];
    for form in forms {
        assert!(too_large(&inside(form)).contains("levels"));
    }
    for keyword in ["default", "enum", "$defs", "definitions", "const"] {
        let mut chain = doubling(40, |n| format!("#/$defs/d{n}"));
        let first = chain["$ref"].take();
        chain.as_object_mut().unwrap().remove("$ref");
        chain["properties"] = json!({ keyword: { "$ref": first } });
        assert!(too_large(&chain).contains("reference"), "{keyword}");
    }
}

#[test]
fn what_only_a_row_decides_is_refused() {
    let anchors = json!({ "$defs": { "a": { "$dynamicAnchor": "x" }, "b": { "$id": "b", "$dynamicAnchor": "x" } } });
    assert!(too_large(&anchors).contains("$dynamicAnchor"));
    let other = json!({ "properties": { "a": { "$schema": "http://json-schema.org/draft-07/schema#" } } });
    assert!(matches!(compiled(&other), Err(SchemaError::OtherDraft { .. })));
}
