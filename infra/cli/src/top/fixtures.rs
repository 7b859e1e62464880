//! Snapshots for tests.

use std::time::Duration;

use rowmill_core::model::ids::{JobGuid, Owner};
use serde_json::json;
use uuid::Uuid;

use super::{ActiveJob, Queue, Snapshot};
use crate::fixtures::job_json;

/// A running job of this number, half done, with so many items accounted for.
pub fn job(number: u128, progress: u64) -> ActiveJob {
    let job_guid = JobGuid(Uuid::from_u128(number));
    let view = job_json(json!({
        "jobGuid": job_guid, "status": "running", "percent": 50, "itemProgress": progress, "itemCount": 2 * progress,
        "itemsFailed": 3, "createdAt": "2025-01-01T00:00:00Z",
    }));
    let view = serde_json::from_value(view).unwrap();
    ActiveJob { job_guid, owner: Owner(format!("user-{number}")), view: Some(view) }
}

/// A stack with two queues and no jobs.
pub fn snapshot() -> Snapshot {
    let queue = |name: &str, waiting, in_flight, oldest| Queue { name: name.to_owned(), waiting, in_flight, oldest };
    Snapshot {
        stack: "rowmill".to_owned(),
        at: "2025-01-01T00:01:00Z".parse().unwrap(),
        queues: vec![queue("Items", 1_234, 10, Some(Duration::from_secs(75))), queue("ItemsDeadLetter", 0, 1, None)],
        active: 0,
        jobs: Vec::new(),
        workers: None,
        counted: None,
    }
}
