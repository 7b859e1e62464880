//! Who gets in: a stack whose tokens come from an OpenID provider on this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use acceptance::local_stack::{
    AUDIENCE, Issuer, LiveClient, LocalStack, WORK_SCOPE, WRITE_SCOPE, accepted, answer, http_client, options, refused,
    rowmill, ticket, until,
};
use reqwest::{Method, StatusCode};
use rowmill_api::routes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::hostile_workers;
use crate::quotas::ends_with_pings;

/// Every route that reads or changes something of an owner, with these names in its path.
fn guarded(job: &str, upload: &str) -> Vec<(Method, String)> {
    let guarded = routes::all().filter(|route| route.guarded);
    let path = |path: &str| {
        // The query that this route needs.
        let query = if path.ends_with("/items") { "?outcome=failed" } else { "" };
        path.replace("{jobGuid}", job).replace("{fileGuid}", upload).replace("{dataset}", "of-alice") + query
    };
    guarded.map(|route| (route.method.parse().expect("a method"), path(route.path))).collect()
}

#[tokio::test]
async fn only_a_good_token_gets_in_and_only_to_its_own() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("access");
    let issuer = Issuer::start(&folder).await;
    let [job_targets, workers] = hostile_workers::WITH_ISSUER;
    let parameters = [
        job_targets,
        workers,
        ("JwtIssuer", issuer.url()),
        ("JwtAudience", AUDIENCE),
        ("WriteScope", WRITE_SCOPE),
        ("WorkScope", WORK_SCOPE),
        ("OwnerPriorities", r#"{"größe of Rome": "high", "nightly": "low"}"#),
    ];
    let stack = LocalStack::up(&options(folder.join("stack"), &parameters)).await;

    let (job, upload) = job_of_alice(&stack, &issuer).await;
    bad_tokens_are_refused_on_every_route(&stack, &issuer, &job, &upload).await;
    another_owner_finds_nothing(&stack, &issuer, &job, &upload).await;
    a_high_priority_needs_an_owner_who_may_use_it(&stack, &issuer, &upload).await;
    a_live_connection_is_of_the_owner_of_its_ticket(&stack, &issuer, &job).await;
    a_live_connection_ends_with_the_token_of_its_ticket(&stack, &issuer).await;
    a_change_needs_its_scope(&stack, &issuer).await;
    a_worker_needs_its_scope_and_no_other(&stack, &issuer).await;
    hostile_workers::a_worker_gets_only_tasks_of_its_types(&stack, &issuer).await;
    a_gateway_passes_the_claims_on(&stack, &issuer, &job).await;
    a_person_logs_in_with_the_command(&stack, &issuer, &folder).await;
    changes_are_in_the_log(&stack, &job, &upload).await;
}

/// A job that has ended, and its file.
async fn job_of_alice(stack: &LocalStack, issuer: &Issuer) -> (String, String) {
    let alice = issuer.token(json!({})).await;
    let request = stack.post("/api/uploads").header("content-type", "text/csv").body("id\n1\n2\n").token(&alice);
    let (status, upload) = answer(request).await;
    assert_eq!(status, StatusCode::CREATED, "{upload}");
    let body = json!({ "jobType": "import", "fileGuid": upload["fileGuid"], "params": { "dataset": "of-alice" } });
    let job = accepted(stack.post("/api/jobs").json(&body).token(&alice)).await;
    let guid = job["jobGuid"].as_str().expect("a guid");
    loop {
        let (status, job) = answer(stack.get(&format!("/api/jobs/{guid}")).token(&alice)).await;
        assert_eq!(status, StatusCode::OK, "{job}");
        if job["finishedAt"].is_string() {
            assert_eq!(job["itemsSucceeded"], 2, "{job}");
            for (path, list) in [("/api/datasets", "datasets"), ("/api/datasets/of-alice/records", "records")] {
                let (_, page) = answer(stack.get(path).token(&alice)).await;
                assert_eq!(page[list].as_array().map(Vec::is_empty), Some(false), "{page}");
            }
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    (guid.to_owned(), upload["fileGuid"].as_str().expect("a guid").to_owned())
}

async fn bad_tokens_are_refused_on_every_route(stack: &LocalStack, issuer: &Issuer, job: &str, upload: &str) {
    let good = issuer.token(json!({})).await;
    let tampered = good.replacen('.', ".A", 1);
    let bad = [
        ("no token", String::new()),
        ("not a token", "x".to_owned()),
        ("tampered with", tampered),
        ("expired", issuer.token(json!({ "exp": jiff::Timestamp::now().as_second() - 60 })).await),
        ("without an end", issuer.token(json!({ "exp": null })).await),
        ("of another audience", issuer.token(json!({ "aud": "others" })).await),
        ("of another issuer", issuer.token(json!({ "iss": "https://issuer.example" })).await),
        ("unsigned", issuer.signed(json!({}), "none", json!({ "alg": "none" })).await),
        ("signed with the public key", issuer.signed(json!({}), "secret", json!({ "alg": "HS256" })).await),
        ("of an unknown key", issuer.signed(json!({}), "another", json!({ "kid": "unknown" })).await),
        ("of another key under a known name", issuer.signed(json!({}), "another", json!({})).await),
        ("without a subject", issuer.token(json!({ "sub": null })).await),
        ("of the open API's owner", issuer.token(json!({ "sub": "local" })).await),
    ];
    for (what, token) in bad {
        for (method, path) in guarded(job, upload) {
            let request = stack.call(method.clone(), &path);
            let request = if token.is_empty() { request } else { request.token(&token) };
            let answer = request.send_undocumented().await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path} with a token {what}");
        }
    }
}

async fn another_owner_finds_nothing(stack: &LocalStack, issuer: &Issuer, job: &str, upload: &str) {
    let bob = issuer.token(json!({ "sub": "bob" })).await;
    for (method, path) in guarded(job, upload) {
        let names_another = path.contains(job) || path.contains(upload);
        let request = stack.call(method.clone(), &path).token(&bob);
        let needs_body = method == Method::PATCH;
        let request = if needs_body { request.json(&json!({ "priority": "low" })) } else { request };
        if names_another {
            refused(request, StatusCode::NOT_FOUND, "not_found").await;
        } else if path == "/api/workers" {
            refused(request, StatusCode::FORBIDDEN, "forbidden").await;
        } else if path.starts_with("/api/datasets/") {
            refused(request, StatusCode::NOT_FOUND, "not_found").await;
        } else if method == Method::GET {
            let (status, list) = answer(request).await;
            let name = if path == "/api/datasets" { "datasets" } else { "jobs" };
            assert_eq!((status, &list[name]), (StatusCode::OK, &json!([])), "{path}");
        }
    }
    let body = json!({ "jobType": "validate", "fileGuid": upload });
    refused(stack.post("/api/jobs").json(&body).token(&bob), StatusCode::UNPROCESSABLE_ENTITY, "unknown_upload").await;
}

/// The upload is none of these owners' but of alice: the priority is looked at first.
async fn a_high_priority_needs_an_owner_who_may_use_it(stack: &LocalStack, issuer: &Issuer, upload: &str) {
    for (sub, priority, highest) in [
        ("alice", "high", "normal"),
        ("bob", "high", "normal"),
        ("nightly", "high", "low"),
        ("nightly", "normal", "low"),
    ] {
        let token = issuer.token(json!({ "sub": sub })).await;
        let body = json!({ "jobType": "validate", "fileGuid": upload, "priority": priority });
        let request = stack.post("/api/jobs").json(&body).token(&token);
        let (problem, _) = refused(request, StatusCode::FORBIDDEN, "priority_not_allowed").await;
        assert_eq!(problem["field"], "priority", "{problem}");
        let said = format!("may use priority `{highest}` at most");
        assert!(problem["detail"].as_str().expect("a detail").contains(&said), "{problem}");
    }
    for (sub, given, expected) in [
        ("größe of Rome", json!("high"), "high"),
        ("alice", json!("low"), "low"),
        ("alice", Value::Null, "normal"),
        ("nightly", Value::Null, "low"),
    ] {
        let token = issuer.token(json!({ "sub": sub })).await;
        let items = json!([{ "id": 1 }]);
        let body = json!({ "jobType": "validate", "items": items, "priority": given });
        let job = accepted(stack.post("/api/jobs").json(&body).token(&token)).await;
        assert_eq!(job["priority"], expected, "{job}");
    }
}

async fn a_live_connection_is_of_the_owner_of_its_ticket(stack: &LocalStack, issuer: &Issuer, job: &str) {
    let [alice, bob] = ["alice", "bob"].map(|sub| issuer.token(json!({ "sub": sub, "scope": "openid" })));
    let (of_alice, of_bob) =
        (ticket(stack.live_ticket().token(&alice.await)).await, ticket(stack.live_ticket().token(&bob.await)).await);
    let mut alice = LiveClient::open(&of_alice).await.expect("a good ticket");
    alice.subscribe(job).await;
    assert_eq!(alice.message_of("snapshot").await["job"]["jobGuid"], job);
    assert!(LiveClient::open(&of_alice).await.is_err(), "anyone who takes the ticket comes too late");
    let mut bob = LiveClient::open(&of_bob).await.expect("a good ticket");
    bob.subscribe(job).await;
    let error = bob.message().await;
    assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("not_found")), "{error}");
    bob.send(json!({ "action": "subscribe", "jobs": "mine" })).await;
    assert_eq!(bob.message().await["type"], "subscribed");
    bob.send(json!({ "action": "ping" })).await;
    assert_eq!(bob.message().await["type"], "pong", "no job of another owner");
}

async fn a_live_connection_ends_with_the_token_of_its_ticket(stack: &LocalStack, issuer: &Issuer) {
    let end = jiff::Timestamp::now().as_second() + 15;
    let token = issuer.token(json!({ "sub": "dora", "exp": end })).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(LiveClient::open(&ticket(stack.live_ticket().token(&token)).await).await.expect("a good ticket"));
    }
    let [mut pinging, mut watching] = <[_; 2]>::try_from(clients).ok().expect("two clients");
    watching.send(json!({ "action": "subscribe", "jobs": "mine" })).await;
    assert_eq!(watching.message().await["type"], "subscribed");
    ends_with_pings(&mut pinging).await;
    assert!(jiff::Timestamp::now().as_second() >= end, "it ended before the token");
    let token = issuer.token(json!({ "sub": "dora" })).await;
    let body = json!({ "jobType": "validate", "items": [{ "id": 1 }] });
    accepted(stack.post("/api/jobs").json(&body).token(&token)).await;
    assert_eq!(watching.next().await, None, "a change of a job ends it");
}

async fn a_change_needs_its_scope(stack: &LocalStack, issuer: &Issuer) {
    let reader = issuer.token(json!({ "scope": "openid" })).await;
    let (status, jobs) = answer(stack.get("/api/jobs").token(&reader)).await;
    assert_eq!(status, StatusCode::OK, "{jobs}");
    let change = stack.post("/api/uploads").header("content-type", "text/csv").body("id\n1\n").token(&reader);
    assert_eq!(change.send_undocumented().await.status, StatusCode::FORBIDDEN);
}

async fn a_worker_needs_its_scope_and_no_other(stack: &LocalStack, issuer: &Issuer) {
    let worker = issuer.token(json!({ "sub": "worker", "scope": WORK_SCOPE })).await;
    let lease = json!({ "jobTypes": ["render"], "worker": "w" });
    // The gateway lets it in. `Workers` does not name it.
    refused(stack.post("/api/tasks/lease").json(&lease).token(&worker), StatusCode::FORBIDDEN, "forbidden").await;
    let change = stack.post("/api/jobs").json(&json!({ "jobType": "validate" })).token(&worker);
    assert_eq!(change.send_undocumented().await.status, StatusCode::FORBIDDEN);
    let client = issuer.token(json!({ "scope": WRITE_SCOPE })).await;
    let lease = stack.post("/api/tasks/lease").json(&lease).token(&client).send_undocumented().await;
    let problem: Value = lease.json();
    assert_eq!((lease.status, &problem["code"]), (StatusCode::FORBIDDEN, &Value::Null), "the gateway answers itself");
}

/// The gateway of the command invokes the functions itself, so only they can refuse.
async fn a_gateway_passes_the_claims_on(stack: &LocalStack, issuer: &Issuer, job: &str) {
    let through_gateway = async |token: Option<String>| {
        let mut command = rowmill();
        command.args(["job", job, "--json", "--stack-name", "rowmill", "--endpoint-url", stack.endpoint()]);
        command.env_remove("ROWMILL_TOKEN").env("XDG_CONFIG_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-config"));
        let output = command.envs(token.map(|token| ("ROWMILL_TOKEN", token))).output().await.expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (found, shown, problem) = through_gateway(Some(issuer.token(json!({})).await)).await;
    assert!(found && shown.contains(job), "{shown}{problem}");
    let (found, _, problem) = through_gateway(None).await;
    assert!(!found && problem.contains("HTTP 401"), "{problem}");
    let (found, _, problem) = through_gateway(Some(issuer.token(json!({ "sub": "bob" })).await)).await;
    assert!(!found && problem.contains("HTTP 404"), "{problem}");
}

/// Logs in as a browser would, and uses the token.
async fn a_person_logs_in_with_the_command(stack: &LocalStack, issuer: &Issuer, folder: &Path) {
    let config = folder.join("config");
    let command = || {
        let mut command = rowmill();
        command
            .env("XDG_CONFIG_HOME", &config)
            .env_remove("ROWMILL_TOKEN")
            .env_remove("ROWMILL_URL")
            .kill_on_drop(true);
        command
    };
    let _ = std::fs::remove_dir_all(&config);
    let mut login = command();
    login.args(["login", "--url", stack.api_url(), "--issuer", issuer.url(), "--client-id", AUDIENCE, "--no-browser"]);
    let mut login = login.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(login.stderr.take().expect("a pipe")).lines();
    let page = loop {
        let line = lines.next_line().await.expect("text").expect("the address of the login page");
        if let Some(page) = line.strip_prefix("Log in at ") {
            break page.to_owned();
        }
    };
    let http = http_client();
    let redirect = http.post(page).form(&[("sub", "carol")]).send().await.expect("the issuer redirects");
    let location = redirect.headers()["location"].to_str().expect("a URL").to_owned();
    let answer = http.get(location).send().await.expect("the command listens");
    let text = answer.text().await.expect("text");
    assert!(text.contains("You are logged in"), "{text}");
    let mut said = String::new();
    while let Some(line) = lines.next_line().await.expect("text") {
        said += &line;
    }
    assert!(login.wait().await.expect("it ends").success(), "{said}");

    let mut upload = command();
    upload.args(["jobs", "--json", "--url", stack.api_url()]);
    let output = upload.output().await.expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut logout = command();
    assert!(logout.args(["logout", "--url", stack.api_url()]).status().await.expect("it runs").success());
    let mut jobs = command();
    let output = jobs.args(["jobs", "--json", "--url", stack.api_url()]).output().await.expect("it runs");
    assert!(!output.status.success(), "without the login the API refuses");
}

async fn changes_are_in_the_log(stack: &LocalStack, job: &str, upload: &str) {
    let audit_lines = |function: &str| -> Vec<Value> {
        let lines = stack.log_lines(function);
        lines.into_iter().filter(|line| line["target"] == "audit").collect()
    };
    // The answers can be there before the lines of the log.
    let refused = |line: &Value| line["owner"] == "bob" && line["outcome"] == "unknown_upload";
    until("a refusal has no line", async || audit_lines("create-job").iter().any(refused)).await;
    let created = audit_lines("create-job");
    let found = created.iter().find(|line| line["job.id"] == job).expect("the job's line");
    let expected = json!(["alice", "createJob", "done", "127.0.0.1"]);
    assert_eq!(json!([found["owner"], found["action"], found["outcome"], found["source.address"]]), expected);
    let uploads = audit_lines("upload");
    assert!(uploads.iter().any(|line| line["upload.id"] == upload && line["action"] == "createUpload"), "{uploads:?}");
    assert!(audit_lines("job-status").is_empty(), "reads leave no line");
}
