//! An owner is forgotten: a scan of all tables and of the bucket finds nothing of it, and everything of others.

use std::collections::BTreeMap;
use std::path::Path;

use acceptance::local_stack::{
    AUDIENCE, Issuer, LiveClient, LocalStack, accepted, answer, options, ran, rowmill, ticket, until,
};
use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

/// The one that is forgotten. The names of the others look like its own.
const FORGOTTEN: &str = "ann@example.com";

const OTHERS: [&str; 2] = ["ann@example.com/x", "x/ann@example.com"];

/// An owner with a token, and what it has done.
struct Tenant {
    owner: &'static str,
    token: String,
    /// Stands in each of its files.
    mark: String,
}

impl Tenant {
    async fn of(issuer: &Issuer, owner: &'static str) -> Self {
        let mark = format!("mark{}end", owner.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
        Self { owner, token: issuer.token(json!({ "sub": owner })).await, mark }
    }

    async fn upload(&self, stack: &LocalStack, rows: usize) -> String {
        let rows: String = (0..rows).map(|row| format!("{row},{} {row}\n", self.mark)).collect();
        let request =
            stack.post("/api/uploads").header("content-type", "text/csv").body(format!("id,name\n{rows}bad\n"));
        let (status, upload) = answer(request.token(&self.token)).await;
        assert_eq!(status, StatusCode::CREATED, "{upload}");
        upload["fileGuid"].as_str().expect("a guid").to_owned()
    }

    async fn create(&self, stack: &LocalStack, body: &Value) -> String {
        let request = stack.post("/api/jobs").header("idempotency-key", fastrand::u64(..).to_string());
        let job = accepted(request.json(body).token(&self.token)).await;
        job["jobGuid"].as_str().expect("a guid").to_owned()
    }

    async fn ended(&self, stack: &LocalStack, job: &str) -> Value {
        let mut shown = Value::Null;
        until("the job does not end", async || {
            shown = answer(stack.get(&format!("/api/jobs/{job}")).token(&self.token)).await.1;
            shown["finishedAt"].is_string()
        })
        .await;
        shown
    }

    /// Makes rows and objects of all kinds, and this many jobs.
    async fn works(&self, stack: &LocalStack, jobs: usize) {
        let file = self.upload(stack, 200).await;
        let import = json!({ "jobType": "import", "fileGuid": file, "params": { "dataset": "d", "key": "id" } });
        let import = self.create(stack, &import).await;
        assert_eq!(self.ended(stack, &import).await["itemsSucceeded"], 200);
        let request = stack.post(&format!("/api/jobs/{import}/redrive")).token(&self.token);
        accepted(request).await;
        self.ended(stack, &import).await;
        let dataset = json!({ "dataset": "d" });
        let export = json!({ "jobType": "export", "params": dataset });
        let checked = json!({ "jobType": "validate", "fileGuid": file, "dedupe": "file" });
        for body in [export, checked] {
            let job = self.create(stack, &body).await;
            self.ended(stack, &job).await;
        }
        for first in (0..jobs).step_by(10) {
            join_all((first..jobs.min(first + 10)).map(async |number| {
                let items = json!([{ "name": format!("{} {number}", self.mark) }]);
                let job = self.create(stack, &json!({ "jobType": "validate", "items": items })).await;
                self.ended(stack, &job).await;
            }))
            .await;
        }
        // An upload that is never completed, and a live connection.
        let announced =
            json!({ "fileName": format!("{}.csv", self.mark), "contentType": "text/csv", "size": 70 << 20 });
        let (status, upload) = answer(stack.post("/api/uploads").json(&announced).token(&self.token)).await;
        assert_eq!(status, StatusCode::CREATED, "{upload}");
        let part = vec![b'x'; usize::try_from(upload["parts"][0]["size"].as_u64().expect("a size")).expect("fits")];
        assert_eq!(stack.send_signed(&upload["parts"][0], part).await, StatusCode::OK);
        ticket(stack.live_ticket().token(&self.token)).await;
    }
}

/// The rows of each table that hold this text, and the objects that do.
async fn finds(stack: &LocalStack, text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for table in ["JobsTable", "UploadsTable", "RecordsTable", "TasksTable", "ConnectionsTable", "AdmissionTable"] {
        for row in stack.all_rows(table).await {
            if row.values().any(|value| format!("{value:?}").contains(text)) {
                *found.entry(table.to_owned()).or_default() += 1;
            }
        }
    }
    for key in stack.keys_below("").await {
        let bytes = stack.object_in(stack.output("Bucket"), &key).await;
        if String::from_utf8_lossy(&bytes).contains(text) {
            *found.entry("Bucket".to_owned()).or_default() += 1;
        }
    }
    found
}

/// With `ROWMILL_JOBS=100` as many jobs of each owner.
#[tokio::test]
async fn a_scan_finds_nothing_of_a_forgotten_owner_and_everything_of_others() {
    let jobs: usize = std::env::var("ROWMILL_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(10);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("forgets");
    let issuer = Issuer::start(&folder).await;
    let parameters = [
        ("JwtIssuer", issuer.url()),
        ("JwtAudience", AUDIENCE),
        ("ProcessTimeoutSeconds", "10"),
        ("ItemTimeoutSeconds", "3"),
        ("StopGraceSeconds", "12"),
        ("StaleSeconds", "20"),
        ("OwnerJobCeiling", "50"),
    ];
    let stack = LocalStack::up(&options(folder.join("stack"), &parameters)).await;
    let forgotten = Tenant::of(&issuer, FORGOTTEN).await;
    let others = [Tenant::of(&issuer, OTHERS[0]).await, Tenant::of(&issuer, OTHERS[1]).await];
    for tenant in [&forgotten, &others[0], &others[1]] {
        tenant.works(&stack, jobs).await;
    }
    // What is under way when the owner is forgotten: a job that runs, one that is paused, an import.
    let connected = ticket(stack.live_ticket().token(&forgotten.token)).await;
    let mut live = LiveClient::open(&connected).await.expect("a connection");
    let file = forgotten.upload(&stack, 20_000).await;
    for job_type in ["validate", "transform"] {
        let job =
            forgotten.create(&stack, &json!({ "jobType": job_type, "fileGuid": file, "maxConcurrency": 1 })).await;
        live.subscribe(&job).await;
    }
    let import = json!({ "dataset": "late", "key": "id" });
    forgotten.create(&stack, &json!({ "jobType": "import", "fileGuid": file, "params": import })).await;
    let before = BTreeMap::from(OTHERS.map(|owner| (owner, BTreeMap::new())));
    let mut before: BTreeMap<&str, BTreeMap<String, usize>> = before;
    for tenant in &others {
        before.insert(tenant.owner, finds(&stack, &tenant.mark).await);
        assert!(before[tenant.owner]["Bucket"] >= jobs, "{before:?}");
    }
    let counted = forget(&stack, &[]).await;
    assert!(counted["found"]["jobs"].as_u64() >= Some(jobs as u64 + 5), "{counted}");
    assert!(counted["found"]["records"].as_u64() >= Some(200) && counted["erasedAt"].is_null(), "{counted}");
    assert!(finds(&stack, &forgotten.mark).await.len() > 2, "counting erases nothing");

    // A client that does not know goes on.
    let client = async {
        loop {
            let body = json!({ "jobType": "validate", "items": [{ "name": forgotten.mark }] });
            let answer = stack.post("/api/jobs").json(&body).token(&forgotten.token).send().await;
            if answer.status == StatusCode::FORBIDDEN {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
        std::future::pending::<()>().await;
    };
    let report = tokio::select! {
        report = forget(&stack, &["--yes"]) => report,
        () = client => unreachable!("it waits for ever"),
    };
    assert!(report["erasedAt"].is_string() && report["isBlocked"] == false, "{report}");
    assert!(report["found"]["jobs"].as_u64() >= counted["found"]["jobs"].as_u64(), "{report}");
    assert!(report["remains"].as_array().is_some_and(|remains| remains.len() >= 6), "{report}");

    assert_eq!(finds(&stack, &forgotten.mark).await, BTreeMap::new());
    assert_eq!(stack.multiparts().await, OTHERS.len(), "its parts are gone");
    // Its name stands in the names of the others. So it is looked for as keys, attributes and JSON have it.
    for text in [
        format!("#{FORGOTTEN}#"),
        format!("owner:{FORGOTTEN}#"),
        format!("\"{FORGOTTEN}\""),
        format!("\\\"{FORGOTTEN}\\\""),
        format!("\"{FORGOTTEN}#"),
        format!("\"{FORGOTTEN}/d#"),
        format!("\"{FORGOTTEN}/late#"),
    ] {
        let found = finds(&stack, &text).await;
        assert_eq!(found, BTreeMap::new(), "{text}");
    }
    for tenant in &others {
        assert_eq!(finds(&stack, &tenant.mark).await, before[tenant.owner], "{}", tenant.owner);
        let (_, page) = answer(stack.get("/api/datasets/d/records?limit=1000").token(&tenant.token)).await;
        assert_eq!(page["records"].as_array().map(Vec::len), Some(200));
    }
    let mut command = rowmill();
    command.args(["audit", "--all", "--endpoint-url", stack.endpoint()]);
    let audit = ran(command).await;
    let expected = format!("Audited jobs: {} proved", (jobs + 3) * 2);
    assert!(audit.code == Some(0) && audit.err.contains(&expected), "{audit:?}");
    // It may come back, as somebody whom nobody knows.
    let (_, page) = answer(stack.get("/api/jobs").token(&forgotten.token)).await;
    assert_eq!(page["jobs"], json!([]));
    assert_eq!(stack.active("system").await, 0);
}

async fn forget(stack: &LocalStack, arguments: &[&str]) -> Value {
    let mut command = rowmill();
    command.args(["forget", FORGOTTEN, "--json", "--endpoint-url", stack.endpoint()]).args(arguments);
    let ran = ran(command).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.out).expect("a report")
}
