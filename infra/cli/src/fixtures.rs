//! Views of the API for tests, made from the examples of the OpenAPI document.

use rowmill_api::job::JobView;
use rowmill_api::openapi::examples;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::states::Status;
use serde_json::{Value, json};

/// The job of [`job`] and [`job_json`].
pub fn job_guid() -> JobGuid {
    examples::job().job_guid
}

/// The upload of [`upload_json`].
pub fn file_guid() -> FileGuid {
    examples::upload().file_guid
}

/// A job of this status and percentage in which no item is known.
pub fn job(status: &str, percent: u8) -> JobView {
    serde_json::from_value(job_json(json!({"status": status, "percent": percent}))).unwrap()
}

/// The JSON of a waiting job in which no item is known, changed by these fields.
pub fn job_json(fields: Value) -> Value {
    let waiting = JobView {
        status: Status::Waiting,
        outcome: None,
        percent: 0,
        item_count: 0,
        item_count_final: false,
        item_progress: 0,
        items_succeeded: 0,
        items_failed: 0,
        cost: None,
        version: 0,
        finished_at: None,
        warnings: Vec::new(),
        ..examples::job()
    };
    with(serde_json::to_value(waiting).unwrap(), fields)
}

/// The JSON of a stored upload, changed by these fields.
pub fn upload_json(fields: Value) -> Value {
    let mut upload = examples::upload();
    upload.upload = None;
    with(serde_json::to_value(upload).unwrap(), with(json!({"status": "ready"}), fields))
}

/// A JSON object, changed by these fields.
pub fn with(mut object: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("fields are an object: {fields}") };
    object.as_object_mut().expect("an object").extend(fields);
    object
}
