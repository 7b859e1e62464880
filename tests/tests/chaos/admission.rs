//! Many clients at once never exceed the ceilings.

use std::cell::Cell;
use std::time::Duration;

use acceptance::local_stack::{LocalStack, accepted, answer, refused};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::{OWNER_JOB_CEILING, TYPE_JOB_CEILING, alone_on_the_stack};

const CLIENTS: usize = 50;

/// Numbers of rejections of clients.
#[derive(Default)]
struct Rejections {
    owner_full: Cell<u32>,
    type_full: Cell<u32>,
}

/// Requests a job until it is admitted; every rejection must have a `Retry-After`.
async fn create_when_admitted(stack: &LocalStack, request: &Value, rejections: &Rejections) -> String {
    loop {
        let answer = stack.post("/api/jobs").json(request).send().await;
        let (status, body) = (answer.status, answer.json::<Value>());
        let rejected = match (status.as_u16(), body["code"].as_str()) {
            (202, _) => return body["jobGuid"].as_str().expect("a jobGuid").to_owned(),
            (429, Some("owner_full")) => &rejections.owner_full,
            (503, Some("job_type_full")) => &rejections.type_full,
            _ => panic!("{status}: {body}"),
        };
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{body}");
        let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
        assert!(seconds >= Some(1), "Retry-After: {seconds:?}");
        rejected.set(rejected.get() + 1);
        // Sooner than `Retry-After`, to keep the ceiling under pressure.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Asserts that the counters of active jobs are between zero and their ceilings, and that the listed jobs are too.
async fn sample(stack: &LocalStack) {
    let scopes = [
        ("owner#local", OWNER_JOB_CEILING),
        ("system", OWNER_JOB_CEILING),
        ("type#import", TYPE_JOB_CEILING),
        ("type#validate", TYPE_JOB_CEILING),
    ];
    for (scope, ceiling) in scopes {
        let active = stack.active(scope).await;
        assert!((0..=ceiling).contains(&active), "{active} active in {scope}");
    }
    // One request for all states: a job that changes its state between two requests would count twice.
    let (status, page) = answer(stack.get("/api/jobs?limit=100")).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let jobs = page["jobs"].as_array().expect("jobs");
    let active = jobs.iter().filter(|job| job["finishedAt"].is_null()).count();
    assert!(i64::try_from(active).expect("few jobs") <= OWNER_JOB_CEILING, "{active} active jobs are listed");
}

async fn all_slots_are_back(stack: &LocalStack) {
    for scope in ["owner#local", "system", "type#import", "type#validate", "type#slow", "type#hostile"] {
        assert_eq!(stack.active(scope).await, 0, "{scope}");
    }
}

#[test]
fn fifty_concurrent_clients_never_have_more_jobs_than_the_ceiling() {
    alone_on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        let file = stack.upload("text/csv", "id\n1\n2\n").await;
        let rejections = Rejections::default();
        let clients = (0..CLIENTS).map(|client| {
            let params = if client % 2 == 0 { json!({ "dataset": "crowd", "key": "id" }) } else { json!({}) };
            let job_type = if client % 2 == 0 { "import" } else { "validate" };
            let request = json!({ "jobType": job_type, "fileGuid": file, "params": params });
            let rejections = &rejections;
            async move {
                let job = create_when_admitted(stack, &request, rejections).await;
                let ended = stack.ended(&job).await;
                assert_eq!(ended["outcome"], "succeeded", "{ended}");
            }
        });
        let samples = Cell::new(0_u32);
        let sampler = async {
            loop {
                sample(stack).await;
                samples.set(samples.get() + 1);
            }
        };
        tokio::select! {
            _ = join_all(clients) => {}
            () = sampler => unreachable!("the sampler never ends"),
        }
        assert!(samples.get() >= 10, "only {} samples", samples.get());
        assert!(rejections.owner_full.get() + rejections.type_full.get() > 0, "no client was rejected");
        all_slots_are_back(stack).await;
    });
}

#[test]
fn a_full_type_is_503_a_full_owner_429_and_a_known_key_still_gets_its_job() {
    alone_on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        // The item takes longer than any invocation, so the job stays active until it is cancelled.
        let file = stack.upload("text/csv", "id,ms\n1,60000\n").await;
        let request = |job_type: &str| json!({ "jobType": job_type, "fileGuid": file });
        let keyed = || stack.post("/api/jobs").header("idempotency-key", "at-the-ceiling").json(&request("slow"));
        let first = accepted(keyed()).await;
        let mut jobs = vec![first["jobGuid"].as_str().expect("a jobGuid").to_owned()];
        for _ in 1..TYPE_JOB_CEILING {
            jobs.push(stack.create_from(&request("slow")).await);
        }
        let refusal =
            refused(stack.post("/api/jobs").json(&request("slow")), StatusCode::SERVICE_UNAVAILABLE, "job_type_full");
        assert!(refusal.await.1 >= Some(1), "there is a `Retry-After`");
        for _ in TYPE_JOB_CEILING..OWNER_JOB_CEILING {
            jobs.push(stack.create_from(&request("hostile")).await);
        }
        let refusal =
            refused(stack.post("/api/jobs").json(&request("hostile")), StatusCode::TOO_MANY_REQUESTS, "owner_full");
        assert!(refusal.await.1 >= Some(1), "there is a `Retry-After`");
        assert_eq!(accepted(keyed()).await["jobGuid"], first["jobGuid"]);

        for job in &jobs {
            stack.act(job, "cancel").await;
        }
        for job in &jobs {
            let ended = stack.ended_with_sweeps(job).await;
            assert_eq!((&ended["status"], &ended["itemsSkipped"]), (&json!("cancelled"), &json!(1)), "{ended}");
        }
        all_slots_are_back(stack).await;
        stack.queues_are_empty().await;
    });
}
