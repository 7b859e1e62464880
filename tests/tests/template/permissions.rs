//! The permissions of the functions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{event_sources, properties, target, template};

/// The event bus for the events of jobs.
const EVENT_BUS: &str = "arn:AWS::Partition}:events:AWS::Region}:AWS::AccountId}:event-bus/EventBusName}";

/// The permissions of a function besides its log and its traces, as (action, resource).
fn expected_permissions(package: &str) -> Vec<(&'static str, &'static str)> {
    match package {
        "upload" => vec![
            ("dynamodb:GetItem", "UploadsTable"),
            ("dynamodb:PutItem", "UploadsTable"),
            ("dynamodb:UpdateItem", "UploadsTable"),
            ("dynamodb:GetItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
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
            ("dynamodb:BatchGetItem", "AdmissionTable"),
            ("dynamodb:PutItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("dynamodb:GetItem", "UploadsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "JobsQueue"),
        ],
        "split-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:PutItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:Query", "RecordsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:PutObject", "Bucket/results/*"),
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
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:PutObject", "Bucket/results/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "ItemsQueue"),
            ("sqs:SendMessage", "IsolateQueue"),
            ("sqs:SendMessage", "CompletionsQueue"),
            // Only where functions are targets of job types, see `granted`.
            ("lambda:InvokeFunction", "InvokeTargetArns"),
            // Only where there are targets.
            ("secretsmanager:GetSecretValue", "WebhookSecretArn or WebhookSecret"),
        ],
        "complete-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:PutObject", "Bucket/results/*"),
            ("s3:ListMultipartUploadParts", "Bucket/results/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "CompletionsQueue"),
        ],
        "job-status" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:BatchGetItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable/index/owner-index"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:ListBucket", "Bucket"),
        ],
        "cancel-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:GetItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
        ],
        "redrive-job" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:GetItem", "AdmissionTable"),
            ("dynamodb:BatchGetItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("dynamodb:GetItem", "UploadsTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:PutObject", "Bucket/results/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "JobsQueue"),
        ],
        "dead-letter" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:PutItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("s3:GetObject", "Bucket/uploads/*"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:GetObject", "Bucket/results/*"),
            ("s3:PutObject", "Bucket/results/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "ItemsQueue"),
            ("sqs:SendMessage", "IsolateQueue"),
            ("sqs:SendMessage", "CompletionsQueue"),
        ],
        "sweep" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:UpdateItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:Query", "JobsTable/index/wake-index"),
            ("s3:GetObject", "Bucket/results/*"),
            ("sqs:SendMessage", "JobsQueue"),
            ("sqs:SendMessage", "ItemsQueue"),
            ("sqs:SendMessage", "IsolateQueue"),
            ("sqs:SendMessage", "CompletionsQueue"),
            ("sqs:GetQueueAttributes", "ItemsQueue"),
            ("sqs:GetQueueAttributes", "IsolateQueue"),
        ],
        "announce-job" => vec![
            ("events:PutEvents", EVENT_BUS),
            ("dynamodb:DescribeStream", "JobsTable"),
            ("dynamodb:GetRecords", "JobsTable"),
            ("dynamodb:GetShardIterator", "JobsTable"),
            ("dynamodb:ListStreams", "JobsTable/stream/*"),
            ("sqs:SendMessage", "AnnouncementsDeadLetterQueue"),
        ],
        "receive-file" => vec![
            ("dynamodb:GetItem", "JobsTable"),
            ("dynamodb:PutItem", "JobsTable"),
            ("dynamodb:Query", "JobsTable"),
            ("dynamodb:GetItem", "AdmissionTable"),
            ("dynamodb:BatchGetItem", "AdmissionTable"),
            ("dynamodb:PutItem", "AdmissionTable"),
            ("dynamodb:UpdateItem", "AdmissionTable"),
            ("dynamodb:GetItem", "UploadsTable"),
            ("dynamodb:PutItem", "UploadsTable"),
            ("s3:GetObject", "Bucket/inbox/*"),
            ("s3:PutObject", "Bucket/inbox-problems/*"),
            ("s3:ListBucket", "Bucket"),
            ("sqs:SendMessage", "JobsQueue"),
            ("sqs:ChangeMessageVisibility", "InboxQueue"),
        ],
        other => panic!("{other} has no permissions written down here"),
    }
}

/// A resource of a statement as text: `Bucket/uploads/*` for `!Sub ${Bucket.Arn}/uploads/*`.
fn resource_text(resource: &Value) -> String {
    match resource["Fn::Sub"].as_str() {
        Some(text) => text.replace("${", "").replace(".Arn}", ""),
        None if let Some([_, named, made]) = resource["Fn::If"].as_array().map(Vec::as_slice) => {
            format!("{} or {}", target(named), target(made))
        }
        None if resource == "*" => "*".to_owned(),
        None if resource["Fn::Split"].is_array() => target(&resource["Fn::Split"][1]).to_owned(),
        None => target(resource).to_owned(),
    }
}

fn list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// (action, resource) of every statement of a role, including the conditional statements.
pub(crate) fn granted(role: &Value) -> BTreeSet<(String, String)> {
    let mut granted = BTreeSet::new();
    assert_eq!(role["ManagedPolicyArns"], Value::Null, "managed policies grant on every resource");
    for policy in list(&role["Policies"]) {
        for statement in list(&policy["PolicyDocument"]["Statement"]) {
            let statement = statement.get("Fn::If").map_or(statement, |branches| &branches[1]);
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

/// The functions that store no object and send no message. Rows are written with the key of their table.
const READ_ONLY: [&str; 2] = ["cancel-job", "job-status"];

#[test]
fn the_key_is_used_only_if_it_is_set() {
    let template = template();
    for (name, role) in template.resources_of("AWS::IAM::Role") {
        let statements = role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"].as_array().unwrap();
        let of_key: Vec<&Value> =
            statements.iter().filter(|statement| statement.to_string().contains("kms:")).collect();
        let [statement] = &of_key[..] else { panic!("{name}: {of_key:?}") };
        let branches = &statement["Fn::If"];
        assert_eq!((&branches[0], &branches[2]), (&json!("HasKmsKey"), &json!({ "Ref": "AWS::NoValue" })), "{name}");
        assert_eq!(branches[1]["Resource"], json!({ "Ref": "KmsKeyArn" }), "{name}");
    }
}

#[test]
fn every_role_has_exactly_the_expected_permissions() {
    let template = template();
    let sources = event_sources(&template);
    for function in template.functions().unwrap() {
        let id = function.logical_id.as_str();
        let mut expected = expected_permissions(&function.package);
        for source in sources.iter().filter(|source| source.function == id) {
            let actions = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
            expected.extend(actions.map(|action| (action, source.queue)));
        }
        let resource = properties(&template, id);
        let log = target(&resource["LoggingConfig"]["LogGroup"]);
        expected.extend([("logs:CreateLogStream", log), ("logs:PutLogEvents", log)]);
        // The key of everything that is stored, if it is the operator's own. To write needs a new data key.
        expected.push(("kms:Decrypt", "KmsKeyArn"));
        if !READ_ONLY.contains(&function.package.as_str()) {
            expected.push(("kms:GenerateDataKey", "KmsKeyArn"));
        }
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
    let roles: Vec<&str> =
        template.resources_of("AWS::Serverless::Function").map(|(_, f)| target(&f["Properties"]["Role"])).collect();
    assert_eq!(roles.iter().collect::<BTreeSet<_>>().len(), roles.len());
}

/// The statement of `process-items` that depends on this condition.
fn statement_if(condition: &str) -> Value {
    let template = template();
    let role = properties(&template, "ProcessItemsRole");
    let statements = role["Policies"][0]["PolicyDocument"]["Statement"].as_array().unwrap();
    let mut branches = statements.iter().filter_map(|statement| statement.get("Fn::If"));
    let branches = branches.find(|branches| branches[0] == condition).expect("a statement with this condition");
    assert_eq!(branches[2]["Ref"], "AWS::NoValue");
    branches[1].clone()
}

#[test]
fn process_items_may_invoke_the_configured_functions_only() {
    let those = json!({ "Fn::Split": [",", { "Ref": "InvokeTargetArns" }] });
    assert_eq!(statement_if("HasInvokeTargets")["Resource"], those, "the configured functions only");
    assert_eq!(template().document()["Parameters"]["InvokeTargetArns"]["Default"], "");
}

#[test]
fn process_items_may_read_the_webhook_secret_only_and_only_with_targets() {
    let template = template();
    let made = json!({ "Fn::GetAtt": ["WebhookSecret", "Id"] });
    let that = json!({ "Fn::If": ["NamesWebhookSecret", { "Ref": "WebhookSecretArn" }, made] });
    assert_eq!(statement_if("HasJobTargets")["Resource"], that);
    let is_set = |parameter: &str| json!({ "Fn::Not": [{ "Fn::Equals": [{ "Ref": parameter }, ""] }] });
    let conditions = &template.document()["Conditions"];
    assert_eq!(conditions["HasJobTargets"], is_set("JobTargets"));
    assert_eq!(conditions["NamesWebhookSecret"], is_set("WebhookSecretArn"));
    let no_name = json!({ "Fn::Not": [{ "Condition": "NamesWebhookSecret" }] });
    let makes = json!({ "Fn::And": [{ "Condition": "HasJobTargets" }, no_name] });
    assert_eq!(conditions["MakesWebhookSecret"], makes, "a stack without targets pays for no secret");
    assert_eq!(template.document()["Resources"]["WebhookSecret"]["Condition"], "MakesWebhookSecret");
}
