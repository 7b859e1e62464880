//! The API without an HTTP API: every route through both transports, and a stack that has no HTTP API at all.

use std::collections::BTreeSet;
use std::path::PathBuf;

use acceptance::local_stack::{ApiAnswer, ApiRequest, LocalStack, answer, options, refused, rowmill, script};
use reqwest::{Method, StatusCode};
use rowmill_api::routes;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// A request that is sent through both transports.
struct Case {
    method: Method,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Case {
    fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    fn post(path: impl Into<String>, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let case = Self { method: Method::POST, path: path.into(), headers: Vec::new(), body: body.into() };
        if content_type.is_empty() { case } else { case.header("content-type", content_type) }
    }

    fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    fn json(path: impl Into<String>, body: &Value) -> Self {
        Self::post(path, "application/json", body.to_string())
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    async fn send(&self, mut request: ApiRequest) -> ApiAnswer {
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if [Method::POST, Method::PATCH].contains(&self.method) {
            request = request.body(self.body.clone());
        }
        request.send().await
    }
}

/// The parts of an answer that both transports must have in common: the status, the headers that the API sets, and the
/// body without what differs from request to request.
fn comparable(answer: &ApiAnswer) -> (StatusCode, Vec<Option<&str>>, Value) {
    let headers = ["content-type", "etag", "cache-control", "retry-after", "location"];
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    mask(&mut body);
    // The emulator gives an answer without a body a content type.
    let is_told = |name: &str| name != "content-type" || !answer.body.is_empty();
    (answer.status, headers.map(|name| answer.header(name).filter(|_| is_told(name))).to_vec(), body)
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "fileGuid" | "createdAt" | "expiresAt" | "url" | "ticket" | "at" | "digest" | "workers" => {
                        *value = json!("masked")
                    }
                    _ => mask(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}

/// The creation of a job, the same each time.
fn repeated(file: &str) -> Case {
    let new_job = json!({ "jobType": "validate", "fileGuid": file });
    Case::json("/api/jobs", &new_job).header("idempotency-key", "both transports")
}

/// A request for every route, and some that are refused. `job` has ended with a failed row, `whole` without, and
/// `multipart` is an upload whose parts are missing.
fn cases(job: &str, whole: &str, file: &str, multipart: &str, etag: &str) -> Vec<Case> {
    let announced = json!({ "fileName": "a.csv", "contentType": "text/csv", "size": 7 });
    vec![
        Case::post("/api/uploads?fileName=%C3%A4%2Bb.csv", "text/csv; charset=utf-8", "a\n\u{e4}\n"),
        Case::post("/api/uploads", "application/octet-stream", b"a\n\xff\n"),
        Case::post("/api/uploads", "text/csv", b"a\n\xff\n"),
        Case::post("/api/jobs", "application/json", vec![b' '; 1_400_000]),
        Case::post("/api/uploads", "", "a"),
        Case::json("/api/uploads", &announced),
        Case::post(format!("/api/uploads/{multipart}/complete"), "", ""),
        Case::get(format!("/api/uploads/{file}")),
        Case::get(format!("/api/uploads/{multipart}")),
        Case::json(format!("/api/uploads/{multipart}/parts"), &json!({ "from": 4 })),
        Case::post(format!("/api/uploads/{file}/parts"), "", ""),
        Case::delete("/api/uploads/01a20467-9b8d-7a54-b7e0-a09dae80a33b"),
        Case::post(format!("/api/uploads/{file}/preview"), "", ""),
        Case::json(format!("/api/uploads/{file}/preview"), &json!({ "rows": 0 })),
        repeated(file),
        Case::json("/api/jobs/estimate", &json!({ "jobType": "validate", "fileGuid": file })),
        Case::json("/api/jobs/estimate", &json!({ "jobType": "validate" })),
        Case::post("/api/jobs", "application/json", "{"),
        Case::get("/api/jobs?limit=1&status=completed&after=00000000-0000-7000-8000-000000000000"),
        Case::get("/api/jobs?limit=0"),
        Case::get(format!("/api/jobs/{job}")),
        Case::get(format!("/api/jobs/{job}")).header("if-none-match", etag),
        Case::get("/api/jobs/not-a-guid"),
        Case::get(format!("/api/jobs/{job}/items?outcome=failed&limit=1")),
        Case::get(format!("/api/jobs/{job}/files?limit=1")),
        Case::get(format!("/api/jobs/{job}/results")),
        Case::get(format!("/api/jobs/{job}/request")),
        Case::get(format!("/api/jobs/{job}/dead-letters")),
        Case::get(format!("/api/jobs/{job}/audit")),
        Case::get(format!("/api/jobs/{job}/why")),
        Case::get(format!("/api/jobs/{job}/tasks")),
        Case::get("/api/workers"),
        Case::get("/api/datasets?after=zzzz"),
        Case::get("/api/datasets/none/records?key=a%2Fb&limit=1"),
        Case { method: Method::PATCH, ..Case::json(format!("/api/jobs/{job}"), &json!({ "priority": "low" })) },
        Case::post(format!("/api/jobs/{job}/cancel"), "", ""),
        Case::post(format!("/api/jobs/{job}/pause"), "", ""),
        Case::post(format!("/api/jobs/{job}/resume"), "", ""),
        Case::post(format!("/api/jobs/{whole}/redrive"), "", ""),
        Case::post(format!("/api/jobs/{whole}/undo"), "", ""),
        Case::post(format!("/api/jobs/{whole}/prune"), "application/json", "{}"),
        Case::delete("/api/datasets/none"),
        Case::delete("/api/jobs/01a20467-9b8d-7a54-b7e0-a09dae80a33b"),
        Case::json("/api/tasks/lease", &json!({ "jobTypes": ["validate"], "worker": "w" })),
        Case::json(format!("/api/tasks/{job}.1.0.0/beat"), &json!({ "token": "00000000000000" })),
        Case::json(format!("/api/tasks/{job}.1.0.0/finish"), &json!({ "token": "00000000000000" })),
        Case::json(
            format!("/api/tasks/{job}.1.0.0/products"),
            &json!({ "token": "00000000000000", "itemIdentifier": format!("{job}/1"), "name": "a", "bytes": 1 }),
        ),
        Case::get(format!("/api/jobs/{job}/products/1.00000000000000.a")),
        Case::json(format!("/api/tasks/{job}.1.0.0/release"), &json!({ "token": "00000000000000" })),
        Case::post("/api/live/tickets", "", ""),
        Case::get("/api/openapi.json"),
        Case::get("/api/client-config"),
        Case::get("/api/nothing"),
        Case::post("/api/openapi.json", "", ""),
    ]
}

#[test]
fn every_route_answers_alike_over_http_and_through_a_gateway() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "a,b\n1,2\n3\n").await;
        let job = stack.create("validate", &file, json!({})).await;
        let whole = stack.upload("text/csv", "a,b\n1,2\n").await;
        let whole = stack.create("validate", &whole, json!({})).await;
        for job in [&job, &whole] {
            stack.ended(job).await;
        }
        let announced = json!({ "fileName": "b.csv", "contentType": "text/csv", "size": 70_000_000 });
        let (_, multipart) = answer(stack.post("/api/uploads").json(&announced)).await;
        let etag = stack.get(&format!("/api/jobs/{job}")).send().await;
        let etag = etag.header("etag").expect("an entity tag").to_owned();

        let multipart = multipart["fileGuid"].as_str().expect("a guid");
        // Both transports repeat this request, and find the same ended job.
        let created = repeated(&file).send(stack.post("/api/jobs")).await;
        stack.ended(created.json::<Value>()["jobGuid"].as_str().expect("a guid")).await;
        let (mut routes_seen, mut statuses) = (BTreeSet::new(), BTreeSet::new());
        for case in cases(&job, &whole, &file, multipart, &etag) {
            let over_http = case.send(stack.call(case.method.clone(), &case.path)).await;
            let through = case.send(stack.through_a_gateway(case.method.clone(), &case.path).await).await;
            assert_eq!(comparable(&over_http), comparable(&through), "{} {}", case.method, case.path);
            let path = case.path.split('?').next().expect("a path");
            routes_seen.extend(routes::find(case.method.as_str(), path).map(|(route, _)| route.operation.id()));
            statuses.insert(over_http.status.as_u16());
        }
        assert_eq!(routes_seen, routes::all().map(|route| route.operation.id()).collect(), "every route");
        let expected = [200, 201, 202, 204, 304, 400, 404, 409, 410, 413, 415, 422];
        assert_eq!(statuses, BTreeSet::from(expected));
    });
}

#[tokio::test]
async fn a_stack_without_an_http_api_does_everything_through_its_functions() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("without_http_api");
    let stack = LocalStack::up(&options(folder, &[("WithHttpApi", "false")])).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The very test run that is made for LocalStack.
    let output = script("infra/localstack/test-run").arg(stack.endpoint()).output().await.expect("it runs");
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(stack.records("unicode").await.len(), 11_231);
    let output =
        rowmill().args(["jobs", "--json", "--stack-name", "rowmill", "--endpoint-url", stack.endpoint()]).output();
    let listed = text(&output.await.expect("it runs").stdout);
    let listed: Value = serde_json::from_str(listed.trim_end().lines().last().expect("two jobs")).expect("a job");
    assert_eq!((&listed["status"], &listed["itemsSucceeded"]), (&json!("completed"), &json!(11_231)));

    // Any other client uses the gateway. This one checks each answer against the OpenAPI document.
    let job = listed["jobGuid"].as_str().expect("a guid");
    assert_eq!(stack.job(job).await["itemsSucceeded"], 11_231);
    let file = stack.upload("text/csv", "a,b\n1,2\n3\n").await;
    let failed = stack.create("validate", &file, json!({})).await;
    assert_eq!(stack.ended(&failed).await["itemsFailed"], 1);
    assert_eq!(stack.failed_items(&failed).await[0]["code"], "ragged_row");
    refused(stack.live_ticket(), StatusCode::NOT_FOUND, "live_unavailable").await;
}
