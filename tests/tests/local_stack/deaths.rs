//! Functions killed while they work, and stacks that cannot be: neither hangs, neither loses a count.

use std::path::Path;
use std::time::Duration;

use acceptance::files;
use acceptance::local_stack::{chain, options};
use rowmill::stack::Stack;
use serde_json::json;

use crate::stack::on_the_stack;

#[test]
fn a_job_whose_functions_are_killed_ends_with_exact_counts() {
    on_the_stack(async |stack| {
        let rows = 30_000;
        let file = stack.upload("text/csv", files::plain_csv(rows)).await;
        let job = stack.create("import", &file, json!({ "dataset": "killed", "key": "id" })).await;
        let mut killed = 0;
        // Whoever is at work is killed, again and again for a while; how many that are is the machine's affair.
        while killed < 5 && stack.job(&job).await["finishedAt"].is_null() {
            killed += stack.kill_processes_of("process-items");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(killed > 0, "nobody was at work");
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(rows)), "{ended}");
        assert_eq!(stack.records("killed").await.len() as u64, rows);
        assert_eq!(stack.job_rows(&job).await["job"].number("completions"), 1);
    });
}

#[tokio::test]
async fn a_template_that_cannot_be_deployed_is_refused_with_the_reason() {
    let state_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused");
    let options = options(state_dir, &[("ProcessTimeoutSeconds", "61")]);
    let refused = Stack::up(&options).await.expect_err("no such timeout is allowed");
    let text = chain(&refused);
    assert!(text.contains("ProcessTimeoutSeconds"), "{text}");
    assert!(!options.state_dir.join("stack.json").exists(), "nothing is left running");
}
