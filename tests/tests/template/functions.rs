//! The functions and what they get from the environment.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::{properties, target, template, workspace};

#[test]
fn every_function_runs_its_own_binary_on_the_chosen_processor_traced_and_with_a_log_that_ends() {
    let template = template();
    let globals = &template.document()["Globals"]["Function"];
    assert_eq!((&globals["Runtime"], &globals["Handler"]), (&json!("provided.al2023"), &json!("bootstrap")));
    assert_eq!(
        (&globals["Tracing"], &globals["Architectures"]),
        (&json!("Active"), &json!([{ "Ref": "Architecture" }]))
    );

    let functions = template.functions().unwrap();
    let packages: BTreeSet<&str> = functions.iter().map(|function| function.package.as_str()).collect();
    let expected = [
        "announce-job",
        "cancel-job",
        "complete-job",
        "create-job",
        "dead-letter",
        "job-status",
        "process-items",
        "receive-file",
        "redrive-job",
        "split-job",
        "sweep",
        "upload",
    ];
    assert_eq!(packages, BTreeSet::from(expected));
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

/// What each adapter a function takes from its runtime reads from the environment.
const ADAPTERS: [(&str, &str); 14] = [
    ("job_store", "ROWMILL_JOBS_TABLE"),
    ("upload_store", "ROWMILL_UPLOADS_TABLE"),
    ("record_store", "ROWMILL_RECORDS_TABLE"),
    ("objects", "ROWMILL_BUCKET"),
    ("split_queue", "ROWMILL_JOBS_QUEUE_URL"),
    ("items_queue", "ROWMILL_ITEMS_QUEUE_URL"),
    ("isolate_queue", "ROWMILL_ISOLATE_QUEUE_URL"),
    ("completions_queue", "ROWMILL_COMPLETIONS_QUEUE_URL"),
    ("inbox_deliveries", "ROWMILL_INBOX_QUEUE_URL"),
    ("events", "ROWMILL_EVENT_BUS_NAME"),
    ("job_steps", "ROWMILL_JOBS_TABLE"),
    ("job_steps", "ROWMILL_BUCKET"),
    ("job_steps", "ROWMILL_ITEMS_QUEUE_URL"),
    ("job_steps", "ROWMILL_COMPLETIONS_QUEUE_URL"),
];

/// Read by the job store too, and needed only by the functions that admit jobs and let them go.
const ADMISSION: (&str, [&str; 5]) =
    ("ROWMILL_ADMISSION_TABLE", ["create-job", "receive-file", "redrive-job", "complete-job", "dead-letter"]);

fn source(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The folder of a function's package: `functions/<flow>/<package>`.
fn folder_of(package: &str) -> String {
    let flows = ["api", "pipeline", "recovery", "integration"];
    let folders: Vec<String> = flows.iter().map(|flow| format!("functions/{flow}/{package}")).collect();
    let folder = folders.into_iter().find(|folder| workspace().join(folder).is_dir());
    folder.unwrap_or_else(|| panic!("no folder of {package} below functions"))
}

/// The text of a function's start: its entry point, and the modules it hands over to where it has any.
fn start_of(package: &str) -> String {
    let folder = folder_of(package);
    let start = format!("{folder}/src/start.rs");
    let start = if workspace().join(&start).exists() { source(&start) } else { String::new() };
    // It creates jobs as create-job does, with all that takes.
    let creates = if start.contains("create_job::start::creator") { start_of("create-job") } else { String::new() };
    source(&format!("{folder}/src/main.rs")) + &start + &creates
}

/// The names of settings in a source text, as string literals.
fn settings_in(text: &str) -> BTreeSet<String> {
    let literals = text.split('"').skip(1).step_by(2);
    literals.filter(|literal| literal.starts_with("ROWMILL_")).map(str::to_owned).collect()
}

#[test]
fn every_function_gets_the_settings_its_code_reads_and_no_other() {
    let template = template();
    let read_by_runtime = settings_in(&source("functions/shared/aws/src/runtime.rs"));
    let known = ADAPTERS.iter().map(|(_, setting)| *setting).chain([ADMISSION.0]).map(str::to_owned).collect();
    assert_eq!(read_by_runtime, known, "the runtime reads other settings than this test knows of");

    for function in template.functions().unwrap() {
        let main = start_of(&function.package);
        let mut read = settings_in(&main);
        let adapters = ADAPTERS.iter().filter(|(adapter, _)| main.contains(&format!(".{adapter}()")));
        read.extend(adapters.map(|(_, setting)| (*setting).to_owned()));
        if ADMISSION.1.contains(&function.package.as_str()) {
            read.insert(ADMISSION.0.to_owned());
        }
        let given = &properties(&template, &function.logical_id)["Environment"]["Variables"];
        let given: BTreeSet<String> = given.as_object().unwrap().keys().cloned().collect();
        assert_eq!(given, read, "{}", function.package);
    }
}

#[test]
fn settings_carry_the_value_their_name_says() {
    let template = template();
    for function in template.functions().unwrap() {
        let given = properties(&template, &function.logical_id)["Environment"]["Variables"].as_object().unwrap();
        for (setting, value) in given {
            let words = setting.trim_start_matches("ROWMILL_").trim_end_matches("_URL").split('_');
            let name: String = words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect();
            assert_eq!(target(value), name, "{setting} of {}", function.package);
        }
    }
}
