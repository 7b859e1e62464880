//! Items of a job by outcome.

use rowmill_core::model::files::{FileCounts, FileRow};
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::words::words;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An item that was dispatched and not processed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkippedItem {
    /// Its 1-based row number in the file; the header is not counted.
    #[schema(minimum = 1)]
    pub row: u64,
    /// Its place in its file, in a job over many files. Then `row` is its number in the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<FileRow>,
    /// Always `skipped`.
    pub code: String,
    /// Why it was skipped, for a person.
    pub message: String,
}

impl SkippedItem {
    /// The skipped item of this row, which has this place in its file.
    pub fn of(row: u64, file: Option<FileRow>) -> Self {
        let message = "not processed because the job was stopped".to_owned();
        Self { row, file, code: "skipped".to_owned(), message }
    }
}

/// A page of the files of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FilePage {
    /// The files of this page, in their order.
    pub files: Vec<FileCounts>,
    /// Where the next page begins: send it as `after`. Null if there are no more files.
    pub next: Option<String>,
}

/// A page of failed items, in row order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct FailedItemPage {
    /// The items of this page.
    pub items: Vec<FailedItem>,
    /// Where the next page begins: send it as `after`. Null if there are no more items so far.
    pub next: Option<String>,
    /// How to read the text of the items, and how to write them into a corrected file. Null for a job over a dataset.
    #[serde(default)]
    pub table: Option<ItemTable>,
}

/// The form of a job's items.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemTable {
    /// `csv` or `jsonl`, or `text` for a job over many files: each row is in the format of its file. Workbooks are read as
    /// CSV, Parquet files as JSON lines.
    pub format: String,
    /// The character between two cells of CSV; otherwise null.
    pub delimiter: Option<String>,
    /// The names of the columns, in the order of the cells; `column` of an item is one of them. Empty for JSON lines.
    pub columns: Vec<String>,
    /// The header of a corrected file: the columns as the file names them, then that of the row number. Empty for JSON
    /// lines.
    pub corrected_header: Vec<String>,
}

/// A page of succeeded items, in row order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SucceededItemPage {
    /// The items of this page.
    pub items: Vec<SucceededItem>,
    /// Where the next page begins: send it as `after`. Null if there are no more items so far.
    pub next: Option<String>,
}

/// An item that succeeded and has an output.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SucceededItem {
    /// Its 1-based row number; the header is not counted. In a job over many files, its number in the job.
    #[schema(minimum = 1)]
    pub row: u64,
    /// Always `succeeded`.
    pub code: String,
    /// How it ended, for a person.
    pub message: String,
    /// Its part of the output file, without a line end. Null if it is too long for a page.
    pub output: Option<String>,
}

impl SucceededItem {
    /// The item of this row with this output.
    pub fn of(row: u64, output: String) -> Self {
        Self { row, code: "succeeded".to_owned(), message: "processed".to_owned(), output: Some(output) }
    }
}

words! {
    /// The items that are listed.
    ItemsOutcome {
        /// Those that failed.
        Failed = "failed",
        /// Those that were dispatched, and not processed because the job was stopped.
        Skipped = "skipped",
        /// Those that succeeded and have an output.
        Succeeded = "succeeded",
    }
}

/// A page of skipped items, in row order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SkippedItemPage {
    /// The items of this page.
    pub items: Vec<SkippedItem>,
    /// Where the next page begins: send it as `after`. Null if there are no more items so far.
    pub next: Option<String>,
}
