//! The work of the good tenant.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{PACE, Tenant};
use crate::files;

const ROWS: u64 = 10_000;

/// Every thousandth row has the amount 0, which the schema does not allow.
const FAILED: u64 = ROWS / 1000;

impl Tenant<'_> {
    /// Runs a job: uploads its file, creates it, follows it to its end. Returns the job as it ended, and the time of
    /// all this.
    ///
    /// # Panics
    /// If the counts are not exactly right.
    pub(super) async fn run_job(&self) -> (Value, Duration) {
        let began = Instant::now();
        let upload = self.upload("text/csv", &files::plain_csv(ROWS)).send().await;
        let upload_json: Value = upload.json();
        assert_eq!(upload.status, StatusCode::CREATED, "{upload_json}");
        let schema = json!({ "properties": { "amount": { "type": "integer", "minimum": 1 } }, "required": ["id"] });
        let body =
            json!({ "jobType": "validate", "fileGuid": upload_json["fileGuid"], "params": { "schema": schema } });
        let created = self.call(Method::POST, "/api/jobs").json(&body).send().await;
        let job: Value = created.json();
        assert_eq!(created.status, StatusCode::ACCEPTED, "{job}");
        let ended = self.ended(&job).await;
        let took = began.elapsed();
        let counts = json!([ended["itemsSucceeded"], ended["itemsFailed"], ended["itemsSkipped"], ended["itemCount"]]);
        assert_eq!(
            (&ended["status"], counts),
            (&json!("completed"), json!([ROWS - FAILED, FAILED, 0, ROWS])),
            "{ended}"
        );
        tokio::time::sleep(PACE.saturating_sub(took)).await;
        (ended, took)
    }
}
