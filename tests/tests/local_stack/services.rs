//! Services that answer later: the Python example, which is killed at work, one that answers at once, and a function.

use std::path::Path;
use std::sync::OnceLock;

use acceptance::files;
use acceptance::local_stack::{LocalStack, answer, until};
use reqwest::StatusCode;
use rowmill_core::model::webhook_key::{standard_secret, webhook_key};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::{Child, Command};

use crate::results::result;
use crate::stack::on_the_stack;
use crate::targets::webhook_secret;
use crate::workers::{done, rows};

pub const PRESS: &str = "press";

/// A function that starts work elsewhere, and accepts its items for it.
pub const STARTS: &str = "starts";

/// Where the example will listen: the stack is told before it runs. The address stays bound, though nothing listens at
/// it: else another process may get it until then.
static SOCKET: OnceLock<TcpSocket> = OnceLock::new();

fn port() -> u16 {
    let bound = || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?; // So does the example.
        socket.bind(([127, 0, 0, 1], 0).into())?;
        Ok::<_, std::io::Error>(socket)
    };
    let socket = SOCKET.get_or_init(|| bound().expect("a free port"));
    socket.local_addr().expect("it is bound").port()
}

/// Five items a call.
pub fn config() -> Value {
    let url = format!("http://127.0.0.1:{}/books", port());
    json!({ "webhook": url, "allowPrivate": true, "async": true, "beatSeconds": 10, "batchItems": 5, "outputs": true })
}

/// The example, whose items take this many seconds: a Python expression over the `record`.
async fn example(stack: &LocalStack, seconds: &str) -> Child {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra/examples");
    let script = std::fs::read_to_string(folder.join("service.py")).expect("the example");
    let slow = script.replacen("    return {\"name\"", &format!("    time.sleep({seconds})\n    return {{\"name\""), 1);
    assert_ne!(slow, script);
    let secret = standard_secret(&webhook_key(&webhook_secret(stack).await.current.0, PRESS));
    let mut command = Command::new("python3");
    command.current_dir(folder).args(["-B", "-c", &slow, &port().to_string(), stack.api_url()]);
    command.env("WEBHOOK_SECRET", secret).env_remove("ROWMILL_TOKEN").kill_on_drop(true).spawn().expect("it runs")
}

#[test]
fn a_service_answers_later_and_is_called_again_after_it_died() {
    on_the_stack(async |stack| {
        let without = [7, 23];
        let file = stack.upload("application/jsonl", rows(40, &without)).await;
        // The second item of the first call takes for ever.
        let mut dies = example(stack, "1000 if record.get('name') == 'n2' else 0").await;
        let listens = async || TcpStream::connect(("127.0.0.1", port())).await.is_ok();
        until("the service does not listen", listens).await;
        let job = stack.create(PRESS, &file, json!({})).await;
        until("no item is reported", async || done(stack, &job).await.contains(&1)).await;
        dies.kill().await.expect("it runs");

        let _lives = example(stack, "0").await;
        let ended = stack.ended_with_sweeps(&job).await;
        let counts = [&ended["itemCount"], &ended["itemsSucceeded"], &ended["itemsFailed"], &ended["itemsSkipped"]];
        assert_eq!(counts, [40, 38, 2, 0].map(|count| json!(count)).each_ref(), "{ended}");
        let failed = stack.failed_items(&job).await;
        let failed: Vec<u64> = failed.iter().filter_map(|item| item["row"].as_u64()).collect();
        assert_eq!(failed, without);
        let outputs = result(stack, &job, "outputs.jsonl").await;
        let names: Vec<String> = outputs
            .lines()
            .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["name"].as_str()?.to_owned()))
            .collect();
        let expected: Vec<String> =
            (1..=40).filter(|row| !without.contains(row)).map(|row| format!("n{row}")).collect();
        assert_eq!(names, expected, "in row order, each once");
        let audit = stack.runs(&["audit", &job]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
    });
}

#[test]
fn a_service_that_may_answer_later_may_answer_at_once() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", files::plain_csv(200)).await;
        let (_, ended) = stack.run("at-once", &file, json!({})).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(200)), "{ended}");
    });
}

#[test]
fn a_function_accepts_items_that_are_finished_elsewhere() {
    on_the_stack(async |stack| {
        let folder = tempfile::tempdir().expect("a folder");
        let calls = folder.path().join("calls.jsonl");
        // What it starts is this test.
        let source = format!(
            "import json\ndef handler(event, context):\n    with open({:?}, 'a') as calls:\n        \
             calls.write(json.dumps(event) + '\\n')\n    return {{'accepted': True}}\n",
            calls.to_str().expect("UTF-8")
        );
        stack.create_python_function(STARTS, &source).await;
        let file = stack.upload("application/jsonl", rows(40, &[])).await;
        let job = stack.create(STARTS, &file, json!({})).await;
        let started = || -> Vec<Value> {
            let text = std::fs::read_to_string(&calls).unwrap_or_default();
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        until("the function is not called with all items", async || started().len() == 2).await;
        for task in started() {
            let items = task["items"].as_array().expect("items");
            let outputs: Vec<Value> = items
                .iter()
                .map(|item| json!({ "itemIdentifier": item["itemIdentifier"], "output": item["record"] }))
                .collect();
            let link = task["links"]["finish"].as_str().expect("a link");
            let report = json!({ "token": task["token"], "batchItemFailures": [], "outputs": outputs });
            let (status, order) = answer(stack.post(link).json(&report)).await;
            assert_eq!((status, &order["order"]), (StatusCode::OK, &json!("finished")), "{order}");
        }
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["outcome"], &ended["itemsSucceeded"]), (&json!("succeeded"), &json!(40)), "{ended}");
        let outputs = result(stack, &job, "outputs.jsonl").await;
        let expected = rows(40, &[]).replace(": ", ":");
        assert_eq!(outputs, expected);
        assert_eq!(started().len(), 2, "it is called once with each item");
    });
}
