//! The parameters as documentation.

use std::fmt::Write as _;
use std::fs;

use rowmill::template::Template;
use serde_json::Value;

use crate::{template, workspace};

/// The document that lists the parameters, between these two lines.
const DOCUMENT: &str = "docs/limits.md";
const AROUND: [&str; 2] = ["<!-- parameters: begin -->", "<!-- parameters: end -->"];

/// Set to make the test write the document.
pub(crate) const WRITE: &str = "ROWMILL_WRITE_DOCS";

/// The parts of a document before, between and after two lines.
fn parts<'a>(document: &'a str, [begin, end]: [&str; 2]) -> [&'a str; 3] {
    let (before, rest) = document.split_once(begin).unwrap_or_else(|| panic!("there is no line {begin}"));
    let (between, after) = rest.split_once(end).unwrap_or_else(|| panic!("there is no line {end}"));
    [before, between, after]
}

/// The part of a document between two lines.
pub(crate) fn between<'a>(document: &'a str, around: [&str; 2]) -> &'a str {
    parts(document, around)[1]
}

/// The document with another text between two lines.
pub(crate) fn with_between(document: &str, around: [&str; 2], text: &str) -> String {
    let ([before, _, after], [begin, end]) = (parts(document, around), around);
    format!("{before}{begin}{text}{end}{after}")
}

/// The parameters by heading, in the order of the template. Headings are comments: `# -- Files -----`.
fn sections() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(workspace().join("template.yaml")).unwrap();
    let parameters = text.lines().skip_while(|line| *line != "Parameters:").skip(1);
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for line in parameters.take_while(|line| line.is_empty() || line.starts_with(' ')) {
        if let Some(heading) = line.strip_prefix("  # -- ") {
            sections.push((heading.trim_end_matches(['-', ' ']).to_owned(), Vec::new()));
        } else if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':'))
            && name.starts_with(|c: char| c.is_ascii_uppercase())
        {
            sections.last_mut().expect("a heading").1.push(name.to_owned());
        }
    }
    sections
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn table(template: &Template) -> String {
    let mut table = String::from("\n");
    for (heading, parameters) in sections() {
        write!(table, "\n### {heading}\n\n| parameter | default | description |\n|---|---|---|\n").unwrap();
        for name in parameters {
            let parameter = &template.document()["Parameters"][&name];
            let default = match &parameter["Default"] {
                Value::String(text) if text.is_empty() => "–".to_owned(),
                Value::String(text) => format!("`{}`", cell(text)),
                other => format!("`{other}`"),
            };
            let description = cell(parameter["Description"].as_str().expect("a description"));
            writeln!(table, "| `{name}` | {default} | {description} |").unwrap();
        }
    }
    table + "\n"
}

#[test]
fn every_parameter_has_a_description_and_a_heading() {
    let template = template();
    let parameters = template.document()["Parameters"].as_object().unwrap();
    for (name, parameter) in parameters {
        let description = parameter["Description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.') && description.len() > 20, "{name} has no description");
        assert!(!parameter["Default"].is_null(), "{name} has no default");
    }
    let listed: Vec<String> = sections().into_iter().flat_map(|(_, names)| names).collect();
    assert_eq!(listed.len(), parameters.len(), "every parameter is under a heading");
    assert!(listed.iter().all(|name| parameters.contains_key(name)), "{listed:?}");
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

/// Fails if a document does not have this text between two lines; or writes it, if that is wanted.
pub(crate) fn is_documented(path: &str, around: [&str; 2], text: &str) {
    let document = fs::read_to_string(workspace().join(path)).unwrap();
    let expected = with_between(&document, around, text);
    if std::env::var_os(WRITE).is_some() {
        fs::write(workspace().join(path), expected).unwrap();
    } else {
        assert!(document == expected, "{path} is not up to date: run `{WRITE}=1 cargo test --test template`");
    }
}

#[test]
fn the_documented_parameters_match_the_template() {
    is_documented(DOCUMENT, AROUND, &table(&template()));
}
