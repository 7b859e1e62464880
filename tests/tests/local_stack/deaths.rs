//! Processes that end after their answer, and stacks that cannot be: neither hangs.

use std::path::Path;

use acceptance::local_stack::{chain, options};
use rowmill::stack::Stack;

use crate::stack::on_the_stack;

/// A runtime of a function that answers one event and ends before it asks for the next one.
const ANSWERS_ONCE: &str = r#"#!/usr/bin/env python3
import os, time, urllib.request

invocation = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation"
with urllib.request.urlopen(f"{invocation}/next") as event:
    request_id = event.headers["Lambda-Runtime-Aws-Request-Id"]
    event.read()
answer = urllib.request.Request(f"{invocation}/{request_id}/response", data=b'"done"', method="POST")
urllib.request.urlopen(answer).read()
time.sleep(0.5)
os._exit(1)
"#;

#[test]
fn a_process_that_ends_after_its_answer_takes_no_event_with_it() {
    on_the_stack(async |stack| {
        stack.create_bootstrap_function("answers-once", ANSWERS_ONCE).await;
        for invocation in 0..3 {
            let answer = stack.invoke("answers-once").await;
            assert_eq!(answer, Ok("\"done\"".to_owned()), "invocation {invocation}");
        }
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
