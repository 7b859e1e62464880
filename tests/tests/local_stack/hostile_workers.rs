//! Requests of workers that are wrong, too long, too early, too late, or about the tasks of others.

use acceptance::local_stack::{ApiRequest, Issuer, LocalStack, accepted, answer, refused, until};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The job type of these tests: workers get all tasks of a type.
pub const HOSTILE: &str = "render-hostile";

/// A task in the hands of a worker.
#[derive(Clone)]
struct Held<'a> {
    stack: &'a LocalStack,
    /// The token of the caller, if the API wants one.
    caller: Option<&'a str>,
    id: String,
    token: String,
    names: Vec<String>,
}

fn as_caller(request: ApiRequest, caller: Option<&str>) -> ApiRequest {
    match caller {
        Some(token) => request.token(token),
        None => request,
    }
}

fn lease(stack: &LocalStack, caller: Option<&str>, job_types: &Value, worker: &str) -> ApiRequest {
    let body = json!({ "jobTypes": job_types, "worker": worker });
    as_caller(stack.post("/api/tasks/lease").json(&body), caller)
}

impl<'a> Held<'a> {
    /// Leases a task of this type as soon as there is one.
    async fn lease(stack: &'a LocalStack, caller: Option<&'a str>, job_type: &str) -> Self {
        let mut task = Value::Null;
        until("no task is offered", async || {
            let (status, lent) = answer(lease(stack, caller, &json!([job_type]), "hostile")).await;
            task = lent;
            status == StatusCode::OK
        })
        .await;
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let names = task["items"].as_array().expect("items").iter().map(|item| text(&item["itemIdentifier"]));
        Self { stack, caller, id: text(&task["taskId"]), token: text(&task["token"]), names: names.collect() }
    }

    fn of(&self, task: &str, action: &str) -> ApiRequest {
        as_caller(self.stack.post(&format!("/api/tasks/{task}/{action}")), self.caller)
    }

    /// A request about this task with these fields beside its token.
    fn request(&self, action: &str, fields: Value) -> ApiRequest {
        let mut body = json!({ "token": self.token });
        body.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        self.of(&self.id, action).json(&body)
    }

    /// A report of the first item with this output.
    fn output(&self, output: &str) -> ApiRequest {
        let (token, name) = (&self.token, &self.names[0]);
        let outputs = format!(r#"[{{"itemIdentifier": "{name}", "output": {output}}}]"#);
        let body = format!(r#"{{"token": "{token}", "itemIdentifiers": ["{name}"], "outputs": {outputs}}}"#);
        self.of(&self.id, "beat").header("content-type", "application/json").body(body)
    }
}

#[test]
fn whatever_a_worker_sends_is_refused_in_words_or_counts_once() {
    on_the_stack(async |stack| {
        let file = stack.upload("application/jsonl", "{\"a\": 1}\n{\"a\": 2}\n{\"a\": 3}\n").await;
        let job = stack.create(HOSTILE, &file, json!({})).await;
        leases_without_sense_are_refused(stack).await;
        let held = Held::lease(stack, None, HOSTILE).await;
        let early = refused(held.request("finish", json!({})), StatusCode::UNPROCESSABLE_ENTITY, "invalid_request");
        assert!(early.await.0["detail"].as_str().is_some_and(|detail| detail.contains("no beat")));
        assert_eq!(answer(held.request("beat", json!({}))).await.1["order"], "continue");
        other_tasks_and_tokens_are_refused(&held, &job).await;
        other_items_are_refused(&held).await;
        bodies_without_measure_are_refused(&held).await;
        assert_eq!(stack.job(&job).await["itemProgress"], 0, "nothing was taken");

        let (status, order) = answer(held.output(&format!("{{\"n\": [0{}]}}", ",0".repeat(2_900_000)))).await;
        assert_eq!((status, &order["order"]), (StatusCode::OK, &json!("continue")), "{order}");
        requests_that_meet_count_once(&held).await;
        for _ in 0..2 {
            let (status, order) = answer(held.request("release", json!({ "failed": true }))).await;
            assert!(status == StatusCode::GONE || order["order"] == "finished", "{status}: {order}");
        }
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(2), &json!(1)), "{ended}");
        assert_eq!(stack.failed_items(&job).await[0]["code"], "output_too_large");
        refused(held.request("release", json!({ "failed": true })), StatusCode::GONE, "task_gone").await;
        let audit = stack.runs(&["audit", &job]).await;
        assert!(audit.code == Some(0) && audit.out.starts_with("Audit of attempt 1: proved\n"), "{audit:?}");
        its_requests_are_in_the_log(stack, &job).await;
    });
}

async fn leases_without_sense_are_refused(stack: &LocalStack) {
    let padded = format!("a{}", " ".repeat(200_000));
    for worker in ["", "  ", "a\u{1b}[2J", "a\nb", &"a".repeat(129), &padded] {
        let request = lease(stack, None, &json!([HOSTILE]), worker);
        refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
    }
    for job_types in [json!([]), json!(vec![HOSTILE; 17])] {
        let request = lease(stack, None, &job_types, "hostile");
        refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
    }
    for job_type in ["validate", "a\u{0}b", &"x".repeat(200_000)] {
        let request = lease(stack, None, &json!([job_type]), "hostile");
        refused(request, StatusCode::UNPROCESSABLE_ENTITY, "unknown_job_type").await;
    }
}

async fn other_tasks_and_tokens_are_refused(held: &Held<'_>, job: &str) {
    let body = json!({ "token": held.token });
    for odd in ["1.0.0", "+1.0.0", "01.0.0", "1.0.0.0", "1.0", "1.0.-1", "4294967297.0.0", "1.0.%D9%A3", "1.0.0%00"] {
        for action in ["beat", "finish", "release"] {
            let task = if odd == "1.0.0" { format!("{{{job}}}.{odd}") } else { format!("{job}.{odd}") };
            refused(held.of(&task, action).json(&body), StatusCode::NOT_FOUND, "not_found").await;
        }
    }
    let other_job = "01890a5d-ac96-774b-bcce-b302099a8057";
    for task in
        [format!("{job}.1.0.63"), format!("{job}.2.0.0"), format!("{job}.1.65535.0"), format!("{other_job}.1.0.0")]
    {
        for action in ["beat", "finish", "release"] {
            refused(held.of(&task, action).json(&body), StatusCode::GONE, "task_gone").await;
        }
    }
    let foreign: String = held.token.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    for action in ["beat", "finish", "release"] {
        let request = held.of(&held.id, action).json(&json!({ "token": foreign }));
        refused(request, StatusCode::GONE, "task_gone").await;
        for token in ["", "x", &held.token[1..], &"0".repeat(100_000)] {
            let request = held.of(&held.id, action).json(&json!({ "token": token }));
            let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
            assert_eq!(problem["field"], "token");
        }
    }
}

async fn other_items_are_refused(held: &Held<'_>) {
    let [one, two, three] = &held.names[..] else { panic!("three items: {:?}", held.names) };
    let other = "01890a5d-ac96-774b-bcce-b302099a8057/1";
    let failed = |name: &str| json!({ "itemIdentifier": name });
    let output = |name: &str| json!({ "itemIdentifier": name, "output": {} });
    for items in [
        json!([two]),
        json!([one, three]),
        json!([one, one]),
        json!([two, one]),
        json!([other]),
        json!([one, two, three, other]),
        json!([""]),
        json!(vec![one; 100_000]),
    ] {
        for action in ["beat", "finish"] {
            let request = held.request(action, json!({ "itemIdentifiers": items }));
            let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
            assert_eq!(problem["field"], "itemIdentifiers");
        }
    }
    for outcomes in [
        json!({ "batchItemFailures": [failed(two)] }),
        json!({ "batchItemFailures": [failed(one), failed(one)] }),
        json!({ "batchItemFailures": [failed(other)] }),
        json!({ "outputs": [output(two)] }),
        json!({ "outputs": [output(one), output(one)] }),
        json!({ "batchItemFailures": [failed(one)], "outputs": [output(one)] }),
        json!({ "outputs": [{ "itemIdentifier": one, "output": [] }] }),
    ] {
        let mut fields = outcomes.clone();
        fields["itemIdentifiers"] = json!([one]);
        let request = held.request("beat", fields);
        let (problem, _) = refused(request, StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
        assert!(
            problem["detail"].as_str().is_some_and(|detail| detail.contains("[") && detail.len() < 500),
            "{problem}"
        );
    }
}

async fn bodies_without_measure_are_refused(held: &Held<'_>) {
    let levels = |levels: usize| format!("{{\"a\": {}{}}}", "[".repeat(levels), "]".repeat(levels));
    for output in [levels(100), levels(2_900_000)] {
        let (problem, _) = refused(held.output(&output), StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("in one another")), "{problem}");
    }
    let deep = held.of(&held.id, "beat").header("content-type", "application/json").body("[".repeat(5_000_000));
    refused(deep, StatusCode::BAD_REQUEST, "invalid_body").await;
    let unknown = held.request("finish", json!({ "x".repeat(5_500_000): 1 }));
    let (problem, _) = refused(unknown, StatusCode::BAD_REQUEST, "invalid_body").await;
    assert!(problem.to_string().len() < 10_000);
    let hidden = held.output(r#"{"$serde_json::private::RawValue": "]"}"#);
    refused(hidden, StatusCode::BAD_REQUEST, "invalid_body").await;
    let long = held.request("beat", json!({ "token": held.token, "itemIdentifiers": ["x".repeat(7_000_000)] }));
    assert_eq!(long.send_undocumented().await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let huge = held.of(&held.id, "finish").header("content-type", "application/json").body(vec![b' '; 100_000_000]);
    assert_eq!(huge.send_undocumented().await.status, StatusCode::PAYLOAD_TOO_LARGE);
}

/// Many reports of the second item and beats at once, and then the rest of them again.
async fn requests_that_meet_count_once(held: &Held<'_>) {
    let report = json!({ "itemIdentifiers": [held.names[1]] });
    let requests = (0..20).map(|number| held.request("beat", if number % 2 == 0 { report.clone() } else { json!({}) }));
    for answer in join_all(requests.map(ApiRequest::send)).await {
        match answer.status {
            StatusCode::OK => assert_eq!(answer.json::<Value>()["order"], "continue"),
            status => assert!(status == StatusCode::SERVICE_UNAVAILABLE && answer.header("retry-after").is_some()),
        }
    }
    let (status, order) = answer(held.request("beat", report)).await;
    assert_eq!((status, &order["order"]), (StatusCode::OK, &json!("continue")), "{order}");
    for answer in join_all((0..5).map(|_| held.request("finish", json!({})).send())).await {
        let is_taken = answer.status == StatusCode::OK && answer.json::<Value>()["order"] == "finished";
        let is_late = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::GONE].contains(&answer.status);
        assert!(is_taken || is_late, "{answer:?}");
    }
}

/// The answers can be there before the lines of the log.
async fn its_requests_are_in_the_log(stack: &LocalStack, job: &str) {
    for (action, outcome) in [
        ("leaseTask", "done"),
        ("finishTask", "task_gone"),
        ("beatTask", "invalid_request"),
        ("releaseTask", "task_gone"),
    ] {
        let is_it = |line: &Value| {
            line["target"] == "audit"
                && line["job.id"] == job
                && (&line["action"], &line["outcome"]) == (&json!(action), &json!(outcome))
        };
        until(format!("{action} has no line"), async || stack.log_lines("work-task").iter().any(is_it)).await;
    }
    let peaks = stack.log_lines("work-task").into_iter().filter_map(|line| line["process.peak_rss_bytes"].as_u64());
    let peak = peaks.max().expect("invocations log it");
    assert!(peak <= 256 << 20, "{peak} bytes");
}

/// The job types of a stack with an issuer, and who may work on them.
pub const WITH_ISSUER: [(&str, &str); 2] = [
    ("JobTargets", r#"{"render": {"workers": {"beatSeconds": 10}}, "mail": {"workers": {"beatSeconds": 10}}}"#),
    ("Workers", r#"{"render-farm": ["render"], "mailer": ["mail"]}"#),
];

/// Bob is no worker, and the mailer works on another type.
pub async fn a_worker_gets_only_tasks_of_its_types(stack: &LocalStack, issuer: &Issuer) {
    let [alice, bob, farm, mailer] = ["alice", "bob", "render-farm", "mailer"]
        .map(|sub| issuer.token(json!({ "sub": sub, "scope": "rowmill/work" })));
    let (alice, bob, farm, mailer) = (alice.await, bob.await, farm.await, mailer.await);
    let body = json!({ "jobType": "render", "items": [{ "id": 1 }] });
    let job = accepted(stack.post("/api/jobs").json(&body).token(&issuer.token(json!({})).await)).await;
    for caller in [&alice, &bob, &mailer] {
        for job_types in [json!(["render"]), json!(["mail", "render"])] {
            refused(lease(stack, Some(caller), &job_types, "w"), StatusCode::FORBIDDEN, "forbidden").await;
        }
    }
    let held = Held::lease(stack, Some(&farm), "render").await;
    assert!(held.id.starts_with(job["jobGuid"].as_str().expect("a guid")), "{}", held.id);
    // A job of others is answered like one that does not exist, also with the token of its task.
    for caller in [&alice, &bob, &mailer] {
        let of = |id: &str| Held { stack, caller: Some(caller), id: id.to_owned(), names: Vec::new(), ..held.clone() };
        let (theirs, nobodys) = (of(&held.id), of("01890a5d-ac96-774b-bcce-b302099a8057.1.0.0"));
        for action in ["beat", "finish", "release"] {
            let (known, _) = refused(theirs.request(action, json!({})), StatusCode::GONE, "task_gone").await;
            let (unknown, _) = refused(nobodys.request(action, json!({})), StatusCode::GONE, "task_gone").await;
            assert_eq!(known.to_string(), unknown.to_string().replace(&nobodys.id, &held.id));
        }
    }
    assert_eq!(answer(held.request("beat", json!({}))).await.1["order"], "continue");
    assert_eq!(answer(held.request("finish", json!({}))).await.1["order"], "finished");
}
