//! Checks that no emulator makes and AWS does not either: that `template.yaml` fits the code.

mod alarms;
mod announcements;
mod deployer;
mod functions;
mod http_api;
mod inbox;
mod live;
mod metrics;
mod parameters;
mod permission_list;
mod permissions;
mod priorities;
mod queues;
mod recursion;
mod schedule;
mod settings;
mod storage;
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

/// The name in `{"Ref": name}` or `{"Fn::GetAtt": [name, …]}`.
fn target(value: &Value) -> &str {
    value["Ref"].as_str().or_else(|| value["Fn::GetAtt"][0].as_str()).unwrap_or_else(|| panic!("{value} names nothing"))
}

/// A number, or the text of one: the keys of mappings are texts.
fn number_in(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn default_of(template: &Template, parameter: &str) -> u64 {
    let default = &template.document()["Parameters"][parameter]["Default"];
    number_in(default).unwrap_or_else(|| panic!("{parameter} is not a number"))
}

/// A number in a property: the literal, or the default of the parameter that it refers to.
fn number(template: &Template, value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| default_of(template, target(value)))
}

/// All numbers that a property may have: the literal, or all allowed values of its parameter.
fn numbers(template: &Template, value: &Value) -> Vec<u64> {
    value.as_u64().map_or_else(|| allowed(template, target(value)), |number| vec![number])
}

fn allowed_values<'a>(template: &'a Template, parameter: &str) -> &'a [Value] {
    let values = template.document()["Parameters"][parameter]["AllowedValues"].as_array();
    values.unwrap_or_else(|| panic!("{parameter} has no allowed values"))
}

/// All allowed values of a parameter of numbers.
fn allowed(template: &Template, parameter: &str) -> Vec<u64> {
    allowed_values(template, parameter).iter().map(|value| number_in(value).unwrap()).collect()
}

fn maximum_of(template: &Template, parameter: &str) -> u64 {
    template.document()["Parameters"][parameter]["MaxValue"].as_u64().unwrap()
}

/// The result of `!FindInMap [map, !Ref parameter, key]` for a value of the parameter.
fn mapped(template: &Template, find_in_map: &Value, value: u64) -> u64 {
    let [map, _, key] = [0, 1, 2].map(|index| &find_in_map["Fn::FindInMap"][index]);
    let found = &template.document()["Mappings"][map.as_str().unwrap()][value.to_string()][key.as_str().unwrap()];
    found.as_u64().unwrap_or_else(|| panic!("{map} has no {value}"))
}

/// An event source mapping: a queue and the function that reads it.
struct EventSource<'a> {
    queue: &'a str,
    function: &'a str,
    properties: &'a Value,
}

impl<'a> EventSource<'a> {
    fn of(properties: &'a Value) -> Self {
        let (queue, function) = (target(&properties["EventSourceArn"]), target(&properties["FunctionName"]));
        Self { queue, function, properties }
    }
}

/// The event source mappings of queues, without the one of the stream of the jobs table.
fn event_sources(template: &Template) -> Vec<EventSource<'_>> {
    let sources = template.resources_of("AWS::Lambda::EventSourceMapping").map(|(_, source)| &source["Properties"]);
    sources.filter(|source| source["EventSourceArn"]["Fn::GetAtt"][1] == "Arn").map(EventSource::of).collect()
}

/// True if a record passes a filter of the mapping of a stream. Each value of a pattern is a list of allowed values, or
/// of beginnings.
fn passes(mapping: &Value, record: &Value) -> bool {
    fn fits(pattern: &Value, record: &Value) -> bool {
        match pattern {
            Value::Object(fields) => fields.iter().all(|(name, pattern)| fits(pattern, &record[name])),
            Value::Array(allowed) => allowed.iter().any(|allowed| match allowed["prefix"].as_str() {
                Some(prefix) => record.as_str().is_some_and(|text| text.starts_with(prefix)),
                None => allowed == record,
            }),
            other => panic!("{other} in a pattern"),
        }
    }
    let filters = mapping["FilterCriteria"]["Filters"].as_array().expect("filters");
    filters.iter().any(|filter| {
        let pattern = serde_json::from_str(filter["Pattern"].as_str().expect("a text")).expect("JSON");
        fits(&pattern, record)
    })
}

/// The path of an integration in `integrations/${Name}`.
fn integration_of(route: &Value) -> &str {
    let integration = route["Target"]["Fn::Sub"].as_str().unwrap();
    integration.trim_start_matches("integrations/${").trim_end_matches('}')
}

/// Dead-letter queues that no function reads: an alarm calls a person.
const WITHOUT_READER: [&str; 2] = ["InboxDeadLetterQueue", "AnnouncementsDeadLetterQueue"];

fn is_dead_letter_queue(queue: &str) -> bool {
    queue.ends_with("DeadLetterQueue")
}
