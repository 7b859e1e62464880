//! Tasks on the wire: what workers outside of the stack get and give.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::whole;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The most job types of a lease.
const JOB_TYPES_MAX: usize = 16;

/// The longest name of a worker, in characters.
const WORKER_MAX_CHARS: usize = 128;

/// The body of `POST /api/tasks/lease`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaseRequest {
    /// The job types to work on, the preferred one first: 1 to 16.
    #[schema(min_items = 1, max_items = 16)]
    pub job_types: Vec<String>,
    /// A name by which people recognise the worker, such as its host: 1 to 128 characters.
    #[schema(min_length = 1, max_length = 128)]
    pub worker: String,
    /// The program of the worker and its version, such as `render-farm/1.4.0`: at most 128 characters. A job type may
    /// ask for a minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub client: Option<String>,
}

impl LeaseRequest {
    /// True if its fields are within their limits.
    pub fn is_valid(&self) -> bool {
        let is_name = |name: &str| {
            let is_shown = !name.trim().is_empty() && !name.chars().any(char::is_control);
            is_shown && (1..=WORKER_MAX_CHARS).contains(&name.chars().count())
        };
        let is_named = is_name(&self.worker) && self.client.as_deref().is_none_or(is_name);
        is_named && (1..=JOB_TYPES_MAX).contains(&self.job_types.len())
    }
}

/// A task in the hands of a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Names the task in the paths of its other routes.
    pub task_id: String,
    /// Shows that the task is this worker's. Every beat and report of it needs the token.
    pub token: String,
    /// The job.
    pub job_guid: JobGuid,
    /// Its job type.
    pub job_type: String,
    /// The params of the job.
    #[schema(value_type = Map<String, Value>)]
    pub params: Map<String, Value>,
    /// The items to process, in their order.
    pub items: Vec<TaskItemView>,
    /// Seconds until the first beat must have come. Send it before the first item begins: nobody else begins the task
    /// until then.
    pub first_beat_seconds: u64,
    /// Longest time between two beats.
    pub beat_seconds: u64,
    /// Seconds after the worker *sent* its last accepted beat at which it must have stopped: another worker may begin.
    pub stop_after_seconds: u64,
}

/// An item of a task.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskItemView {
    /// Names the item in outcomes. The same whenever the item is processed for this job: an idempotency key.
    pub item_identifier: String,
    /// Its 1-based row number in the file.
    #[schema(minimum = 1)]
    pub row: u64,
    /// The record as an object. The cells of a CSV file are strings.
    #[schema(value_type = Object)]
    pub record: Value,
}

/// The body of `POST /api/tasks/{taskId}/beat` and `…/finish`: the token, and outcomes of items.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReportRequest {
    /// The token of the lease.
    pub token: String,
    /// The items that are done since the last report, in the order of the task. Left out in a finish: all that are left.
    /// Left out in a beat: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_identifiers: Option<Vec<String>>,
    /// Those of them that failed. The others have succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batch_item_failures: Vec<ItemFailure>,
    /// The outputs of those that succeeded, if the job type has outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputOfItem>,
}

impl ReportRequest {
    /// The outcomes, without the token.
    pub fn outcomes(&self) -> Outcomes<'_> {
        Outcomes { batch_item_failures: &self.batch_item_failures, outputs: &self.outputs }
    }
}

/// Outcomes in the form in which a target answers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcomes<'a> {
    batch_item_failures: &'a [ItemFailure],
    outputs: &'a [OutputOfItem],
}

/// An item that failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ItemFailure {
    /// The item.
    pub item_identifier: String,
    /// What is wrong with it, for a program. Default: `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What is wrong with it, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The column that is wrong, if it is one column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Whether another try may succeed. Then the task is given back from this item on, and the item is lent again, at
    /// most twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient: Option<bool>,
}

/// The output of an item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputOfItem {
    /// The item.
    pub item_identifier: String,
    /// An object: one line of the job's `outputs.jsonl`.
    // As it is written: parsed, it could take thirty times the memory.
    #[schema(value_type = Object)]
    pub output: Box<RawValue>,
    /// Names of the item's products, which are stored: at most 16. They are listed in the field `products` of the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub products: Vec<String>,
}

/// The body of `POST /api/tasks/{taskId}/products`: a file that an item has produced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProductRequest {
    /// The token of the lease.
    pub token: String,
    /// The item, one of those that are not reported.
    pub item_identifier: String,
    /// Its name, unique among the products of the item: 1 to 128 ASCII letters, digits, `.`, `_` and `-`, no `.` first.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// Its media type. Default: `application/octet-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub content_type: Option<String>,
    /// Its length in bytes, at most 1 GiB.
    #[serde(deserialize_with = "whole::required")]
    #[schema(maximum = 1_073_741_824)]
    pub bytes: u64,
}

/// A product, as an output lists it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductLine {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub content_type: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// The entity tag of the stored object.
    pub etag: String,
    /// The path of the API that answers with a link.
    pub path: String,
}

/// The body of `POST /api/tasks/{taskId}/release`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRequest {
    /// The token of the lease.
    pub token: String,
    /// Whether the worker failed at the items that are left. Then they are lent in smaller parts, and an item that three
    /// workers fail at alone fails as `poison`.
    #[serde(default)]
    pub failed: bool,
}

words! {
    /// What a worker is to do with its task.
    TaskOrder {
        /// Go on, and beat again in time.
        Continue = "continue",
        /// The job is paused: begin no further item, report those that are done, and release the task.
        Paused = "paused",
        /// The job is stopped: the same.
        Stopping = "stopping",
        /// Nothing of the task is left to do. Lease another one.
        Finished = "finished",
    }
}

/// The answer to a beat, a report or a release.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskOrderView {
    /// What to do next.
    #[schema(value_type = TaskOrder)]
    pub order: Open<TaskOrder>,
    /// Longest time until the next beat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beat_seconds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_worker_is_short_and_fits_a_line() {
        let is_valid =
            |worker: &str| LeaseRequest { job_types: vec!["a".into()], worker: worker.into(), client: None }.is_valid();
        assert!(is_valid("render-farm-7") && is_valid(&"ä".repeat(128)));
        let padded = format!("a{}", " ".repeat(200_000));
        for worker in ["", " ", "a\nb", "\u{1b}[2J", "\0", &"a".repeat(129), &padded] {
            assert!(!is_valid(worker), "{:.20}", worker);
        }
    }

    #[test]
    fn the_length_of_a_product_is_a_whole_number_however_it_is_written() {
        let read = |bytes: &str| {
            let text = format!(r#"{{"token":"t","itemIdentifier":"j/1","name":"n","bytes":{bytes}}}"#);
            serde_json::from_str::<ProductRequest>(&text).ok().map(|request| request.bytes)
        };
        assert_eq!((read("4654759"), read("4654759.0")), (Some(4_654_759), Some(4_654_759)));
        assert_eq!((read("-1"), read("1.5")), (None, None));
    }

    #[test]
    fn an_output_stays_as_it_is_written() {
        let text = r#"{"token":"t","outputs":[{"itemIdentifier":"j/1","output":{"b":1.10,"a":[ 1e400 ]}}]}"#;
        let report: ReportRequest = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), text);
    }
}
