use proptest::collection::{hash_set, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{BadAnswer, Results, read_answer};
use crate::ports::ANSWER_MAX_BYTES;
use crate::ports::processor::{ItemError, ItemOutcome};

const SENT: [&str; 3] = ["j/1", "j/2", "j/3"];

fn read(answer: &Value) -> Result<Results, BadAnswer> {
    read_answer(answer.to_string().as_bytes(), &SENT, true)
}

fn bad(answer: &Value) -> BadAnswer {
    read(answer).expect_err("a bad answer")
}

#[test]
fn an_item_that_is_not_listed_as_failed_succeeds_with_its_output_if_there_is_one() {
    let results = read(&json!({
        "batchItemFailures": [{"itemIdentifier": "j/2", "code": "no_street", "message": "None.", "column": "street"}],
        "outputs": [{"itemIdentifier": "j/3", "output": {"lat": 1.50}}],
        "version": "unknown fields are ignored",
    }));
    let error = ItemError::permanent("no_street", "None.").in_column("street");
    assert_eq!(
        results.unwrap(),
        [Ok(ItemOutcome::Succeeded), Err(error), Ok(ItemOutcome::Output(r#"{"lat":1.5}"#.into()))]
    );
    let nothing_failed = read(&json!({ "batchItemFailures": [] })).unwrap();
    assert_eq!(nothing_failed, vec![Ok(ItemOutcome::Succeeded); 3]);
}

#[test]
fn a_failure_without_code_and_message_gets_default_ones() {
    let results = read(
        &json!({ "batchItemFailures": [{"itemIdentifier": "j/1"}, {"itemIdentifier": "j/2", "code": " ", "transient": true}] }),
    );
    let results = results.unwrap();
    let errors: Vec<&ItemError> = results[..2].iter().map(|result| result.as_ref().unwrap_err()).collect();
    assert!(errors.iter().all(|error| error.code == "failed" && error.message.len() > 10));
    assert_eq!([errors[0].transient, errors[1].transient], [false, true]);
}

#[test]
fn an_answer_that_is_not_json_or_has_another_form_is_bad() {
    for answer in ["", "ok", "{", r#"{"batchItemFailures": []"#, r#"{"batchItemFailures": []} {}"#, "\u{feff}{}"] {
        let read = read_answer(answer.as_bytes(), &SENT, true);
        assert!(matches!(read, Err(BadAnswer::NotJson { .. })), "{answer}: {read:?}");
    }
    assert!(read_answer(b"{\"batchItemFailures\": [{\"itemIdentifier\": \"\xff\"}]}", &SENT, true).is_err());
    let others = [
        json!(null),
        json!([]),
        json!({}),
        json!({ "statusCode": 200, "body": r#"{"batchItemFailures": []}"# }),
        json!({ "batchItemFailures": null }),
        json!({ "batchItemFailures": "j/1" }),
        json!({ "batchItemFailures": ["j/1"] }),
        json!({ "batchItemFailures": [{}] }),
        json!({ "batchItemFailures": [{"itemIdentifier": null}] }),
        json!({ "batchItemFailures": [{"itemIdentifier": "j/1", "code": 7}] }),
        json!({ "batchItemFailures": [], "outputs": {} }),
        json!({ "batchItemFailures": [], "outputs": [{"itemIdentifier": "j/1"}] }),
    ];
    for answer in others {
        assert!(matches!(bad(&answer), BadAnswer::OtherForm { .. }), "{answer}");
    }
}

#[test]
fn an_item_that_was_not_sent_or_is_named_twice_makes_the_answer_bad() {
    let failures = |ids: &[&str]| {
        let failures: Vec<_> = ids.iter().map(|id| json!({ "itemIdentifier": id })).collect();
        bad(&json!({ "batchItemFailures": failures }))
    };
    let list = "batchItemFailures";
    assert_eq!(failures(&["j/1", "j/4"]), BadAnswer::Unknown { list, place: 1 });
    assert_eq!(failures(&[""]), BadAnswer::Unknown { list, place: 0 });
    assert_eq!(failures(&["j/1", "j/2", "j/1"]), BadAnswer::Repeated { list, place: 2 });
    let outputs = |ids: &[&str]| {
        let outputs: Vec<_> = ids.iter().map(|id| json!({ "itemIdentifier": id, "output": {} })).collect();
        bad(&json!({ "batchItemFailures": [{"itemIdentifier": "j/3"}], "outputs": outputs }))
    };
    let list = "outputs";
    assert_eq!(outputs(&["other/1"]), BadAnswer::Unknown { list, place: 0 });
    assert_eq!(outputs(&["j/2", "j/2"]), BadAnswer::Repeated { list, place: 1 });
    assert_eq!(outputs(&["j/1", "j/3"]), BadAnswer::FailedWithOutput { place: 1 });
}

#[test]
fn outputs_must_be_objects_and_are_only_allowed_if_configured() {
    let answer =
        |output: Value| json!({ "batchItemFailures": [], "outputs": [{"itemIdentifier": "j/1", "output": output}] });
    for output in [json!(null), json!("{}"), json!([]), json!(1)] {
        assert_eq!(bad(&answer(output)), BadAnswer::NoObject { place: 0 });
    }
    let unexpected = read_answer(answer(json!({})).to_string().as_bytes(), &SENT, false);
    assert_eq!(unexpected, Err(BadAnswer::UnexpectedOutputs));
    let none = read_answer(br#"{"batchItemFailures": [], "outputs": []}"#, &SENT, false);
    assert_eq!(none.unwrap().len(), 3);
}

#[test]
fn an_output_of_too_many_levels_is_rejected() {
    let nested = |levels: usize| {
        let inner = format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let output = format!(r#"{{"text": "{{[\"[[{}", "a": {inner}}}"#, "[".repeat(1000));
        let answer =
            format!(r#"{{"batchItemFailures": [], "outputs": [{{"itemIdentifier": "j/1", "output": {output}}}]}}"#);
        read_answer(answer.as_bytes(), &SENT, true)
    };
    assert!(nested(100).is_ok(), "those in a text are none");
    for levels in [101, 100_000] {
        assert_eq!(nested(levels), Err(BadAnswer::TooDeep { place: 0 }));
    }
}

#[test]
fn an_answer_that_is_too_large_is_rejected() {
    let padded = format!("{{\"batchItemFailures\": []}}{}", " ".repeat(ANSWER_MAX_BYTES));
    assert_eq!(read_answer(padded.as_bytes(), &SENT, true), Err(BadAnswer::TooLarge));
}

#[test]
fn texts_from_a_target_are_shortened_and_have_no_control_characters() {
    let failure = json!({
        "itemIdentifier": "j/1",
        "code": "c".repeat(10_000),
        "message": format!("a\u{1b}[2J\r\nb\u{0}\u{202e}c{}", "é".repeat(10_000)),
        "column": "\u{7}",
    });
    let error = read(&json!({ "batchItemFailures": [failure] })).unwrap()[0].clone().unwrap_err();
    assert_eq!(error.code, "c".repeat(64));
    assert!(error.message.starts_with("a[2J  bcéé"), "{}", error.message);
    assert_eq!((error.message.chars().count(), error.column), (500, None));
}

#[test]
fn an_error_about_an_answer_does_not_quote_the_answer() {
    let secret = "sesame";
    let answers = [
        format!(r#"{{"batchItemFailures": "{secret}"}}"#),
        format!(r#"{{"batchItemFailures": [{{"itemIdentifier": "{secret}"}}]}}"#),
        format!(r#"{{"batchItemFailures": [{{"itemIdentifier": "j/1", "code": ["{secret}"]}}]}}"#),
        format!(r#"{{"{secret}": 1}}"#),
        secret.to_owned(),
    ];
    for answer in answers {
        let error = read_answer(answer.as_bytes(), &SENT, true).unwrap_err();
        assert!(!error.to_string().contains(secret), "{error}");
    }
}

#[test]
fn an_output_keeps_its_digits_field_order_and_white_space_in_strings() {
    let answer = concat!(
        r#"{"batchItemFailures": [], "outputs": [{"itemIdentifier": "j/1", "output": {"#,
        "\r\n\t \"z\" : 12345678901234567890.10 ,\n\"a \\\" b\\\\\" : [ 1 , \"\\n  x\" ] }}]}"
    );
    let results = read_answer(answer.as_bytes(), &SENT, true).unwrap();
    let line = r#"{"z":12345678901234567890.10,"a \" b\\":[1,"\n  x"]}"#;
    assert_eq!(results[0], Ok(ItemOutcome::Output(line.into())));
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((any::<String>(), inner), 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Map<String, Value>> {
    vec((any::<String>(), json_values()), 0..4).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    /// For any set of failed items and any set of outputs, each item gets the result that the answer gives it, for any
    /// layout of the JSON.
    #[test]
    fn each_item_gets_its_result_from_any_valid_answer(
        ends in vec(prop_oneof![Just(None), Just(Some(None)), objects().prop_map(|output| Some(Some(output)))], 0..20),
        reversed in any::<bool>(),
        pretty in any::<bool>(),
    ) {
        let ids: Vec<String> = (1..=ends.len()).map(|row| format!("j/{row}")).collect();
        let (mut failures, mut outputs) = (Vec::new(), Vec::new());
        for (id, end) in ids.iter().zip(&ends) {
            match end {
                None => failures.push(json!({ "itemIdentifier": id, "code": format!("of {id}") })),
                Some(Some(output)) => outputs.push(json!({ "itemIdentifier": id, "output": output })),
                Some(None) => {}
            }
        }
        if reversed {
            failures.reverse();
            outputs.reverse();
        }
        let answer = json!({ "batchItemFailures": failures, "outputs": outputs });
        let text = if pretty { serde_json::to_string_pretty(&answer) } else { serde_json::to_string(&answer) }.unwrap();
        let sent: Vec<&str> = ids.iter().map(String::as_str).collect();
        let results = read_answer(text.as_bytes(), &sent, true).unwrap();
        prop_assert_eq!(results.len(), ends.len());
        for ((id, end), result) in ids.iter().zip(ends).zip(results) {
            match (end, result) {
                (None, Err(error)) => prop_assert_eq!(error.code, format!("of {id}")),
                (Some(None), Ok(ItemOutcome::Succeeded)) => {}
                (Some(Some(output)), Ok(ItemOutcome::Output(line))) => {
                    prop_assert!(!line.contains('\n'));
                    prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), Value::Object(output));
                }
                (end, result) => prop_assert!(false, "{end:?} became {result:?}"),
            }
        }
    }

    /// A single wrong identifier among correct ones makes the answer invalid.
    #[test]
    fn one_wrong_identifier_makes_any_answer_bad(
        failed in hash_set(0..10_usize, 0..10),
        wrong in prop_oneof![Just("j/10".to_owned()), Just("J/1".to_owned()), Just("j/01".to_owned()), any::<String>()],
        repeat in any::<bool>(),
        at in any::<prop::sample::Index>(),
    ) {
        let ids: Vec<String> = (0..10).map(|row| format!("j/{row}")).collect();
        prop_assume!(!ids.contains(&wrong));
        let mut named: Vec<&str> = failed.iter().map(|place| ids[*place].as_str()).collect();
        let added = if repeat && !named.is_empty() { named[at.index(named.len())] } else { wrong.as_str() };
        named.insert(at.index(named.len() + 1), added);
        let failures: Vec<Value> = named.iter().map(|id| json!({ "itemIdentifier": id })).collect();
        let sent: Vec<&str> = ids.iter().map(String::as_str).collect();
        let answer = json!({ "batchItemFailures": failures }).to_string();
        prop_assert!(read_answer(answer.as_bytes(), &sent, true).is_err());
    }

    /// Any bytes are parsed or rejected without a panic, and a truncated answer is rejected.
    #[test]
    fn garbage_and_truncated_answers_are_bad(bytes in vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>()) {
        let read = read_answer(&bytes, &SENT, true);
        let braced = bytes.trim_ascii_start().first() == Some(&123);
        prop_assert!(read.is_err() || braced);
        let whole = br#"{"batchItemFailures":[{"itemIdentifier":"j/2"}],"outputs":[{"itemIdentifier":"j/1","output":{}}]}"#;
        prop_assert!(read_answer(&whole[..cut.index(whole.len())], &SENT, true).is_err());
        prop_assert!(read_answer(whole, &SENT, true).is_ok());
    }
}
