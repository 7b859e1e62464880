//! The parameters as documentation.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use rowmill::template::Template;
use serde_json::Value;

use crate::{template, workspace};

/// The document that lists the parameters, between these two lines.
const DOCUMENT: &str = "docs/limits.md";
const BEGIN: &str = "<!-- parameters: begin -->";
const END: &str = "<!-- parameters: end -->";

/// Set to make the test write the document.
const WRITE: &str = "ROWMILL_WRITE_DOCS";

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().map(|value| value.as_str().expect("a text"))
}

/// The parameters by group, as the console shows them.
fn groups(template: &Template) -> impl Iterator<Item = (&str, &Value)> {
    let groups = &template.document()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"];
    let groups = groups.as_array().expect("groups").iter();
    groups.map(|group| (group["Label"]["default"].as_str().expect("a label"), &group["Parameters"]))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn table(template: &Template) -> String {
    let mut table = format!("{BEGIN}\n");
    for (label, parameters) in groups(template) {
        write!(table, "\n### {label}\n\n| parameter | default | description |\n|---|---|---|\n").unwrap();
        for name in strings(parameters) {
            let parameter = &template.document()["Parameters"][name];
            let default = match &parameter["Default"] {
                Value::String(text) if text.is_empty() => "–".to_owned(),
                Value::String(text) => format!("`{}`", cell(text)),
                other => format!("`{other}`"),
            };
            let description = cell(parameter["Description"].as_str().expect("a description"));
            writeln!(table, "| `{name}` | {default} | {description} |").unwrap();
        }
    }
    table + "\n" + END
}

#[test]
fn every_parameter_is_described_and_in_one_group() {
    let template = template();
    let parameters = template.document()["Parameters"].as_object().unwrap();
    for (name, parameter) in parameters {
        let description = parameter["Description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.') && description.len() > 20, "{name} has no description");
        assert!(!parameter["Default"].is_null(), "{name} has no default");
    }
    let grouped: Vec<&str> = groups(&template).flat_map(|(_, names)| strings(names)).collect();
    let once: BTreeSet<&str> = grouped.iter().copied().collect();
    assert_eq!(once.len(), grouped.len(), "a parameter is in two groups");
    assert_eq!(once, parameters.keys().map(String::as_str).collect(), "every parameter is in a group");
}

#[test]
fn the_documented_parameters_are_those_of_the_template() {
    let (path, table) = (workspace().join(DOCUMENT), table(&template()));
    let document = fs::read_to_string(&path).unwrap_or_else(|_| format!("{BEGIN}\n{END}\n"));
    let (before, rest) = document.split_once(BEGIN).unwrap_or_else(|| panic!("{DOCUMENT} has no line {BEGIN}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{DOCUMENT} has no line {END}"));
    let expected = format!("{before}{table}{after}");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, expected).unwrap();
    } else {
        assert!(
            document == expected,
            "{DOCUMENT} is not what the template says: run `{WRITE}=1 cargo test --test template`"
        );
    }
}
