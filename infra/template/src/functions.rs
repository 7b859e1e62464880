//! The functions, with their environments and their roles, and the mappings that invoke them.

use std::collections::{BTreeMap, BTreeSet};

use rowmill_aws::groups;
use rowmill_settings::declaration::{Figure, Function, Stream, Trigger, Use};
use rowmill_settings::other_settings::Allowed;
use rowmill_settings::{FETCHES_QUEUE, LIVE_URL, Resource, Setting, WEBHOOK_SECRET};
use serde::Serialize;

use crate::resources::{arn_of, dead_letters_of, name_of, stream_of};

/// All functions, in the order of the flow.
pub fn all() -> Vec<&'static Function> {
    vec![
        &upload::declaration::FUNCTION,
        &fetch_file::declaration::FUNCTION,
        &create_job::declaration::FUNCTION,
        &split_job::declaration::FUNCTION,
        &start_job::declaration::FUNCTION,
        &process_items::declaration::FUNCTION,
        &complete_job::declaration::FUNCTION,
        &erase_job::declaration::FUNCTION,
        &job_status::declaration::FUNCTION,
        &browse_datasets::declaration::FUNCTION,
        &cancel_job::declaration::FUNCTION,
        &redrive_job::declaration::FUNCTION,
        &work_task::declaration::FUNCTION,
        &web::declaration::FUNCTION,
        &dead_letter::declaration::FUNCTION,
        &sweep::declaration::FUNCTION,
        &announce_job::declaration::FUNCTION,
        &receive_file::declaration::FUNCTION,
        &live_ticket::declaration::FUNCTION,
        &live_connection::declaration::FUNCTION,
        &live_subscription::declaration::FUNCTION,
        &push_progress::declaration::FUNCTION,
    ]
}

/// `SplitJob` of `split-job`.
pub fn stem(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}

/// True if an API invokes it.
pub fn is_of_api(function: &Function) -> bool {
    function.serves_http() || function.serves_web_socket()
}

/// True if it is in stacks with an HTTP API only: it serves the WebSocket API, or sends through it.
pub fn needs_api(function: &Function) -> bool {
    let sends = |right: &Use| !right.actions.is_empty() && right.resources.contains(&LIVE_URL);
    function.serves_web_socket() || function.uses.iter().any(sends)
}

fn settings() -> impl Iterator<Item = Setting> {
    all().into_iter().flat_map(groups).flat_map(|group| (group.settings)())
}

/// The defaults of the settings that functions read.
pub fn defaults() -> BTreeMap<&'static str, String> {
    settings().map(|setting| (setting.parameter, setting.default)).collect()
}

/// A setting without a parameter of its own, as the template writes it.
#[derive(Serialize)]
pub struct OtherSetting {
    default: String,
    least: u64,
    largest: u64,
    is_text: bool,
}

pub fn other_settings() -> BTreeMap<&'static str, OtherSetting> {
    let written = |setting: Setting| {
        let Allowed { least, largest, is_text } = setting.other?;
        Some((setting.parameter, OtherSetting { default: setting.default, least, largest, is_text }))
    };
    settings().filter_map(written).collect()
}

/// The pattern of a JSON object of such settings. CloudFormation then refuses a name that is none; the values are checked
/// where they are read.
pub fn other_settings_pattern() -> String {
    let names: Vec<_> = other_settings().into_keys().collect();
    let entry = format!(r#""({})"\s*:\s*(0|[1-9][0-9]*|"[^"\\\x00-\x1f]*")\s*"#, names.join("|"));
    format!(r#"^(\s*\{{\s*({entry}(,\s*(?=")|(?=\}})))*\}}\s*)?$"#)
}

/// A function as the template writes it.
#[derive(Serialize)]
pub struct Described {
    pub name: &'static str,
    stem: String,
    folder: String,
    purpose: &'static str,
    needs_api: bool,
    is_of_api: bool,
    loops: &'static str,
    timeout: String,
    memory: String,
    skipped_checks: Vec<(&'static str, &'static str)>,
    variables: Vec<(String, String)>,
    statements: Vec<Statement>,
    pub writes_by_key: bool,
    schedule: Option<&'static str>,
}

/// A statement of a role.
#[derive(Serialize)]
pub struct Statement {
    pub sid: &'static str,
    pub why: &'static str,
    pub condition: &'static str,
    listed: &'static str,
    pub actions: &'static [&'static str],
    /// As YAML.
    pub resources: Vec<String>,
    /// As documents name them.
    pub names: Vec<String>,
    /// What needs it on AWS only, if it is no call of the function itself.
    pub of_trigger: &'static str,
    pub unseen: &'static [(&'static str, &'static str, &'static str)],
}

pub fn described() -> Vec<Described> {
    all().into_iter().map(describe).collect()
}

fn describe(function: &'static Function) -> Described {
    Described {
        name: function.name,
        stem: stem(function.name),
        folder: folder(function.name),
        purpose: function.purpose,
        needs_api: needs_api(function),
        is_of_api: is_of_api(function),
        loops: function.loops,
        timeout: yaml(function.timeout),
        memory: yaml(function.memory_megabytes),
        skipped_checks: skipped_checks(function),
        variables: variables(function),
        statements: statements(function),
        writes_by_key: writes_by_key(function),
        schedule: function.triggers.iter().find_map(|trigger| match trigger {
            Trigger::Schedule(rate) => Some(*rate),
            _ => None,
        }),
    }
}

/// `functions/<flow>/<package>`, or `functions/shared/<crate>`.
pub fn folder(package: &str) -> String {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let flows = ["shared", "api", "pipeline", "recovery", "integration", "live"]
        .map(|flow| format!("functions/{flow}/{package}"));
    flows.into_iter().find(|folder| workspace.join(folder).is_dir()).expect("the folder of the package")
}

pub fn yaml(figure: Figure) -> String {
    match figure {
        Figure::Is(number) => number.to_string(),
        Figure::Set(parameter) => format!("!Ref {parameter}"),
    }
}

/// The checks of checkov that it does not pass, each with the reason.
fn skipped_checks(function: &Function) -> Vec<(&'static str, &'static str)> {
    let (concurrency, dead_letters) = match function.triggers[0] {
        Trigger::Http | Trigger::WebSocket(_) => ("", "The caller gets the failure."),
        Trigger::Queue { .. } | Trigger::DeadLetters(_) => (
            "The event source mapping caps its workers. Reserved concurrency would turn throttled messages into dead \
             letters.",
            "Its queues have dead-letter queues.",
        ),
        Trigger::Stream(Stream { given_up: Some(_), .. }) => {
            ("One run at a time for each shard of the stream.", "Its event source mapping has a dead-letter queue.")
        }
        Trigger::Stream(_) => (
            "One run at a time for each shard of the stream.",
            "A change that was given up is older than every connection that could hear of it.",
        ),
        Trigger::Schedule(_) => {
            ("The schedule starts it once a minute.", "The next run of the schedule does the work of a failed one.")
        }
    };
    let network = match calls_others(function) {
        true => "Calls AWS services by IAM, and external servers by name. A VPC would protect nothing.",
        false => "Calls AWS services only, by IAM. A VPC would protect nothing.",
    };
    let checks = [("CKV_AWS_115", concurrency), ("CKV_AWS_116", dead_letters), ("CKV_AWS_117", network)];
    checks.into_iter().filter(|(_, why)| !why.is_empty()).collect()
}

/// True if it calls webhooks or fetches files.
fn calls_others(function: &Function) -> bool {
    let signs = function.uses.iter().any(|right| right.resources.contains(&WEBHOOK_SECRET));
    let fetches = |trigger: &Trigger| matches!(trigger, Trigger::Queue { queue, .. } if *queue == FETCHES_QUEUE);
    signs || function.triggers.iter().any(fetches)
}

/// The variables, each with its value as YAML: the resources, then the settings.
fn variables(function: &Function) -> Vec<(String, String)> {
    let mut names = BTreeSet::new();
    let resources = function.uses.iter().flat_map(|right| right.resources).copied();
    let resources = resources.map(|resource| (resource.variable.to_owned(), value(resource, needs_api(function))));
    let settings = groups(function).flat_map(|group| (group.settings)());
    let settings = settings.map(|setting: Setting| (setting.variable(), format!("!Ref {}", setting.set_by())));
    resources.chain(settings).filter(|(name, _)| names.insert(name.clone())).collect()
}

/// The value of the variable that names a resource.
fn value(resource: Resource, has_api: bool) -> String {
    const LIVE: &str = "!If [HasLiveEndpoint, !Sub \"${LiveEndpoint}/${LiveApi}/live\", \
                        !Sub \"wss://${LiveApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}/live\"]";
    match resource {
        LIVE_URL if has_api => LIVE.to_owned(),
        // Empty where there is no WebSocket API.
        LIVE_URL => format!("!If [HasHttpApi, {LIVE}, \"\"]"),
        WEBHOOK_SECRET => "!If [MakesWebhookSecret, !GetAtt WebhookSecret.Id, !Ref WebhookSecretArn]".to_owned(),
        other => name_of(other.id),
    }
}

/// True if it stores objects or sends messages under the operator's key.
fn writes_by_key(function: &Function) -> bool {
    let writes = |action: &&str| ["s3:PutObject", "sqs:SendMessage"].contains(action);
    let gives_up = function.streams().any(|stream| stream.given_up.is_some());
    gives_up || function.uses.iter().flat_map(|right| right.actions).any(writes)
}

/// The statements of its role, but for those that all roles have.
pub fn statements(function: &'static Function) -> Vec<Statement> {
    let rights = function.uses.iter().filter(|right| !right.actions.is_empty()).map(of_right);
    rights.chain(of_triggers(function)).collect()
}

/// Resources of a statement, each as YAML and as documents name it.
type On = Vec<(String, String)>;

fn part(id: &str, part: &str) -> (String, String) {
    (arn_of(id, part), format!("{id}{part}"))
}

impl Statement {
    fn of(sid: &'static str, actions: &'static [&'static str], on: On) -> Self {
        let (resources, names) = on.into_iter().unzip();
        Self { sid, why: "", condition: "", listed: "", actions, resources, names, of_trigger: "", unseen: &[] }
    }
}

fn of_right(right: &'static Use) -> Statement {
    let named = |of: &&str| match right.resources[0] {
        LIVE_URL => (
            format!("!Sub arn:${{AWS::Partition}}:execute-api:${{AWS::Region}}:${{AWS::AccountId}}:${{LiveApi}}{of}"),
            format!("LiveApi{of}"),
        ),
        resource => part(resource.id, of),
    };
    let value = right.value.map(|(yaml, name)| (yaml.to_owned(), name.to_owned()));
    let on = match right.parts {
        [] => right.resources.iter().map(|resource| part(resource.id, "")).chain(value).collect(),
        parts => parts.iter().map(named).collect(),
    };
    let Use { why, condition, listed, unseen, .. } = *right;
    Statement { why, condition, listed, unseen, ..Statement::of(right.sid, right.actions, on) }
}

/// What event source mappings do in the role of a function.
fn of_triggers(function: &Function) -> Vec<Statement> {
    let statement = |sid, actions, on, of_trigger| Statement { of_trigger, ..Statement::of(sid, actions, on) };
    let mut statements = Vec::new();
    let queues: On = (function.triggers.iter())
        .flat_map(|trigger| mappings_of(function, trigger))
        .map(|mapping| part(&mapping.queue, ""))
        .collect();
    if !queues.is_empty() {
        let polls = "the event source mapping polls the queue in the function's role";
        statements.push(statement("Receive", POLL, queues, polls));
    }
    for stream in function.streams() {
        let (table, reads) = (stream.table.id, "the event source mapping reads the stream in the function's role");
        let arn = vec![(stream_of(table), table.to_owned())];
        statements.push(statement("Receive", READ_STREAM, arn, reads));
        statements.push(statement("FindStream", &["dynamodb:ListStreams"], vec![part(table, "/stream/*")], "the same"));
        if let Some(queue) = stream.given_up {
            let gives_up = "the event source mapping gives up a batch of stream records";
            statements.push(statement("GiveUp", &["sqs:SendMessage"], vec![part(queue.id, "")], gives_up));
        }
    }
    statements
}

const POLL: &[&str] = &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

const READ_STREAM: &[&str] = &["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];

/// The mapping of a queue to its reader.
#[derive(Serialize)]
pub struct QueueMapping {
    id: String,
    pub queue: String,
    function: String,
    batch: String,
    pub workers: String,
    note: &'static str,
}

pub fn queue_mappings() -> Vec<QueueMapping> {
    all()
        .into_iter()
        .flat_map(|function| function.triggers.iter().flat_map(|trigger| mappings_of(function, trigger)))
        .collect()
}

fn mappings_of(function: &Function, trigger: &Trigger) -> Vec<QueueMapping> {
    let function = format!("{}Function", stem(function.name));
    match *trigger {
        Trigger::Queue { queue, batch, workers, note } => vec![QueueMapping {
            id: queue.id.replace("Queue", "EventSource"),
            queue: queue.id.to_owned(),
            function,
            batch: yaml(batch),
            workers: yaml(workers),
            note,
        }],
        Trigger::DeadLetters(of) => (of.iter().filter_map(|resource| resource.queue))
            .map(|queue| QueueMapping {
                id: format!("{}DeadLettersEventSource", queue.stem),
                queue: dead_letters_of(queue.stem),
                function: function.clone(),
                batch: "1".to_owned(),
                workers: "2".to_owned(),
                note: "",
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The mapping of a stream.
#[derive(Serialize)]
pub struct StreamMapping {
    name: &'static str,
    function: String,
    needs_api: bool,
    arn: String,
    note: &'static str,
    from: &'static str,
    batch: u32,
    window: u32,
    age_max: u32,
    partial: bool,
    given_up: Option<&'static str>,
    filters: &'static [&'static str],
}

pub fn streams() -> Vec<StreamMapping> {
    let of = |function: &'static Function| {
        function.streams().map(move |stream| StreamMapping {
            name: stream.name,
            function: format!("{}Function", stem(function.name)),
            needs_api: needs_api(function),
            arn: stream_of(stream.table.id),
            note: stream.note,
            from: stream.from,
            batch: stream.batch,
            window: stream.window,
            age_max: stream.age_max,
            partial: stream.partial,
            given_up: stream.given_up.map(|queue| queue.id),
            filters: stream.filters,
        })
    };
    all().into_iter().flat_map(of).collect()
}
