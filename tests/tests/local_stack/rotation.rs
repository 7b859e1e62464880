//! The rotation of the webhook secret, on a stack of its own: the secret has two values before a process reads it.

use std::path::Path;

use acceptance::files;
use acceptance::local_stack::{LocalStack, options};
use rowmill::aws::{Target, sdk_config};
use serde_json::{Value, json};

use crate::service::Service;
use crate::targets::webhook_secret;

const ROWS: u64 = 300;

/// The end of a job over this type: its outcome, and the number of its rows that succeeded.
async fn job(stack: &LocalStack, job_type: &str) -> Value {
    let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
    let (_, ended) = stack.run(job_type, &file, json!({})).await;
    json!([ended["outcome"], ended["itemsSucceeded"], ended["itemsFailed"]])
}

#[tokio::test]
async fn while_a_secret_is_rotated_services_with_the_old_key_and_with_the_new_one_accept_calls() {
    let (with_old, with_new) = (Service::start().await, Service::start().await);
    let webhook = |service: &Service| json!({ "webhook": service.url("/well"), "allowPrivate": true });
    let targets = json!({ "with-old": webhook(&with_old), "with-new": webhook(&with_new) }).to_string();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rotation");
    let stack = LocalStack::up(&options(folder, &[("JobTargets", &targets)])).await;

    let old = webhook_secret(&stack).await.current.0;
    let new = "a-new-secret-of-more-than-16-characters";
    let config = sdk_config(&Target::Emulator { endpoint_url: stack.endpoint().to_owned() }).await;
    let secrets = aws_sdk_secretsmanager::Client::new(&config);
    let arn = stack.output("WebhookSecretArn");
    secrets.put_secret_value().secret_id(arn).secret_string(new).send().await.expect("a second value");
    with_old.trust(old);
    with_new.trust(new.to_owned());
    let good = json!(["succeeded", ROWS, 0]);
    assert_eq!((job(&stack, "with-old").await, job(&stack, "with-new").await), (good.clone(), good.clone()));

    // The rotation ends: a process that starts from now on signs with the new key alone.
    let versions = secrets.list_secret_version_ids().secret_id(arn).send().await.expect("the versions");
    let previous =
        versions.versions().iter().find(|version| version.version_stages().iter().any(|stage| stage == "AWSPREVIOUS"));
    let previous = previous.and_then(|version| version.version_id()).expect("the value before");
    let end = secrets.update_secret_version_stage().secret_id(arn).version_stage("AWSPREVIOUS");
    end.remove_from_version_id(previous).send().await.expect("the end of the rotation");
    assert!(stack.kill_processes_of("process-items") > 0, "they have read both values");
    assert_eq!(job(&stack, "with-new").await, good);
    assert_eq!(job(&stack, "with-old").await, json!(["failed", 0, ROWS]));
}
