//! What an emulator does not check and AWS would not refuse: that `template.yaml` says what the code needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rowmill::template::Template;
use serde_json::{Value, json};

const QUEUE: &str = "AWS::SQS::Queue";
const TABLE: &str = "AWS::DynamoDB::Table";
const FUNCTION: &str = "AWS::Serverless::Function";
const EVENT_SOURCE: &str = "AWS::Lambda::EventSourceMapping";

/// Two weeks, the longest SQS keeps a message.
const LONGEST_RETENTION_SECONDS: u64 = 1_209_600;

const DAY_SECONDS: u64 = 86_400;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the workspace").to_owned()
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

fn default_of(template: &Template, parameter: &str) -> u64 {
    template.document()["Parameters"][parameter]["Default"]
        .as_u64()
        .unwrap_or_else(|| panic!("{parameter} is no number"))
}

/// All values a parameter may have.
fn allowed(template: &Template, parameter: &str) -> Vec<u64> {
    let values = template.document()["Parameters"][parameter]["AllowedValues"].as_array();
    values
        .unwrap_or_else(|| panic!("{parameter} allows anything"))
        .iter()
        .map(|value| value.as_u64().unwrap())
        .collect()
}

fn maximum_of(template: &Template, parameter: &str) -> u64 {
    template.document()["Parameters"][parameter]["MaxValue"].as_u64().unwrap()
}

/// What a `!FindInMap [map, !Ref parameter, key]` gives for a value of the parameter.
fn mapped(template: &Template, find_in_map: &Value, value: u64) -> u64 {
    let [map, _, key] = ["0", "1", "2"].map(|index| &find_in_map["Fn::FindInMap"][index.parse::<usize>().unwrap()]);
    let found = &template.document()["Mappings"][map.as_str().unwrap()][value.to_string()][key.as_str().unwrap()];
    found.as_u64().unwrap_or_else(|| panic!("{map} has no {value}"))
}

/// (queue, function) of every event source mapping.
fn event_sources(template: &Template) -> Vec<(&str, &str, &Value)> {
    let sources = template.resources_of(EVENT_SOURCE);
    sources
        .map(|(_, source)| &source["Properties"])
        .map(|source| (target(&source["EventSourceArn"]), target(&source["FunctionName"]), source))
        .collect()
}

// -- Queues -------------------------------------------------------------------------------------------

#[test]
fn every_queue_has_a_dead_letter_queue_of_its_own_and_keeps_messages_as_long_as_sqs_can() {
    let template = template();
    let mut dead_letter_queues = BTreeSet::new();
    let mut working = BTreeSet::new();
    for (name, queue) in template.resources_of(QUEUE) {
        let queue = &queue["Properties"];
        assert_eq!(queue["MessageRetentionPeriod"], json!(LONGEST_RETENTION_SECONDS), "{name}");
        assert_eq!(queue["SqsManagedSseEnabled"], json!(true), "{name}");
        if name.ends_with("DeadLetterQueue") {
            continue;
        }
        let dead_letters = target(&queue["RedrivePolicy"]["deadLetterTargetArn"]).to_owned();
        assert_eq!(dead_letters, name.replace("Queue", "DeadLetterQueue"));
        assert!(dead_letter_queues.insert(dead_letters), "{name} shares its dead-letter queue");
        working.insert(name);
    }
    assert_eq!(working, BTreeSet::from(["CompletionsQueue", "ItemsQueue", "JobsQueue"]));
    let read: BTreeSet<&str> = event_sources(&template).iter().map(|(queue, ..)| *queue).collect();
    assert_eq!(read, working);
}

#[test]
fn a_message_stays_invisible_for_six_time_limits_of_its_function_whatever_the_limit() {
    let template = template();
    for (queue, function, _) in event_sources(&template) {
        let timeout = target(&properties(&template, function)["Timeout"]);
        let visibility = &properties(&template, queue)["VisibilityTimeout"];
        assert_eq!(target(&visibility["Fn::FindInMap"][1]), timeout, "{queue} goes by another limit than {function}");
        for seconds in allowed(&template, timeout) {
            assert_eq!(mapped(&template, visibility, seconds), 6 * seconds, "{queue}");
        }
    }
}

#[test]
fn all_deliveries_of_a_message_fit_twice_into_the_default_deadline() {
    let template = template();
    for (queue, function, _) in event_sources(&template) {
        let timeout = default_of(&template, target(&properties(&template, function)["Timeout"]));
        let queue_properties = properties(&template, queue);
        let visibility = mapped(&template, &queue_properties["VisibilityTimeout"], timeout);
        let deliveries = default_of(&template, target(&queue_properties["RedrivePolicy"]["maxReceiveCount"]));
        let deadline = default_of(&template, "DefaultDeadlineSeconds");
        assert!(deliveries * visibility * 2 < deadline, "{queue}: 2 × {deliveries} × {visibility} s");
    }
}

#[test]
fn batches_are_answered_message_by_message_and_workers_are_capped_where_the_queue_is_read() {
    let template = template();
    for (queue, function, source) in event_sources(&template) {
        assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{queue}");
        let expected = if queue == "ItemsQueue" { 10 } else { 1 };
        assert_eq!(source["BatchSize"], json!(expected), "{queue}");
        let cap = target(&source["ScalingConfig"]["MaximumConcurrency"]);
        assert_eq!(cap, queue.replace("Queue", "MaximumConcurrency"));
        assert_eq!(template.document()["Parameters"][cap]["MinValue"], json!(2), "Lambda takes no less for {cap}");
        assert_eq!(properties(&template, function)["ReservedConcurrentExecutions"], Value::Null, "{function}");
    }
}

// -- Time ---------------------------------------------------------------------------------------------

#[test]
fn limits_of_time_are_within_what_the_protocol_counts_on() {
    let template = template();
    // Ten seconds are for tests, and say so.
    let is_fit = |seconds: &u64| (60..=120).contains(seconds) || *seconds == 10;
    assert!(allowed(&template, "ProcessTimeoutSeconds").iter().all(is_fit));
    assert!(default_of(&template, "ProcessTimeoutSeconds") >= 60);
    assert_eq!(maximum_of(&template, "MaximumDeadlineSeconds"), 3 * DAY_SECONDS);
    assert!(default_of(&template, "DefaultDeadlineSeconds") <= default_of(&template, "MaximumDeadlineSeconds"));
    // A recovery must not take a function that is merely at work for a dead one.
    for timeout in ["SplitTimeoutSeconds", "ProcessTimeoutSeconds", "CompleteTimeoutSeconds"] {
        assert!(default_of(&template, "StaleSeconds") > default_of(&template, timeout), "{timeout}");
    }
    let shortest = allowed(&template, "SplitTimeoutSeconds").into_iter().min().unwrap();
    assert!(maximum_of(&template, "SplitMarginSeconds") < shortest);
}

#[test]
fn objects_outlive_what_is_promised_of_them_by_the_longest_deadline_and_a_day() {
    let template = template();
    let rules = properties(&template, "Bucket")["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    let rule = |id: &str| rules.iter().find(|rule| rule["Id"] == id).unwrap_or_else(|| panic!("no rule {id}"));
    for (id, promise) in [("uploads", "UploadRetentionDays"), ("results", "JobRetentionDays")] {
        let expiry = &rule(id)["ExpirationInDays"];
        assert_eq!(rule(id)["Prefix"], json!(format!("{id}/")));
        assert_eq!(target(&expiry["Fn::FindInMap"][1]), promise);
        for days in allowed(&template, promise) {
            let needed = days + maximum_of(&template, "MaximumDeadlineSeconds") / DAY_SECONDS + 1;
            assert!(mapped(&template, expiry, days) >= needed, "{id} promised for {days} days");
        }
    }
    let abort = &rule("unfinished-multipart-uploads")["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"];
    assert!(maximum_of(&template, "PresignExpirySeconds") < abort.as_u64().unwrap() * DAY_SECONDS);
}

// -- Tables and bucket --------------------------------------------------------------------------------

#[test]
fn tables_are_on_demand_expire_rows_and_can_be_restored_and_followed() {
    let template = template();
    let tables: Vec<_> = template.resources_of(TABLE).collect();
    assert_eq!(tables.len(), 4);
    for (name, table) in tables {
        let table = &table["Properties"];
        assert_eq!(table["BillingMode"], "PAY_PER_REQUEST", "{name}");
        assert_eq!(
            table["TimeToLiveSpecification"],
            json!({ "AttributeName": "expiresAt", "Enabled": true }),
            "{name}"
        );
        assert_eq!(table["PointInTimeRecoverySpecification"], json!({ "PointInTimeRecoveryEnabled": true }), "{name}");
        assert_eq!(table["StreamSpecification"], json!({ "StreamViewType": "NEW_AND_OLD_IMAGES" }), "{name}");
    }
}

#[test]
fn the_bucket_is_private_encrypted_and_refuses_plain_http() {
    let template = template();
    let bucket = properties(&template, "Bucket");
    let public = bucket["PublicAccessBlockConfiguration"].as_object().unwrap();
    assert!(public.len() == 4 && public.values().all(|block| block == true), "{public:?}");
    let encryption = &bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0];
    assert_eq!(encryption["ServerSideEncryptionByDefault"]["SSEAlgorithm"], "AES256");
    assert_eq!(bucket["VersioningConfiguration"], Value::Null, "lifecycle rules must free the space");

    let policy = properties(&template, "BucketPolicy");
    assert_eq!(target(&policy["Bucket"]), "Bucket");
    let statement = &policy["PolicyDocument"]["Statement"][0];
    assert_eq!((&statement["Effect"], &statement["Principal"]), (&json!("Deny"), &json!("*")));
    assert_eq!(statement["Condition"], json!({ "Bool": { "aws:SecureTransport": "false" } }));
    let whole_bucket = json!([{ "Fn::GetAtt": ["Bucket", "Arn"] }, { "Fn::Sub": "${Bucket.Arn}/*" }]);
    assert_eq!(statement["Resource"], whole_bucket);
}

// -- Functions ----------------------------------------------------------------------------------------

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
    let expected = ["complete-job", "create-job", "job-status", "process-items", "split-job", "upload"];
    assert_eq!(packages, BTreeSet::from(expected));
    for function in &functions {
        let resource = &template.document()["Resources"][&function.logical_id];
        let (package, properties_of) = (&function.package, &resource["Properties"]);
        assert_eq!(resource["Metadata"]["BuildMethod"], "rust-cargolambda", "{package}");
        assert_eq!(properties_of["CodeUri"], json!(format!("functions/{package}/")));
        assert_eq!(properties_of["FunctionName"], json!({ "Fn::Sub": format!("${{AWS::StackName}}-{package}") }));
        let log = properties(&template, target(&properties_of["LoggingConfig"]["LogGroup"]));
        assert_eq!(log["RetentionInDays"], json!({ "Ref": "LogRetentionDays" }), "{package}");
        assert_eq!(log["LogGroupName"], json!({ "Fn::Sub": format!("/aws/lambda/${{AWS::StackName}}-{package}") }));
    }
}

/// What each adapter a function takes from its runtime reads from the environment.
const ADAPTERS: [(&str, &str); 7] = [
    ("job_store", "ROWMILL_JOBS_TABLE"),
    ("upload_store", "ROWMILL_UPLOADS_TABLE"),
    ("record_store", "ROWMILL_RECORDS_TABLE"),
    ("objects", "ROWMILL_BUCKET"),
    ("split_queue", "ROWMILL_JOBS_QUEUE_URL"),
    ("items_queue", "ROWMILL_ITEMS_QUEUE_URL"),
    ("completions_queue", "ROWMILL_COMPLETIONS_QUEUE_URL"),
];

/// Read by the job store too, and needed only by the functions that admit jobs and let them go.
const ADMISSION: (&str, [&str; 2]) = ("ROWMILL_ADMISSION_TABLE", ["create-job", "complete-job"]);

fn source(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
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
        let main = source(&format!("functions/{}/src/main.rs", function.package));
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

// -- Permissions --------------------------------------------------------------------------------------

/// What a function may do besides its log and its traces, as (action, resource).
fn expected_permissions(package: &str) -> Vec<(&'static str, &'static str)> {
    match package {
        "upload" => vec![
            ("dynamodb:GetItem", "UploadsTable"),
            ("dynamodb:PutItem", "UploadsTable"),
            ("dynamodb:UpdateItem", "UploadsTable"),
            ("s3:PutObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:ListBucket", "Bucket"),
            ("s3:AbortMultipartUpload", "Bucket/uploads/*"),
            ("s3:ListMultipartUploadParts", "Bucket/uploads/*"),
        ],
        "create-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:PutItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:GetItem", "AdmissionTable"),
            ("dynamodb:PutItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("dynamodb:GetItem", "UploadsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "JobsQueue"),
        ],
        "split-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:PutItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "ItemsQueue"),
            ("sqs:SendMessage", "JobsQueue"),
            ("sqs:SendMessage", "CompletionsQueue"),
        ],
        "process-items" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:PartiQLInsert", "RecordsTable"),
            ("dynamodb:PartiQLUpdate", "RecordsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:ListBucket", "Bucket"),
            ("s3:PutObject", "Bucket/results/*"),
            ("sqs:SendMessage", "CompletionsQueue"),
        ],
        "complete-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
        ],
        "job-status" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:BatchGetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable/index/owner-index"),
            ("s3:GetObject", "Bucket/results/*"),
        ],
        other => panic!("{other} has no permissions written down here"),
    }
}

/// A resource of a statement as text: `Bucket/uploads/*` for `!Sub ${Bucket.Arn}/uploads/*`.
fn resource_text(resource: &Value) -> String {
    match resource["Fn::Sub"].as_str() {
        Some(text) => text.replace("${", "").replace(".Arn}", ""),
        None if resource == "*" => "*".to_owned(),
        None => target(resource).to_owned(),
    }
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// (action, resource) of every statement of a role.
fn granted(role: &Value) -> BTreeSet<(String, String)> {
    let mut granted = BTreeSet::new();
    assert_eq!(role["ManagedPolicyArns"], Value::Null, "managed policies grant on every resource");
    for policy in list(&role["Policies"]) {
        for statement in list(&policy["PolicyDocument"]["Statement"]) {
            assert_eq!(statement["Effect"], "Allow");
            for action in list(&statement["Action"]) {
                for resource in list(&statement["Resource"]) {
                    granted.insert((action.as_str().unwrap().to_owned(), resource_text(resource)));
                }
            }
        }
    }
    granted
}

#[test]
fn every_function_may_do_what_it_does_and_no_more() {
    let template = template();
    let consumes: BTreeMap<&str, &str> = event_sources(&template).iter().map(|(q, f, _)| (*f, *q)).collect();
    for function in template.functions().unwrap() {
        let id = function.logical_id.as_str();
        let mut expected = expected_permissions(&function.package);
        for action in ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"] {
            expected.extend(consumes.get(id).map(|queue| (action, *queue)));
        }
        let resource = properties(&template, id);
        let log = target(&resource["LoggingConfig"]["LogGroup"]);
        expected.extend([("logs:CreateLogStream", log), ("logs:PutLogEvents", log)]);
        // X-Ray has no resources that could be named.
        expected.extend([("xray:PutTraceSegments", "*"), ("xray:PutTelemetryRecords", "*")]);
        let expected = expected.into_iter().map(|(action, on)| (action.to_owned(), on.to_owned())).collect();

        let granted = granted(properties(&template, target(&resource["Role"])));
        assert!(granted.iter().all(|(action, _)| !action.contains('*')), "{granted:?}");
        assert_eq!(granted, expected, "{}", function.package);
    }
}

#[test]
fn no_two_functions_share_a_role() {
    let template = template();
    let roles: Vec<&str> = template.resources_of(FUNCTION).map(|(_, f)| target(&f["Properties"]["Role"])).collect();
    assert_eq!(roles.iter().collect::<BTreeSet<_>>().len(), roles.len());
}

// -- HTTP API -----------------------------------------------------------------------------------------

#[test]
fn routes_lead_to_their_functions_and_take_the_authorizer_where_there_is_one() {
    let template = template();
    let mut routes = BTreeMap::new();
    for (name, route) in template.resources_of("AWS::ApiGatewayV2::Route") {
        let route = &route["Properties"];
        assert_eq!(route["AuthorizationType"], json!({ "Fn::If": ["HasAuthorizer", "JWT", "NONE"] }), "{name}");
        assert_eq!(target(&route["AuthorizerId"]["Fn::If"][1]), "HttpApiAuthorizer", "{name}");
        let integration = route["Target"]["Fn::Sub"].as_str().unwrap();
        let integration = integration.trim_start_matches("integrations/${").trim_end_matches('}');
        let integration = properties(&template, integration);
        assert_eq!(integration["PayloadFormatVersion"], "2.0");
        routes.insert(route["RouteKey"].as_str().unwrap(), target(&integration["IntegrationUri"]));
    }
    let expected = BTreeMap::from([
        ("POST /api/uploads", "UploadFunction"),
        ("POST /api/uploads/{fileGuid}/complete", "UploadFunction"),
        ("GET /api/uploads/{fileGuid}", "UploadFunction"),
        ("POST /api/jobs", "CreateJobFunction"),
        ("GET /api/jobs", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}", "JobStatusFunction"),
        ("GET /api/jobs/{jobGuid}/items", "JobStatusFunction"),
    ]);
    assert_eq!(routes, expected);
    let invoked = template.resources_of("AWS::Lambda::Permission");
    let invoked: BTreeSet<&str> = invoked.map(|(_, p)| target(&p["Properties"]["FunctionName"])).collect();
    assert_eq!(invoked, routes.into_values().collect());
}
