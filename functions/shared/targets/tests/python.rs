//! Runs the Python examples: a target, and a service that checks signatures.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use rowmill_core::job_types::target_type::read_answer;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::webhook_key::{standard_secret, webhook_key};
use rowmill_core::ports::processor::{Item, ItemOutcome};
use rowmill_core::ports::{Target, TargetError, TargetItem, TargetRequest};
use rowmill_core::text::{Chunk, ChunkMode, Dialect, Format, read_items};
use rowmill_targets::signature::{SignedCall, WebhookSecrets};
use serde_json::{Map, Value, json};

/// Calls the handler of a Python file as Lambda does.
const CALL_HANDLER: &str = "import json, runpy, sys\n\
    handler = runpy.run_path(sys.argv[1])['handler']\n\
    json.dump(handler(json.load(sys.stdin), None), sys.stdout)";

/// A function in Python; each call starts a process.
struct Python;

#[async_trait]
impl Target for Python {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/examples/measure.py");
        let mut python = Command::new("python3")
            .args(["-c", CALL_HANDLER])
            .arg(example)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let event = serde_json::to_vec(request).unwrap();
        python.stdin.take().unwrap().write_all(&event).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success());
        Ok(output.stdout)
    }
}

#[tokio::test]
async fn the_example_fails_items_without_a_name_and_measures_the_others() {
    let job_guid: JobGuid = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let file = "1,Ada\n2,\n3,\"Zoë\nZ\"\n".as_bytes();
    let chunk = Chunk { offset: 0, length: file.len() as u64, first_row: 1, items: 3, mode: ChunkMode::Items };
    let columns: Arc<[String]> = ["id", "name"].map(String::from).to_vec().into();
    let records = read_items(&chunk, file, &Dialect { format: Format::Csv, delimiter: b',' }, &columns);
    let items: Vec<Item> = records.map(|raw| Item { job_guid, row: raw.row, record: raw.record.unwrap() }).collect();
    let params = Map::new();
    let items = items.iter().map(TargetItem::from).collect();
    let request = TargetRequest::of(job_guid, "measure", &params, items);
    let answer = Python.call(&request).await.unwrap();
    let identifiers: Vec<&str> = request.items.iter().map(|item| item.item_identifier.as_str()).collect();
    let results = read_answer(&answer, &identifiers, true).unwrap();
    assert_eq!(results[0], Ok(ItemOutcome::Output(r#"{"name":"Ada","length":3}"#.into())));
    let error = results[1].as_ref().unwrap_err();
    assert_eq!((error.code.as_str(), error.column.as_deref(), error.transient), ("no_name", Some("name"), false));
    let Ok(ItemOutcome::Output(line)) = &results[2] else { panic!("{results:?}") };
    assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["length"], 5);
}

#[test]
fn the_example_has_at_most_the_ten_lines_that_the_docs_promise() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/examples/measure.py");
    assert!(std::fs::read_to_string(example).unwrap().lines().count() <= 10);
}

/// Calls `is_genuine` with the arguments in the standard input, all of them texts.
const CHECK: &str = "import json, runpy, sys\n\
    given = json.load(sys.stdin)\n\
    given['body'] = given['body'].encode()\n\
    print(runpy.run_path(sys.argv[1])['is_genuine'](**given))";

/// The key that the services of the examples have.
fn key() -> String {
    webhook_key("the current secret", "notify")
}

/// True if the Python example takes the call with this signature for genuine.
fn is_genuine(call: &SignedCall<'_>, signature: &str) -> bool {
    let headers = json!({
        "rowmill-timestamp": call.timestamp.to_string(),
        "rowmill-signature": signature,
        "idempotency-key": call.idempotency_key,
    });
    let body = std::str::from_utf8(call.body).unwrap();
    let given = json!({ "key": key(), "host": call.host, "path": call.path, "headers": headers, "body": body });
    says_genuine("webhook_signature.py", &given)
}

/// The same by the headers of Standard Webhooks.
fn is_standard(call: &SignedCall<'_>, signature: &str) -> bool {
    let headers = json!({
        "webhook-id": call.webhook_id,
        "webhook-timestamp": call.timestamp.to_string(),
        "webhook-signature": signature,
    });
    let body = std::str::from_utf8(call.body).unwrap();
    says_genuine("standard_webhook.py", &json!({ "secret": standard_secret(&key()), "headers": headers, "body": body }))
}

fn says_genuine(example: &str, given: &Value) -> bool {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/examples").join(example);
    let mut python = Command::new("python3")
        .args(["-c", CHECK])
        .arg(example)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    python.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout == b"True\n"
}

#[test]
fn the_example_of_a_service_takes_signed_calls_only() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let call = SignedCall {
        timestamp: now,
        host: "example.com",
        path: "/hook?a=b",
        idempotency_key: "k1",
        webhook_id: "m1",
        body: b"{\"a\":1}",
    };
    let keys = |current, previous| WebhookSecrets::new(current, previous).unwrap().keys_of("notify");
    let signature = keys("the current secret", None).sign(&call);
    assert!(is_genuine(&call, &signature));
    let rotated = keys("the secret after it", Some("the current secret")).sign(&call);
    assert!(is_genuine(&call, &rotated), "the service has not switched yet");
    assert!(!is_genuine(&call, &keys("a secret of others", None).sign(&call)));
    for other in [SignedCall { path: "/hook", ..call }, SignedCall { body: b"{}", ..call }] {
        assert!(!is_genuine(&other, &signature), "{other:?}");
    }
    let old = SignedCall { timestamp: now - 3600, ..call };
    assert!(!is_genuine(&old, &keys("the current secret", None).sign(&old)), "it is an hour old");

    let signature = keys("the current secret", None).sign_standard(&call);
    let rotated = keys("the secret after it", Some("the current secret")).sign_standard(&call);
    assert!(is_standard(&call, &signature) && is_standard(&call, &rotated));
    assert!(!is_standard(&call, &keys("a secret of others", None).sign_standard(&call)));
    for other in [SignedCall { webhook_id: "m2", ..call }, SignedCall { body: b"{}", ..call }] {
        assert!(!is_standard(&other, &signature), "{other:?}");
    }
    assert!(!is_standard(&old, &keys("the current secret", None).sign_standard(&old)), "it is an hour old");
}

#[test]
fn the_docs_show_the_check_as_the_example_has_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let docs = read("docs/job-types.md");
    for example in ["webhook_signature.py", "standard_webhook.py"] {
        let example = read(&format!("infra/examples/{example}"));
        let check = &example[example.find("    timestamp = ").unwrap()..];
        assert!(docs.contains(check.trim_end()), "{check}");
    }
}
