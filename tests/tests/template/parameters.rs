//! The parameters.

use std::process::Command;

use rowmill_settings::other_settings::OtherSettings;
use serde_json::Value;

use crate::template;

#[test]
fn every_parameter_and_setting_says_what_it_sets() {
    let template = template();
    let document = template.document();
    let named = [&document["Parameters"], &document["Metadata"]["OtherSettings"]];
    for (name, parameter) in named.into_iter().flat_map(|named| named.as_object().unwrap()) {
        let description = parameter["Description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.') && description.len() > 20, "{name} has no description");
        assert!(!parameter["Default"].is_null(), "{name} has no default");
    }
}

/// CloudFormation refuses what no setting is called, and the functions read each value that it lets through.
#[test]
fn what_cloudformation_takes_as_other_settings_is_json_of_settings() {
    let template = template();
    let pattern = template.document()["Parameters"]["OtherSettings"]["AllowedPattern"].as_str().unwrap();
    let names = template.document()["Metadata"]["OtherSettings"].as_object().unwrap();
    let all: Vec<_> = names.keys().map(|name| format!("\"{name}\":100")).collect();
    let all = format!("{{{}}}", all.join(","));
    assert!(all.len() as u64 <= template.document()["Parameters"]["OtherSettings"]["MaxLength"].as_u64().unwrap());
    let taken = ["", "{}", r#"{"StaleSeconds":900}"#, r#" { "StaleSeconds" : 900 , "InboxOwner": "a b" } "#, &all];
    let refused = [
        "StaleSeconds=900",
        r#"{"Stale": 900}"#,
        r#"{"StaleSeconds": 900,}"#,
        r#"{"StaleSeconds": 900 "InboxOwner": "a"}"#,
        r#"{"StaleSeconds": -1}"#,
        r#"{"StaleSeconds": [9]}"#,
        r#"{"InboxOwner": "a\"b"}"#,
        r#"{"InboxOwner": "a\"}"#,
        r#"{"InboxOwner": "a\q"}"#,
        "{\"InboxOwner\": \"a\nb\"}",
        r#"{"StaleSeconds": 0900}"#,
    ];
    let matches = matching(pattern, taken.into_iter().chain(refused));
    assert_eq!(matches, [vec![true; taken.len()], vec![false; refused.len()]].concat(), "{pattern}");
    assert!(taken.into_iter().all(|json| OtherSettings::parse(json).is_ok()));
    assert!(names.keys().all(|name| template.other_setting(name).is_some()), "each has its bounds");
}

/// What Lambda takes: 2 to 200 pollers at least, 2 to 2,000 at most.
#[test]
fn what_cloudformation_takes_as_pollers_is_within_what_lambda_takes() {
    let template = template();
    let pattern = template.document()["Parameters"]["ItemsPollers"]["AllowedPattern"].as_str().unwrap();
    let taken = ["", "2-2", "2-5", "10-99", "200-2000"];
    let refused = ["2", "2-", "-5", "1-5", "201-300", "2-1", "2-2001", "02-5", "2 - 5", "2-5-"];
    let matches = matching(pattern, taken.into_iter().chain(refused));
    assert_eq!(matches, [vec![true; taken.len()], vec![false; refused.len()]].concat(), "{pattern}");
}

/// Which texts match a pattern, by Python's `re`: like that of CloudFormation it looks ahead, which that of Rust does not.
fn matching<'a>(pattern: &str, texts: impl Iterator<Item = &'a str>) -> Vec<bool> {
    const PROGRAM: &str =
        "import json, re, sys; print(json.dumps([bool(re.fullmatch(sys.argv[1], text)) for text in sys.argv[2:]]))";
    let output = Command::new("python3").args(["-c", PROGRAM, pattern]).args(texts).output().expect("python3 runs");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// The parameters that are keys of mappings, anywhere in this part of the template.
fn mapping_keys<'a>(part: &'a Value, keys: &mut Vec<&'a str>) {
    match part {
        Value::Object(map) => {
            if let Some(find) = map.get("Fn::FindInMap") {
                keys.extend((0..3).filter_map(|index| find[index]["Ref"].as_str()));
            }
            map.values().for_each(|value| mapping_keys(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| mapping_keys(value, keys)),
        _ => {}
    }
}

/// LocalStack turns a `Number` into an integer, which is no key of a mapping, and its updates cannot join a list.
#[test]
fn no_key_of_a_mapping_is_a_number_and_no_parameter_is_a_list() {
    let template = template();
    let (parameters, mut keys) = (&template.document()["Parameters"], Vec::new());
    mapping_keys(&template.document()["Resources"], &mut keys);
    assert!(keys.len() >= 6, "{keys:?}");
    for key in keys {
        let values = parameters[key]["AllowedValues"].as_array().unwrap_or_else(|| panic!("{key} allows anything"));
        let texts = values.iter().chain([&parameters[key]["Default"]]).all(Value::is_string);
        assert!(parameters[key]["Type"] == "String" && texts, "{key} is a key of a mapping: its values must be texts");
    }
    for (name, parameter) in parameters.as_object().unwrap() {
        assert!(["String", "Number"].contains(&parameter["Type"].as_str().unwrap()), "{name} is a list");
    }
}
