//! Job types by their targets: functions in Python, and web services that do well, hang, lie and redirect.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use acceptance::files;
use acceptance::local_stack::{LocalStack, until};
use aws_config::SdkConfig;
use rowmill::aws::{Target, sdk_config};
use rowmill_aws::adapters::secrets_manager::{Secret, SecretValues, StoredSecret};
use rowmill_core::model::webhook_key::{standard_secret, webhook_key};
use serde_json::{Value, json};

use crate::hostile_workers::HOSTILE;
use crate::quotas::operate;
use crate::results::results;
use crate::service::SERVICE;
use crate::stack::on_the_stack;
use crate::{fleet, services, tables, workers};

/// The stack's job types: four functions, eight webhooks, two services that may answer later and five for workers, all
/// of which the tests have yet to bring about.
pub fn config() -> Value {
    let service = SERVICE.get().expect("the service runs");
    let webhook = |path: &str, batch_items: u32| {
        // The one that hangs goes by another name, since what hangs is a host.
        let url = if path == "/hang" { service.named_url(path) } else { service.url(path) };
        json!({ "webhook": url, "allowPrivate": true, "timeoutSeconds": 1, "batchItems": batch_items, "concurrency": 2 })
    };
    let slow = |path: &str| json!({ "webhook": SERVICE.get().expect("the service runs").url(path), "allowPrivate": true, "batchItems": 250 });
    let mut config = json!({
        "measure": {"invoke": arn("measure"), "outputs": true, "batchItems": 100, "timeoutSeconds": 4},
        // Of a batch on which it throws, the row to blame is found within the five seconds that a run has here.
        "fragile": {"invoke": arn("fragile"), "batchItems": 20, "timeoutSeconds": 4},
        services::STARTS: {"invoke": arn(services::STARTS), "async": true, "batchItems": 20, "outputs": true},
        "report": {"invoke": arn("report"), "input": "none", "outputs": true},
        "merge": {"invoke": arn("merge"), "input": "files", "outputs": true},
        "notify": webhook("/well", 100),
        "standard": slow("/standard"),
        "hanging": webhook("/hang", 100),
        "lying": webhook("/lie", 50),
        "at-times": webhook("/down", 100),
        "redirecting": webhook("/redirect", 100),
        // A chunk is two calls, one after the other.
        "one-lane": slow("/one-at-a-time"),
        "three-lanes": slow("/three-at-a-time"),
        "at-once": {"webhook": service.url("/well"), "allowPrivate": true, "async": true, "batchItems": 50},
        services::PRESS: services::config(),
        workers::BUSY: workers::config(),
        workers::PAUSED: workers::config(),
        workers::FILES: workers::config(),
        workers::NEWER: { "workers": { "minimumClient": "99.0.0" } },
        HOSTILE: workers::config(),
        fleet::FLEET: fleet::config(10),
        fleet::POISON: fleet::config(1),
    });
    config.as_object_mut().expect("an object").extend(tables::config().map(|(name, of)| (name.to_owned(), of)));
    config
}

/// The functions' ARNs, as the template wants them.
pub fn arns() -> String {
    ["measure", "fragile", "report", "merge", services::STARTS].map(arn).join(",")
}

fn arn(function: &str) -> String {
    format!("arn:aws:lambda:us-east-1:000000000000:function:{function}")
}

/// A function that cannot cope with an empty name: it throws, and takes its whole batch along.
const FRAGILE: &str = "def handler(event, context):\n    for item in event['items']:\n        item['record']['name'][0]\n    \
    return {'batchItemFailures': []}\n";

async fn sdk_of(stack: &LocalStack) -> SdkConfig {
    sdk_config(&Target::Emulator { endpoint_url: stack.endpoint().to_owned() }).await
}

/// The secret that the stack made.
pub async fn webhook_secret(stack: &LocalStack) -> SecretValues {
    let client = aws_sdk_secretsmanager::Client::new(&sdk_of(stack).await);
    let stored = StoredSecret::new(client, stack.output("WebhookSecretArn").to_owned());
    stored.read().await.expect("the stack made a secret")
}

/// A file of so many rows, those of these numbers without a name.
fn rows_without_names(rows: u64, without: &[u64]) -> String {
    let mut text = String::from("id,name\n");
    for row in 1..=rows {
        let name = if without.contains(&row) { String::new() } else { format!("n{}", "x".repeat((row % 7) as usize)) };
        let _ = writeln!(text, "{row},{name}");
    }
    text
}

/// The failed items of a job: row, code and column.
async fn failures(stack: &LocalStack, job: &str) -> Vec<(u64, String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let failed = stack.failed_items(job).await;
    let failure = |item: &Value| {
        (item["row"].as_u64().expect("a row"), text(&item["code"]).expect("a code"), text(&item["column"]))
    };
    failed.iter().map(failure).collect()
}

#[test]
fn a_function_in_python_is_a_job_type_with_outputs() {
    on_the_stack(async |stack| {
        let example = include_str!("../../../infra/examples/measure.py");
        stack.create_python_function("measure", example).await;
        let without = [3, 700, 1200];
        let file = stack.upload("text/csv", rows_without_names(1200, &without)).await;
        let (job, ended) = stack.run("measure", &file, json!({ "anything": "goes" })).await;
        assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("partial")), "{ended}");
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(1197), &json!(3)));
        let expected = without.map(|row| (row, "no_name".to_owned(), Some("name".to_owned())));
        assert_eq!(failures(stack, &job).await, expected);

        let (shown, files) = results(stack, &job).await;
        let shown = shown["files"].as_array().expect("files").iter().find(|file| file["kind"] == "output");
        assert_eq!(shown.expect("outputs")["items"], 1197);
        let (_, outputs) = files.iter().find(|(name, _)| name == "outputs.jsonl").expect("outputs");
        let text = str::from_utf8(outputs).expect("text");
        let lengths: Vec<u64> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["length"].as_u64().expect("a length"))
            .collect();
        let expected: Vec<u64> = (1..=1200).filter(|row| !without.contains(row)).map(|row| row % 7 + 1).collect();
        assert_eq!(lengths, expected, "in row order, each once");
    });
}

#[test]
fn a_row_on_which_a_function_throws_fails_alone() {
    on_the_stack(async |stack| {
        stack.create_python_function("fragile", FRAGILE).await;
        let bad = [1, 2, 250, 800];
        let file = stack.upload("text/csv", rows_without_names(800, &bad)).await;
        let (job, ended) = stack.run("fragile", &file, json!({})).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(796), &json!(4)), "{ended}");
        assert_eq!(failures(stack, &job).await, bad.map(|row| (row, "target_failed".to_owned(), None)));
    });
}

#[test]
fn a_webhook_is_called_with_signed_batches() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(2000)).await;
        let (job, ended) = stack.run("notify", &file, json!({})).await;
        // The amount is `row * 7 % 1000`.
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(1998), &json!(2)), "{ended}");
        let expected = [1000, 2000].map(|row| (row, "nothing_to_pay".to_owned(), None));
        assert_eq!(failures(stack, &job).await, expected);
        assert!(SERVICE.get().expect("the service").calls("/well") >= 20, "100 items a call");
    });
}

#[test]
fn a_service_that_checks_calls_by_standard_webhooks_accepts_them() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(600)).await;
        let (_, ended) = stack.run("standard", &file, json!({})).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(600)), "{ended}");
        assert!(SERVICE.get().expect("the service").calls("/standard") >= 3, "250 items a call");
    });
}

#[test]
fn the_stack_makes_a_long_secret_and_no_function_has_it_in_its_environment() {
    on_the_stack(async |stack| {
        let secret = webhook_secret(stack).await;
        assert_eq!((secret.current.0.len(), &secret.previous), (64, &None));
        let key = operate(stack, &["webhook-key", "notify"]).await;
        assert_eq!(key, format!("{}\n", webhook_key(&secret.current.0, "notify")));
        let standard = operate(stack, &["webhook-key", "notify", "--standard"]).await;
        assert_eq!(standard, format!("{}\n", standard_secret(key.trim_end())));
        let functions =
            aws_sdk_lambda::Client::new(&sdk_of(stack).await).list_functions().send().await.expect("the functions");
        let of_the_stack = functions.functions().iter().filter(|function| function.environment().is_some());
        for function in of_the_stack {
            let variables = function.environment().and_then(|environment| environment.variables()).expect("variables");
            let shown = variables.values().any(|value| value.contains(&secret.current.0));
            assert!(!shown, "{} shows the secret", function.function_name().unwrap_or_default());
        }
    });
}

#[test]
fn a_secret_is_read_with_the_value_before_it_until_its_stage_is_removed() {
    on_the_stack(async |stack| {
        let secrets = aws_sdk_secretsmanager::Client::new(&sdk_of(stack).await);
        let created = secrets.create_secret().name("rotated").secret_string("first\n").send().await.expect("created");
        let stored = StoredSecret::new(secrets.clone(), created.arn().expect("an ARN").to_owned());
        let (first, second) = (Secret("first".to_owned()), Secret("second".to_owned()));
        let values = stored.read().await.expect("one value");
        assert_eq!(values, SecretValues { current: first.clone(), previous: None });

        let put = secrets.put_secret_value().secret_id("rotated").secret_string("second").send();
        put.await.expect("a second value");
        let values = stored.read().await.expect("two values");
        assert_eq!(values, SecretValues { current: second.clone(), previous: Some(first) });

        let version = created.version_id().expect("a version");
        let ends = secrets.update_secret_version_stage().secret_id("rotated").version_stage("AWSPREVIOUS");
        ends.remove_from_version_id(version).send().await.expect("the end of the rotation");
        assert_eq!(stored.read().await.expect("one value"), SecretValues { current: second, previous: None });

        let missing = StoredSecret::new(secrets.clone(), format!("{}x", created.arn().expect("an ARN")));
        let error = missing.read().await.expect_err("there is no such secret").to_string();
        assert!(error.contains("rotated") && error.contains("secretsmanager:GetSecretValue"), "{error}");
    });
}

#[test]
fn a_hanging_webhook_does_not_disturb_other_jobs_and_is_retried_later() {
    on_the_stack(async |stack| {
        let service = SERVICE.get().expect("the service");
        let file = stack.upload("text/csv", files::plain_csv(600)).await;
        let hanging = stack.create("hanging", &file, json!({})).await;
        until("it is not called", async || service.calls("/hang") > 0).await;
        let other = stack.create("notify", &file, json!({})).await;
        let ended = stack.ended(&other).await;
        assert_eq!(ended["itemsSucceeded"], 600, "{ended}");
        let still = stack.job(&hanging).await;
        assert_eq!((&still["itemProgress"], &still["finishedAt"]), (&json!(0), &Value::Null), "{still}");
        service.recover();
        let ended = stack.ended_with_sweeps(&hanging).await;
        assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(600)), "{ended}");
    });
}

#[test]
fn false_answers_and_redirects_into_private_networks_fail_the_items_and_end_the_job() {
    on_the_stack(async |stack| {
        let service = SERVICE.get().expect("the service");
        let file = stack.upload("text/csv", files::plain_csv(300)).await;
        for (job_type, path, code) in [("lying", "/lie", "bad_answer"), ("redirecting", "/redirect", "target_refused")]
        {
            let (job, ended) = stack.run(job_type, &file, json!({})).await;
            assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("failed")), "{ended}");
            let codes = failures(stack, &job).await.into_iter().fold(BTreeMap::new(), |mut codes, (_, code, _)| {
                *codes.entry(code).or_insert(0) += 1;
                codes
            });
            assert_eq!(codes, BTreeMap::from([(code.to_owned(), 300)]));
            assert!(service.calls(path) > 0);
        }
        assert_eq!((service.calls("/lie"), service.calls("/redirect")), (12, 3), "a lie is asked for once more");
    });
}
