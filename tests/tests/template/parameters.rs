//! The parameters.

use serde_json::Value;

use crate::template;

#[test]
fn every_parameter_says_what_it_sets() {
    for (name, parameter) in template().document()["Parameters"].as_object().unwrap() {
        let description = parameter["Description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.') && description.len() > 20, "{name} has no description");
        assert!(!parameter["Default"].is_null(), "{name} has no default");
    }
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
