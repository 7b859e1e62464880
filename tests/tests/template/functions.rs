//! The functions: binaries, processor, traces and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::json;

use crate::{properties, target, template, workspace};

#[test]
fn every_function_has_its_binary_the_chosen_processor_tracing_and_a_log_retention() {
    let template = template();
    let globals = &template.document()["Globals"]["Function"];
    assert_eq!((&globals["Runtime"], &globals["Handler"]), (&json!("provided.al2023"), &json!("bootstrap")));
    assert_eq!(
        (&globals["Tracing"], &globals["Architectures"]),
        (&json!("Active"), &json!([{ "Ref": "Architecture" }]))
    );

    let functions = template.functions().unwrap();
    let packages: BTreeSet<&str> = functions.iter().map(|function| function.package.as_str()).collect();
    let folders = folders();
    assert_eq!(packages, folders.keys().map(String::as_str).collect(), "each folder is a function");
    for function in &functions {
        let resource = &template.document()["Resources"][&function.logical_id];
        let (package, properties_of) = (&function.package, &resource["Properties"]);
        assert_eq!(resource["Metadata"]["BuildMethod"], "rust-cargolambda", "{package}");
        assert_eq!(properties_of["CodeUri"], json!(format!("{}/", folder_of(package))));
        assert_eq!(properties_of["FunctionName"], json!({ "Fn::Sub": format!("${{AWS::StackName}}-{package}") }));
        let log = properties(&template, target(&properties_of["LoggingConfig"]["LogGroup"]));
        assert_eq!(log["RetentionInDays"], json!({ "Ref": "LogRetentionDays" }), "{package}");
        assert_eq!(log["LogGroupName"], json!({ "Fn::Sub": format!("/aws/lambda/${{AWS::StackName}}-{package}") }));
    }
}

/// Cargo would not run them.
#[test]
fn a_library_that_is_not_tested_has_no_tests() {
    for function in template().functions().unwrap() {
        let folder = workspace().join(folder_of(&function.package));
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_tested = !manifest.split("\n[").any(|part| part.starts_with("lib]") && part.contains("test = false"));
        let mut paths = vec![folder.join("src")];
        while let Some(path) = paths.pop().filter(|_| !is_tested) {
            if path.is_dir() {
                paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let has_tests = ["#[test]", "#[tokio::test", "proptest!"].iter().any(|test| text.contains(test));
            assert!(!has_tests, "{} has tests, and its Cargo.toml `test = false`", path.display());
        }
    }
}

/// The folders of the functions, `functions/<flow>/<package>`, by their packages. What functions share is no flow.
fn folders() -> BTreeMap<String, String> {
    let names = |folder: &str| {
        let entries = fs::read_dir(workspace().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let flows = names("functions").into_iter().filter(|flow| flow != "shared");
    let of_flow = |flow: String| {
        let folder = format!("functions/{flow}");
        names(&folder).into_iter().map(move |package| (package.clone(), format!("{folder}/{package}")))
    };
    flows.flat_map(of_flow).collect()
}

pub fn folder_of(package: &str) -> String {
    folders().remove(package).unwrap_or_else(|| panic!("no folder of {package} below functions"))
}
