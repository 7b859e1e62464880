//! Settings: the defaults in the code, the parameters of the template, and the environment between them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rowmill_api::routes;
use rowmill_aws::host::http::Access;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::owner_priorities;
use rowmill_core::model::request_limits::RequestLimits;
use rowmill_settings::{
    ConnectionLimits, Deadlines, FileLimits, JobRetention, JobTargets, JobTypeSettings, Links, OwnerPrioritySettings,
    Setting, SettingsGroup, SubscriptionLimits,
};
use serde_json::{Value, json};

use crate::functions::folder_of;
use crate::{properties, template, workspace};

/// A group as data: its name and its settings.
type Group = (&'static str, Vec<Setting>);

fn group<G: SettingsGroup>() -> Group {
    (G::NAME, G::settings())
}

/// Every group that a `start.rs` reads. Groups inside these are part of them.
fn groups() -> BTreeMap<&'static str, Vec<Setting>> {
    let groups = [
        group::<Access>(),
        group::<BreakerLimits>(),
        group::<ConnectionLimits>(),
        group::<Deadlines>(),
        group::<FileLimits>(),
        group::<JobRetention>(),
        group::<JobTargets>(),
        group::<JobTypeSettings>(),
        group::<Links>(),
        group::<OwnerPrioritySettings>(),
        group::<RequestLimits>(),
        group::<SubscriptionLimits>(),
        group::<complete_job::limits::CompleteLimits>(),
        group::<create_job::limits::CreateLimits>(),
        group::<dead_letter::limits::DeadLetterLimits>(),
        group::<process_items::limits::RunLimits>(),
        group::<receive_file::limits::InboxSettings>(),
        group::<redrive_job::limits::RedriveLimits>(),
        group::<split_job::limits::SplitLimits>(),
        group::<sweep::limits::SweepLimits>(),
        group::<upload::limits::UploadLimits>(),
        group::<web::limits::PageSettings>(),
    ];
    groups.into()
}

/// Only functions that begin or end attempts, have limited routes or use breakers use the admission table, which the
/// job store names if it is set.
const ADMITTING: [&str; 10] = [
    "upload",
    "create-job",
    "receive-file",
    "redrive-job",
    "cancel-job",
    "complete-job",
    "dead-letter",
    "live-ticket",
    "process-items",
    "sweep",
];

fn source(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn start_path(package: &str) -> String {
    format!("{}/src/start.rs", folder_of(package))
}

/// The `start.rs` of a function, and that of `create-job` for a function that creates jobs with it.
fn start_of(package: &str) -> String {
    let start = source(&start_path(package));
    let creates = start.contains("create_job::start::creator").then(|| start_of("create-job"));
    start + &creates.unwrap_or_default()
}

/// The names in front of `::from_env()` in a source text.
fn groups_in(text: &str) -> BTreeSet<&str> {
    let before: Vec<&str> = text.split("::from_env()").collect();
    let last_name = |text: &&'_ str| text.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    before[..before.len() - 1].iter().map(|text| &text[last_name(text)..]).collect()
}

/// Every resource by the name of its constant, `JOBS_TABLE`, and its variable, from the source where they are declared.
fn resources() -> BTreeMap<String, String> {
    let text = source("functions/shared/settings/src/resources.rs");
    let declared = text.lines().filter_map(|line| line.trim().split_once(" = \"ROWMILL_"));
    let resources = declared.map(|(name, rest)| {
        let variable = rest.split('"').next().expect("a literal");
        (name.to_owned(), format!("ROWMILL_{variable}"))
    });
    resources.collect()
}

/// The constants `settings::NAME` of resources in a source text, as variables. The admission table is checked
/// separately.
fn resources_in(text: &str, resources: &BTreeMap<String, String>) -> BTreeSet<String> {
    let names = text.split("settings::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    });
    // Types and functions have small letters.
    let is_constant = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_ascii_lowercase());
    let names = names.filter(|name| *name != "ADMISSION_TABLE" && is_constant(name));
    names.map(|name| resources.get(name).unwrap_or_else(|| panic!("{name} is not a resource")).clone()).collect()
}

/// The variables and groups that a source text reads.
#[derive(Default)]
struct Reads {
    /// Variables that name resources.
    variables: BTreeSet<String>,
    /// Groups of settings.
    groups: BTreeSet<String>,
}

/// Texts that build from the environment, by the text that uses them: `ports.jobs`, a function of the runtime as
/// `queue(`, and steps over ports as `JobSteps::of(`.
fn built() -> BTreeMap<String, String> {
    let runtime = source("functions/shared/aws/src/runtime.rs");
    let (before, ports) = runtime.split_once("Ok(Ports {\n").expect("the ports");
    let (ports, after) = ports.split_once("\n    })").expect("their end");
    let mut built = BTreeMap::new();
    let mut port = String::new();
    for line in ports.lines() {
        let field = line.strip_prefix("        ").filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
        if let Some((name, _)) = field.and_then(|field| field.split_once(": ")) {
            port = format!("ports.{name}");
        }
        *built.entry(port.clone()).or_default() += line;
    }
    for function in format!("{before}{after}").split("fn ").skip(1) {
        let (name, body) = function.split_once('(').expect("parameters");
        let name = name.split('<').next().expect("a name");
        built.insert(format!("{name}("), body.split("\n}\n").next().expect("a body").to_owned());
    }
    for file in ["breaker.rs", "commit/mod.rs", "commit/resend.rs"] {
        let text = source(&format!("functions/shared/core/src/progress/{file}"));
        let (before, body) = text.split_once("pub fn of(ports: &Ports").expect("steps over ports");
        let name = before.rsplit("impl ").next().and_then(|text| text.split(' ').next()).expect("their name");
        built.insert(format!("{name}::of("), body.split("\n    }\n").next().expect("a body").to_owned());
    }
    built
}

/// The reads of a source text, including those of what is built for it.
fn reads_of(text: &str, built: &BTreeMap<String, String>, resources: &BTreeMap<String, String>) -> Reads {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let uses = |text: &str, used: &str| {
        text.match_indices(used).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + used.len()..]);
            !before.ends_with(is_part) && (used.ends_with('(') || !behind.starts_with(is_part))
        })
    };
    let (mut reads, mut seen, mut texts) = (Reads::default(), BTreeSet::new(), vec![text]);
    while let Some(text) = texts.pop() {
        reads.variables.extend(resources_in(text, resources));
        reads.groups.extend(groups_in(text).into_iter().map(str::to_owned));
        let used = built.iter().filter(|(used, _)| uses(text, used));
        texts.extend(used.filter(|(used, _)| seen.insert(*used)).map(|(_, text)| text.as_str()));
    }
    reads
}

/// The variables of a function in the template.
fn environment(logical_id: &str) -> BTreeMap<String, Value> {
    let template = template();
    let given = properties(&template, logical_id)["Environment"]["Variables"].as_object().unwrap().clone();
    given.into_iter().collect()
}

#[test]
fn every_default_in_the_code_is_the_default_of_its_parameter() {
    let template = template();
    for (group, settings) in groups() {
        for Setting { parameter, default, .. } in settings {
            let expected = match &template.document()["Parameters"][parameter]["Default"] {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                other => panic!("{parameter} of {group} has the default {other} in the template"),
            };
            assert_eq!(default, expected, "the default of {parameter}: in {group}, and in the template");
        }
    }
}

/// `rowmill` refuses a longer one before it deploys, and CloudFormation in any deployment.
#[test]
fn the_longest_owner_priorities_are_those_of_the_template() {
    let template = template();
    let max = &template.document()["Parameters"]["OwnerPriorities"]["MaxLength"];
    assert_eq!(*max, json!(owner_priorities::MAX_CHARS));
}

#[test]
fn every_setting_is_declared_in_one_group() {
    let mut declared_in = BTreeMap::new();
    for setting in groups().into_values().flatten() {
        let group = *declared_in.entry(setting.parameter).or_insert(setting.group);
        assert_eq!(group, setting.group, "{} has two homes", setting.parameter);
    }
}

#[test]
fn every_function_gets_exactly_the_settings_that_its_code_reads() {
    let (groups, resources) = (groups(), resources());
    let built = built();
    let mut groups_read = BTreeSet::new();
    for function in template().functions().unwrap() {
        let (package, start) = (function.package.as_str(), start_of(&function.package));
        assert!(!start.contains("ROWMILL_"), "{package} reads a variable past its groups");
        let Reads { variables: mut read, groups: groups_of_start } = reads_of(&start, &built, &resources);
        if ADMITTING.contains(&package) {
            read.insert(rowmill_settings::ADMISSION_TABLE.variable.to_owned());
        }
        // The runtime reads who may call, for every function of the API.
        let of_api = source(&start_path(package)).contains("serve::api(").then_some(Access::NAME);
        // So it does with the limits of callers, for every function with such a route.
        let limited = routes::all().any(|route| route.function == package && route.is_limited());
        let of_guard = limited.then_some(RequestLimits::NAME);
        for name in groups_of_start.iter().map(String::as_str).chain(of_api).chain(of_guard) {
            let (name, settings) = groups.get_key_value(name).unwrap_or_else(|| panic!("{name} is in no list here"));
            read.extend(settings.iter().map(Setting::variable));
            groups_read.insert(*name);
        }
        let given: BTreeSet<String> = environment(&function.logical_id).into_keys().collect();
        assert_eq!(given, read, "{package}: given by the template, and read by the code");
    }
    assert_eq!(groups_read, groups.into_keys().collect(), "no function reads some group");
}

#[test]
fn only_start_reads_settings_from_the_environment() {
    for function in template().functions().unwrap() {
        let folder = workspace().join(folder_of(&function.package)).join("src");
        for file in fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() && !path.ends_with("start.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let reads = ["from_env()", "env::var", "settings::read"].iter().any(|call| text.contains(call));
                assert!(!reads, "{} reads the environment", path.display());
            }
        }
    }
}

#[test]
fn every_function_has_the_same_files() {
    for function in template().functions().unwrap() {
        let folder = workspace().join(folder_of(&function.package)).join("src");
        for file in ["main.rs", "start.rs", "handler.rs", "lib.rs"] {
            assert!(folder.join(file).is_file(), "{} has no {file}", function.package);
        }
        let main = fs::read_to_string(folder.join("main.rs")).unwrap();
        assert!(main.lines().count() <= 10, "{}: main.rs only calls start", function.package);
    }
}

#[test]
fn every_variable_passes_the_parameter_or_resource_of_its_name() {
    let parameters: BTreeMap<String, &str> =
        groups().into_values().flatten().map(|setting| (setting.variable(), setting.parameter)).collect();
    for function in template().functions().unwrap() {
        for (variable, value) in environment(&function.logical_id) {
            let expected =
                parameters.get(&variable).map_or_else(|| resource_name(&variable), |name| (*name).to_owned());
            // Only these functions are in stacks without an HTTP API, too.
            let always = ["live-ticket", "web"].contains(&function.package.as_str()) && expected == "Live";
            let expected = match always {
                true => json!({ "Fn::If": ["HasHttpApi", reference(&expected), ""] }),
                false => reference(&expected),
            };
            assert_eq!(value, expected, "{variable} of {}", function.package);
        }
    }
}

/// The reference of a variable to a parameter or a resource. The webhook secret is made by the stack or named by a
/// parameter.
fn reference(name: &str) -> Value {
    match name {
        "WebhookSecret" => {
            let made = json!({ "Fn::GetAtt": [name, "Id"] });
            json!({ "Fn::If": ["MakesWebhookSecret", made, { "Ref": "WebhookSecretArn" }] })
        }
        // The address of AWS, or of an emulator.
        "Live" => {
            let [aws, emulator] =
                ["wss://${LiveApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}", "${LiveEndpoint}/${LiveApi}"];
            let at = |base: &str| json!({ "Fn::Sub": format!("{base}/live") });
            json!({ "Fn::If": ["HasLiveEndpoint", at(emulator), at(aws)] })
        }
        _ => json!({ "Ref": name }),
    }
}

/// The logical id or the parameter of a resource: `JobsQueue` of `ROWMILL_JOBS_QUEUE_URL`.
fn resource_name(variable: &str) -> String {
    let words = variable.trim_start_matches("ROWMILL_").trim_end_matches("_URL").trim_end_matches("_ARN").split('_');
    words.map(|word| word[..1].to_owned() + &word[1..].to_lowercase()).collect()
}
