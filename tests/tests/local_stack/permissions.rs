//! A stack under a key of the operator's, on which every message is lost, given up or late, every file vanishes, and a
//! function loses a permission. Here the roles need what no other test of the local stack needs; see
//! `docs/permissions.md`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use acceptance::local_stack::{LocalStack, accepted, answer, options, refused, until};
use aws_sdk_cloudformation::types::{Capability, StackStatus};
use aws_sdk_dynamodb::types::AttributeValue;
use reqwest::StatusCode;
use rowmill::aws::{Target, sdk_config};
use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::ports::Checkpoints;
use serde_json::{Value, json};

use crate::priorities;

/// A key. The emulator encrypts nothing with it.
const KEY: &str = "arn:aws:kms:us-east-1:000000000000:key/5f9ae8a1-5f0e-4f0c-9c0e-1f0d8f1a7a11";

const CHUNK_ITEMS: u32 = 10;

/// Active jobs of a type.
const TYPE_CEILING: usize = 2;

/// An inbox file that comes when all slots of its type are taken.
const LATE: &str = "late";

#[tokio::test]
async fn jobs_under_an_operators_key_survive_lost_messages_and_files_and_missing_permissions() {
    let parameters = [
        ("KmsKeyArn", KEY),
        ("ChunkMaxItems", &CHUNK_ITEMS.to_string()),
        ("FastChunkFactor", "1"),
        ("ProcessTimeoutSeconds", "3"),
        ("ItemTimeoutSeconds", "1"),
        ("ProcessMarginSeconds", "1"),
        ("CompleteTimeoutSeconds", "10"),
        ("StaleSeconds", "5"),
        ("StopGraceSeconds", "5"),
        ("SweepBackoffMaxSeconds", "10"),
        ("TypeJobCeiling", &TYPE_CEILING.to_string()),
        ("JobTypes", r#"{"import": {"concurrency": 1}}"#),
    ];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("permissions");
    let stack = LocalStack::up(&options(folder, &parameters)).await;
    stack
        .hide_messages_for(
            &["ItemsDeadLetterQueueUrl", "LanesDeadLetterQueueUrl", "CompletionsDeadLetterQueueUrl"],
            Duration::from_secs(6),
        )
        .await;

    let job = a_job_ends_and_its_results_vanish(&stack).await;
    redrives_and_inbox_files_wait_for_slots(&stack, &job).await;
    an_inbox_file_serves_again(&stack, &job).await;
    a_job_that_nobody_takes_up_lacks_capacity(&stack).await;
    a_denied_call_is_500_and_counted(&stack).await;
    a_file_vanishes_before_its_split(&stack).await;
    the_chunks_of_an_upload_are_given_up(&stack).await;
    a_chunk_of_an_inbox_file_is_given_up_and_the_others_skipped(&stack).await;
    a_chunk_on_a_lane_is_isolated_and_comes_back_to_it(&stack).await;
    a_completion_is_given_up(&stack).await;
    stack.deliver_to("ProcessItemsFunctionName", true).await;
    stack.deliver_to("CompleteJobFunctionName", true).await;
    priorities::a_job_of_each_priority_waits_behind_no_other_priority(&stack).await;
    priorities::jobs_of_each_priority_survive_lost_messages(&stack).await;
    priorities::an_urgent_job_survives_lost_messages_of_its_split(&stack).await;
    // Its message was put off.
    let late = stack.jobs_marked(LATE, 1).await.remove(0);
    assert_eq!(stack.ended_with_sweeps(guid(&late, "jobGuid")).await["itemsSucceeded"], 1);
}

/// A file of so many rows that `validate` accepts, after a first one that it does not.
fn rows(count: u32) -> String {
    (1..=count).fold("id,amount\n0\n".to_owned(), |mut text, row| {
        let _ = writeln!(text, "{row},{row}");
        text
    })
}

async fn validate(stack: &LocalStack, file: &str) -> String {
    stack.create_from(&json!({ "jobType": "validate", "fileGuid": file, "maxConcurrency": 1 })).await
}

/// A job with a failed item. Its results are deleted, as the bucket does when they expire.
async fn a_job_ends_and_its_results_vanish(stack: &LocalStack) -> String {
    let file = stack.upload("text/csv", rows(25)).await;
    let job = validate(stack, &file).await;
    let ended = stack.ended(&job).await;
    assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(25), &json!(1)), "{ended}");
    assert_eq!(stack.failed_items(&job).await[0]["code"], "ragged_row");

    let expired = validate(stack, &file).await;
    stack.ended(&expired).await;
    stack.delete_objects_of(&expired).await;
    refused(stack.get(&format!("/api/jobs/{expired}/results")), StatusCode::NOT_FOUND, "no_results").await;
    job
}

async fn redrives_and_inbox_files_wait_for_slots(stack: &LocalStack, job: &str) {
    let redrive = |body: &Value| stack.post(&format!("/api/jobs/{job}/redrive")).json(body);
    let announcement = json!({ "fileName": "corrected.csv", "contentType": "text/csv", "size": 100 });
    let (status, announced) = answer(stack.post("/api/uploads").json(&announcement)).await;
    assert_eq!(status, StatusCode::CREATED, "{announced}");
    let request = redrive(&json!({ "fileGuid": announced["fileGuid"] }));
    refused(request, StatusCode::UNPROCESSABLE_ENTITY, "unknown_upload").await;

    stack.deliver_to("SplitJobFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let resting = validate(stack, &file).await;
    stack.act(&resting, "pause").await;
    until("the paused job keeps its slots", async || {
        stack.sweep().await;
        stack.job_row(&resting).await.has("slots")
    })
    .await;
    let mut active = Vec::new();
    for _ in 0..TYPE_CEILING {
        active.push(validate(stack, &file).await);
    }
    refused(redrive(&json!({})), StatusCode::SERVICE_UNAVAILABLE, "job_type_full").await;
    let waiting = stack.act(&resting, "resume").await;
    assert_eq!((&waiting["status"], &waiting["stage"]), (&json!("paused"), &json!("waiting_for_slot")), "{waiting}");
    stack.sweep().await;
    assert_eq!(stack.job(&resting).await["stage"], "waiting_for_slot", "the type is full");
    let (no_slot, untaken) = (why(stack, &resting).await, why(stack, &active[0]).await);
    assert_eq!((&no_slot["code"], &no_slot["numbers"]["jobsOfType"]), (&json!("no_slot"), &json!(TYPE_CEILING)));
    assert_eq!((&untaken["code"], &untaken["jobs"]), (&json!("not_taken_up"), &json!([active[1]])), "{untaken}");
    drop_marked(stack, LATE, "id\n1\n", &json!({})).await;
    let refused = ["file not received yet", LATE];
    until("the file is not refused", async || stack.has_logged("receive-file", &refused)).await;
    stack.deliver_to("SplitJobFunctionName", true).await;
    for job in active {
        stack.ended(&job).await;
    }
    assert_eq!(stack.ended_with_sweeps(&resting).await["itemsSucceeded"], 1);
}

/// The first reason that holds a job up.
async fn why(stack: &LocalStack, job: &str) -> Value {
    let (status, why) = answer(stack.get(&format!("/api/jobs/{job}/why"))).await;
    assert_eq!(status, StatusCode::OK, "{why}");
    why["reasons"][0].clone()
}

async fn drop_marked(stack: &LocalStack, mark: &str, text: &str, request: &Value) {
    let mut request = request.clone();
    request["metadata"] = json!({ "mark": mark });
    let request = request.to_string();
    stack.drop_file(&format!("inbox/validate/{mark}.csv"), text, &[("rowmill-request", &request)]).await;
}

/// Drops a file, and returns its job when that is there.
async fn dropped(stack: &LocalStack, mark: &str, text: &str) -> Value {
    drop_marked(stack, mark, text, &json!({})).await;
    stack.jobs_marked(mark, 1).await.remove(0)
}

/// Drops a file with these fields of a request, and returns the name of its job when that is there.
pub async fn drop_requested(stack: &LocalStack, mark: &str, request: &Value, text: &str) -> String {
    drop_marked(stack, mark, text, request).await;
    guid(&stack.jobs_marked(mark, 1).await.remove(0), "jobGuid").to_owned()
}

fn guid<'a>(job: &'a Value, name: &str) -> &'a str {
    job[name].as_str().expect("a guid")
}

/// The file of an inbox job becomes another job by request, and the corrected file of a redrive.
async fn an_inbox_file_serves_again(stack: &LocalStack, job: &str) {
    let inbox_job = dropped(stack, "corrected", "id,amount,row\n0,0,1\n").await;
    stack.ended(guid(&inbox_job, "jobGuid")).await;
    let again = validate(stack, guid(&inbox_job, "fileGuid")).await;
    assert_eq!(stack.ended(&again).await["itemsSucceeded"], 1);

    let request = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": inbox_job["fileGuid"] }));
    accepted(request).await;
    assert_eq!(stack.ended(job).await["itemsSucceeded"], 26);
}

/// No message reaches the splitter until the deadline has passed.
async fn a_job_that_nobody_takes_up_lacks_capacity(stack: &LocalStack) {
    stack.deliver_to("SplitJobFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let job = stack.create_from(&json!({ "jobType": "validate", "fileGuid": file, "deadlineSeconds": 1 })).await;
    let ended = stack.ended_with_sweeps(&job).await;
    assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!("capacity_exceeded")), "{ended}");
    assert_eq!((&ended["startedAt"], &ended["firstChunkAt"]), (&Value::Null, &Value::Null), "{ended}");
    assert_eq!(ended["unprocessed"]["fromRow"], 1, "{ended}");
    stack.deliver_to("SplitJobFunctionName", true).await;
}

/// Takes a permission away from `cancel-job`, and gives it back.
async fn a_denied_call_is_500_and_counted(stack: &LocalStack) {
    stack.deliver_to("SplitJobFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let job = validate(stack, &file).await;
    let cancel = || stack.post(&format!("/api/jobs/{job}/cancel"));

    let denial = Denial::of(stack, "CancelJobFunctionName", "dynamodb:UpdateItem", "JobsTable").await;
    refused(cancel(), StatusCode::INTERNAL_SERVER_ERROR, "internal_error").await;
    // The answer can be there before the lines of the log.
    let logged = ["missing permission", "completing the job", "dynamodb:UpdateItem"];
    until("the log does not say which call, and why", async || stack.has_logged("cancel-job", &logged)).await;
    let counted = async || stack.log_lines("cancel-job").iter().any(|line| line["MissingPermissions"] == 1);
    until("the alarm's metric is not in the log", counted).await;
    assert_eq!(stack.job(&job).await["status"], "waiting");
    denial.lift().await;

    // A change of a policy is effective a moment later.
    until("the permission is not back", async || answer(cancel()).await.0 == StatusCode::ACCEPTED).await;
    stack.deliver_to("SplitJobFunctionName", true).await;
    assert_eq!(stack.ended_with_sweeps(&job).await["status"], "cancelled");
}

/// The message of the split is lost too.
async fn a_file_vanishes_before_its_split(stack: &LocalStack) {
    stack.deliver_to("SplitJobFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let job = validate(stack, &file).await;
    stack.take_of("JobsQueueUrl", &job).await;
    let message = stack.take_with_sweeps("JobsQueueUrl").await;
    stack.delete_objects_of(&file).await;
    stack.send("JobsQueueUrl", &message).await;
    stack.deliver_to("SplitJobFunctionName", true).await;
    let ended = stack.ended_with_sweeps(&job).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    assert!(ended["message"].as_str().expect("a message").contains("gone"), "{ended}");
}

/// A run of an isolated chunk has begun, and died. Before one has, the chunk is not given up.
async fn begin_run(stack: &LocalStack, message: &Value) {
    let message: ChunkMessage = serde_json::from_value(message.clone()).expect("the message of a chunk");
    let store = DynamoDbJobStore::new(stack.dynamodb.clone(), stack.output("JobsTable").to_owned(), None);
    let seen = store.checkpoint(message.job_guid, message.address).await.expect("it can be read");
    let run = RunId::from_bytes([1; RunId::BYTES]);
    let moved = seen.expect("it is isolated").moved(run, jiff::Timestamp::now());
    let begun = Checkpoint { begun: Some(message.epoch), ..moved };
    store.move_checkpoint(message.job_guid, &begun).await.expect("the table takes it");
}

/// Has a chunk's message given up by both queues: first its items run one at a time, then they fail.
pub async fn give_up(stack: &LocalStack, message: &Value) {
    stack.send("ItemsDeadLetterQueueUrl", message).await;
    let index = message["index"].as_u64().expect("a number");
    let isolated = stack.take_chunk("IsolateQueueUrl", guid(message, "jobGuid"), index).await;
    begin_run(stack, &isolated).await;
    stack.send("ItemsDeadLetterQueueUrl", &isolated).await;
}

/// The messages are lost, and each is given up. Between the two the file vanishes.
async fn the_chunks_of_an_upload_are_given_up(stack: &LocalStack) {
    stack.deliver_to("ProcessItemsFunctionName", false).await;
    let file = stack.upload("text/csv", rows(35)).await;
    let job = validate(stack, &file).await;
    stack.take("ItemsQueueUrl").await;
    let first = stack.take_with_sweeps("ItemsQueueUrl").await;
    stack.send("ItemsDeadLetterQueueUrl", &first).await;
    stack.take("IsolateQueueUrl").await;
    let isolated = stack.take_with_sweeps("IsolateQueueUrl").await;
    begin_run(stack, &isolated).await;
    stack.send("ItemsDeadLetterQueueUrl", &isolated).await;

    let second = stack.take_chunk("ItemsQueueUrl", &job, 1).await;
    stack.delete_objects_of(&file).await;
    give_up(stack, &second).await;
    let third = stack.take_chunk("ItemsQueueUrl", &job, 2).await;
    let failed = stack.failed_items(&job).await;
    let texts: Vec<bool> = failed.iter().map(|item| item["raw"].is_string()).collect();
    assert_eq!(texts, [[true; 10], [false; 10]].concat(), "the first chunk could still be read: {failed:?}");

    stack.send("ItemsQueueUrl", &third).await;
    stack.deliver_to("ProcessItemsFunctionName", true).await;
    let ended = stack.ended_with_sweeps(&job).await;
    assert_eq!((&ended["status"], &ended["itemsFailed"]), (&json!("failed"), &json!(20)), "{ended}");
}

async fn a_chunk_of_an_inbox_file_is_given_up_and_the_others_skipped(stack: &LocalStack) {
    stack.deliver_to("ProcessItemsFunctionName", false).await;
    let job = dropped(stack, "given-up", &rows(25)).await;
    let job = guid(&job, "jobGuid");
    let message = stack.take_chunk("ItemsQueueUrl", job, 0).await;
    give_up(stack, &message).await;
    stack.job_when(job, |shown| shown["itemsFailed"] == CHUNK_ITEMS).await;
    stack.act(job, "cancel").await;
    stack.deliver_to("ProcessItemsFunctionName", true).await;
    let ended = stack.ended_with_sweeps(job).await;
    assert_eq!((&ended["status"], &ended["itemsSkipped"]), (&json!("cancelled"), &json!(16)), "{ended}");
    let (_, results) = answer(stack.get(&format!("/api/jobs/{job}/results"))).await;
    let files = results["files"].as_array().expect("files");
    assert!(files.iter().any(|file| file["kind"] == "unprocessedRows"), "the skipped rows were copied: {results}");
}

/// The message of a chunk on a lane is lost, then given up, and then sent beside the lanes, as before its type had any.
async fn a_chunk_on_a_lane_is_isolated_and_comes_back_to_it(stack: &LocalStack) {
    stack.deliver_to("ProcessItemsFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let params = json!({ "dataset": "on-a-lane", "key": "id" });
    let job = stack.create("import", &file, params).await;
    stack.take_chunk("LanesQueueUrl", &job, 0).await;
    let message = stack.take_with_sweeps("LanesQueueUrl").await;
    assert_eq!((&message["jobGuid"], &message["lane"]), (&json!(job), &json!(0)), "{message}");
    stack.send_to_group("LanesDeadLetterQueueUrl", "import#0", &message).await;
    let mut isolated = stack.take_chunk("LanesQueueUrl", &job, 0).await;
    while isolated["deliveryMode"] != "isolated" {
        // The sweep, which also runs by its schedule, has sent the chunk once more.
        isolated = stack.take_chunk("LanesQueueUrl", &job, 0).await;
    }
    isolated["lane"] = Value::Null;
    stack.send("ItemsQueueUrl", &isolated).await;
    stack.deliver_to("ProcessItemsFunctionName", true).await;
    let ended = stack.ended_with_sweeps(&job).await;
    assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(1)), "{ended}");
}

/// After the only chunk the message of the completion is lost, and then given up long after that.
async fn a_completion_is_given_up(stack: &LocalStack) {
    stack.deliver_to("ProcessItemsFunctionName", false).await;
    stack.deliver_to("CompleteJobFunctionName", false).await;
    let file = stack.upload("text/csv", rows(1)).await;
    let job = validate(stack, &file).await;
    let chunk = stack.take_chunk("ItemsQueueUrl", &job, 0).await;
    give_up(stack, &chunk).await;
    stack.take("CompletionsQueueUrl").await;
    let message = stack.take_with_sweeps("CompletionsQueueUrl").await;
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let totals = stack.dynamodb.update_item().table_name(stack.output("JobsTable"));
    let totals = totals.key("jobId", text(&job)).key("row", text("totals#1")).update_expression("SET #at = :past");
    let totals = totals.expression_attribute_names("#at", "at");
    let an_hour_ago = jiff::Timestamp::now().as_millisecond() - 3_600_000;
    let totals = totals.expression_attribute_values(":past", AttributeValue::N(an_hour_ago.to_string()));
    totals.send().await.expect("the table takes it");

    stack.send("CompletionsDeadLetterQueueUrl", &message).await;
    let ended = stack.ended(&job).await;
    assert_eq!((&ended["status"], &ended["itemsFailed"]), (&json!("failed"), &json!(2)), "{ended}");
}

/// A policy that denies one action of one role. It is a stack of its own.
struct Denial {
    cloudformation: aws_sdk_cloudformation::Client,
}

impl Denial {
    const STACK: &str = "denial";

    async fn of(stack: &LocalStack, function: &str, action: &str, table: &str) -> Self {
        let role = stack.role_of(function).await;
        let table = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{}", stack.output(table));
        let statement = json!({ "Effect": "Deny", "Action": action, "Resource": table });
        let document = json!({ "Version": "2012-10-17", "Statement": [statement] });
        let properties = json!({ "PolicyName": "denial", "Roles": [role], "PolicyDocument": document });
        let template = json!({ "Resources": { "Denial": { "Type": "AWS::IAM::Policy", "Properties": properties } } });
        let config = sdk_config(&Target::Emulator { endpoint_url: stack.endpoint().to_owned() }).await;
        let denial = Self { cloudformation: aws_sdk_cloudformation::Client::new(&config) };
        let create = denial.cloudformation.create_stack().stack_name(Self::STACK).template_body(template.to_string());
        create.capabilities(Capability::CapabilityIam).send().await.expect("the template is good");
        denial.wait_for(Some(StackStatus::CreateComplete)).await;
        denial
    }

    async fn lift(self) {
        self.cloudformation.delete_stack().stack_name(Self::STACK).send().await.expect("the stack is there");
        self.wait_for(None).await;
    }

    /// Waits until the stack has this status, or is gone.
    async fn wait_for(&self, wanted: Option<StackStatus>) {
        until(format!("the stack is not {wanted:?}"), async || {
            let answer = self.cloudformation.describe_stacks().stack_name(Self::STACK).send().await;
            answer.ok().and_then(|answer| answer.stacks?.pop()?.stack_status) == wanted
        })
        .await;
    }
}
