//! Limits of a caller, on a stack of its own with low ones. It is open, so requests count by address: all come from
//! one.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use acceptance::local_stack::{
    ApiRequest, LiveClient, LocalStack, PATIENCE, answer, options, refused, rowmill, ticket,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const LIMIT: usize = 12;

/// Its own stack: the other tests send more than these limits allow.
async fn up() -> LocalStack {
    let (per_minute, uploads) = (LIMIT.to_string(), "2");
    let audits = json!({ "auditJob": { "minute": LIMIT, "hour": 1_000_000 } }).to_string();
    let parameters = [
        ("PostsPerMinute", per_minute.as_str()),
        ("RouteLimits", audits.as_str()),
        ("OwnerLiveConnections", "5"),
        ("OwnerUploadsOutstanding", uploads),
        ("OwnerBytesOutstanding", "1000"),
    ];
    LocalStack::up(&options(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("quotas"), &parameters)).await
}

fn announce(stack: &LocalStack, size: usize) -> ApiRequest {
    let body = json!({ "fileName": "a.csv", "contentType": "text/csv", "size": size });
    stack.post("/api/uploads").json(&body)
}

#[test]
fn a_caller_over_its_limits_is_refused_and_nobody_else_is() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let stack = up().await;
        uploads_are_outstanding_until_they_are_complete(&stack).await;
        for (method, path) in [(Method::POST, "cancel"), (Method::GET, "audit")] {
            requests_are_limited_by_route(&stack, &method, path).await;
        }
        a_flood_of_messages_ends_its_connection(&stack).await;
        let job = an_operator_cancels_a_job_although_its_owner_may_not(&stack).await;
        a_block_is_effective_until_it_is_lifted(&stack, &job).await;
    });
}

async fn uploads_are_outstanding_until_they_are_complete(stack: &LocalStack) {
    let (status, first) = answer(announce(stack, 3)).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let (_, second) = answer(announce(stack, 3)).await;
    let (problem, retry_after) = refused(announce(stack, 3), StatusCode::TOO_MANY_REQUESTS, "too_many_uploads").await;
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("2 announced uploads")), "{problem}");
    assert!(retry_after.is_some_and(|seconds| (86_000..=86_400).contains(&seconds)), "{retry_after:?}");
    refused(announce(stack, 1001), StatusCode::PAYLOAD_TOO_LARGE, "body_too_large").await;

    // Looking at the first one finds that its bytes are stored; a job on the second one finds the same.
    for upload in [&first, &second] {
        assert_eq!(stack.send_signed(&upload["upload"], b"a\n1".to_vec()).await, StatusCode::OK);
    }
    let path = format!("/api/uploads/{}", first["fileGuid"].as_str().expect("a guid"));
    assert_eq!(answer(stack.get(&path)).await.1["status"], "ready");
    assert_eq!(answer(announce(stack, 3)).await.0, StatusCode::CREATED);
    refused(announce(stack, 3), StatusCode::TOO_MANY_REQUESTS, "too_many_uploads").await;
    stack.create("validate", second["fileGuid"].as_str().expect("a guid"), json!({})).await;
    assert_eq!(answer(announce(stack, 3)).await.0, StatusCode::CREATED);
}

async fn requests_are_limited_by_route(stack: &LocalStack, method: &Method, path: &str) {
    // The limit is reached within two minutes of the clock.
    let path = format!("/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/{path}");
    let mut answered = 0;
    let limited = loop {
        let answer = stack.call(method.clone(), &path).send().await;
        match answer.status {
            StatusCode::NOT_FOUND => answered += 1,
            _ => break answer,
        }
        assert!(answered <= 2 * LIMIT, "there is no limit");
    };
    assert!(answered >= LIMIT, "{answered}");
    let problem: Value = limited.json();
    assert_eq!((limited.status, &problem["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("too_many_requests")));
    let header = |name: &str| limited.header(name).unwrap_or_default().to_owned();
    let retry_after: u64 = header("retry-after").parse().expect("seconds");
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    assert_eq!(header("ratelimit-policy"), format!("\"minute\";q={LIMIT};w=60, \"hour\";q=1000000;w=3600"));
    assert!(header("ratelimit").starts_with("\"minute\";r=0;t="), "{}", header("ratelimit"));

    // Polling is never limited, and another route has its own count.
    for _ in 0..2 * LIMIT {
        assert_eq!(answer(stack.get("/api/jobs")).await.0, StatusCode::OK);
    }
    let (status, _) = answer(stack.post("/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/redrive")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

async fn a_flood_of_messages_ends_its_connection(stack: &LocalStack) {
    let mut client = LiveClient::open(&ticket(stack.live_ticket()).await).await.expect("a good ticket");
    for sent in 1.. {
        client.send(json!({ "action": "ping" })).await;
        let answer = client.message().await;
        if answer["type"] != "pong" {
            assert_eq!((&answer["type"], &answer["code"]), (&json!("error"), &json!("too_many_messages")), "{answer}");
            break;
        }
        // 260 for each process and minute.
        assert!(sent < 3000, "there is no limit");
    }
    assert_eq!(client.next().await, None, "it is closed");
}

/// `rowmill` for this stack.
pub async fn operate(stack: &LocalStack, arguments: &[&str]) -> String {
    let mut command = rowmill();
    command.args(arguments).args(["--endpoint-url", stack.endpoint()]);
    let output = command.output().await.expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Pings until the connection is closed.
pub async fn ends_with_pings(client: &mut LiveClient) {
    let start = Instant::now();
    loop {
        client.send(json!({ "action": "ping" })).await;
        match client.next().await {
            None => return,
            Some(answer) => assert_eq!(answer["type"], "pong", "{answer}"),
        }
        assert!(start.elapsed() < PATIENCE, "it stays open");
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// Sends a request, again and again, until it is answered with this status.
async fn until(stack: &LocalStack, status: StatusCode) {
    let start = Instant::now();
    loop {
        let request = stack.post("/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/redrive");
        let (now, problem) = answer(request).await;
        if now == status {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "{problem}");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

/// The owner's cancels are used up. Returns a job that is still active.
async fn an_operator_cancels_a_job_although_its_owner_may_not(stack: &LocalStack) -> String {
    stack.deliver_to("SplitJobFunctionName", false).await;
    let (_, listed) = answer(stack.get("/api/jobs")).await;
    let file = listed["jobs"][0]["fileGuid"].as_str().expect("a guid");
    let job = stack.create("validate", file, json!({})).await;
    let cancelled = operate(stack, &["cancel", &job, "--as-operator", "--json"]).await;
    let cancelled: Value = serde_json::from_str(&cancelled).expect("JSON");
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    stack.create("validate", file, json!({})).await
}

async fn a_block_is_effective_until_it_is_lifted(stack: &LocalStack, job: &str) {
    let mut client = LiveClient::open(&ticket(stack.live_ticket()).await).await.expect("a good ticket");
    operate(stack, &["block", "local", "--reason", "a test", "--cancel-jobs"]).await;
    assert_eq!(stack.job(job).await["status"], "cancelled");
    stack.deliver_to("SplitJobFunctionName", true).await;
    operate(stack, &["block", "local", "--cancel-jobs"]).await;
    operate(stack, &["block", "--address", "192.0.2.7"]).await;
    let listed = operate(stack, &["blocked", "--json"]).await;
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let principals: Vec<&Value> = listed.iter().map(|block| &block["principal"]).collect();
    assert_eq!(principals, ["address:192.0.2.7", "owner:local"]);
    assert_eq!(listed[1]["reason"], "a test", "a repeated block keeps it");

    until(stack, StatusCode::FORBIDDEN).await;
    let redrive = stack.post("/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/redrive");
    refused(redrive, StatusCode::FORBIDDEN, "owner_blocked").await;
    assert_eq!(answer(stack.get("/api/jobs")).await.0, StatusCode::OK, "reading still works");
    ends_with_pings(&mut client).await;
    stack.drop_file("inbox/validate/blocked.csv", b"a\n1\n".to_vec(), &[]).await;
    let problem = stack.json_object("inbox-problems/validate/blocked.csv.json").await;
    assert_eq!(problem["code"], "owner_blocked");

    operate(stack, &["unblock", "local"]).await;
    until(stack, StatusCode::NOT_FOUND).await;
    assert!(!operate(stack, &["blocked", "--json"]).await.contains("owner:local"));
}
