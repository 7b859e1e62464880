//! Checks that no emulator makes and AWS does not either: that `template.yaml` fits the code, and what AWS's
//! documentation asks for. What follows from a declaration by construction is not checked again.

mod api;
mod deployer;
mod functions;
mod generated;
mod inbox;
mod metrics;
mod parameters;
mod permissions;
mod queues;
mod recursion;
mod storage;
mod streams;
mod time;
mod variables;

use std::path::{Path, PathBuf};

use rowmill::template::Template;
use serde_json::Value;

const DAY_SECONDS: u64 = 86_400;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("`tests` has a parent folder").to_owned()
}

fn template() -> Template {
    Template::load(&workspace().join("template.yaml")).unwrap()
}

fn properties<'a>(template: &'a Template, logical_id: &str) -> &'a Value {
    &template.document()["Resources"][logical_id]["Properties"]
}

/// The name in `{"Ref": name}` or `{"Fn::GetAtt": [name, …]}`: of two of them, that of the stack's own resource.
fn target(value: &Value) -> &str {
    let value = value.get("Fn::If").map_or(value, |branches| &branches[1]);
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str()).unwrap_or_else(|| panic!("{value} names nothing"))
}

/// A number, or the text of one: the keys of mappings are texts.
fn number_in(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn default_of(template: &Template, setting: &str) -> u64 {
    let default = template.default_of(setting).and_then(|default| default.parse().ok());
    default.unwrap_or_else(|| panic!("{setting} is not a number"))
}

/// A number in a property: the literal, or the default of the parameter that it refers to.
fn number(template: &Template, value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| default_of(template, target(value)))
}

/// All allowed values of a parameter of numbers.
fn allowed(template: &Template, parameter: &str) -> Vec<u64> {
    let values = template.document()["Parameters"][parameter]["AllowedValues"].as_array();
    let values = values.unwrap_or_else(|| panic!("{parameter} has no allowed values"));
    values.iter().map(|value| number_in(value).unwrap()).collect()
}

fn maximum_of(template: &Template, setting: &str) -> u64 {
    let of_parameter = template.document()["Parameters"][setting]["MaxValue"].as_u64();
    of_parameter.or_else(|| Some(template.other_setting(setting)?.largest)).unwrap()
}

/// The result of `!FindInMap [map, !Ref parameter, key]` for a value of the parameter.
fn mapped(template: &Template, find_in_map: &Value, value: u64) -> u64 {
    let [map, _, key] = [0, 1, 2].map(|index| &find_in_map["Fn::FindInMap"][index]);
    let found = &template.document()["Mappings"][map.as_str().unwrap()][value.to_string()][key.as_str().unwrap()];
    found.as_u64().unwrap_or_else(|| panic!("{map} has no {value}"))
}

/// The event source mappings of queues: queue, function and properties.
fn event_sources(template: &Template) -> Vec<(&str, &str, &Value)> {
    let sources = template.resources_of("AWS::Lambda::EventSourceMapping").map(|(_, source)| &source["Properties"]);
    let of_queues = sources.filter(|source| source["EventSourceArn"]["Fn::GetAtt"][1] == "Arn");
    of_queues.map(|source| (target(&source["EventSourceArn"]), target(&source["FunctionName"]), source)).collect()
}
