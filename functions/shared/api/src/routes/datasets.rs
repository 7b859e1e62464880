//! Routes of datasets.

use super::{Answer, LOCATION, Operation, POLL_AFTER, Route, at_most, query};
use crate::dataset::{DatasetList, RecordList};
use crate::job::JobView;
use crate::problem::ProblemCode::*;

routes! {
    ListDatasets = "GET" "/api/datasets" by "browse-datasets" {
        summary: "List datasets",
        description: "Those that `import` has written to, in the order of their names, a page at a time.",
        parameters: &[
            query(
                "limit", "The most datasets of a page: 100 if left out, at most 1,000.",
                r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#,
            ),
            // The name of a dataset, which is neither `.` nor `..`.
            query(
                "after", "The `next` of the page before.",
                r#"{"type": "string", "maxLength": 128, "pattern": "^(\\.{3,}|[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*)$"}"#,
            ),
        ],
        answers: &[Answer::of::<DatasetList>(200, "A page of datasets.")],
        problems: &[(400, InvalidQuery)],
        // One query.
        limits: at_most(300, 6000),
    }
    DeleteDataset = "DELETE" "/api/datasets/{dataset}" by "create-job" {
        summary: "Delete a dataset",
        description: "Creates a job that deletes the records of a dataset, with all that they hold of before. What a job writes \
                      that is created later stays, and so may what an earlier one writes that still runs. The dataset is taken \
                      off the list.",
        answers: &[Answer::of::<JobView>(202, "The deletion is accepted.").with(&[LOCATION, POLL_AFTER])],
        problems: &[(404, NotFound), (429, OwnerFull), (503, JobTypeFull), (503, SystemFull)],
    }
    ListRecords = "GET" "/api/datasets/{dataset}/records" by "browse-datasets" {
        summary: "List records of a dataset",
        description: "As they are now, in no order across the dataset, a page at a time. A page may have fewer records than \
                      `limit` although more follow: only `next` tells. With `key` it has that one record, or none.",
        parameters: &[
            query(
                "limit", "The most records of a page: 100 if left out, at most 1,000.",
                r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#,
            ),
            query("after", "The `next` of the page before.", r#"{"type": "string", "pattern": "^[0-9]{1,4}(\\.[\\s\\S]{1,1024})?$"}"#),
            query("prefix", "Only records whose keys begin with this text.", r#"{"type": "string"}"#),
            query("key", "Only the record with this key.", r#"{"type": "string"}"#),
        ],
        answers: &[Answer::of::<RecordList>(200, "A page of records.")],
        problems: &[(400, InvalidQuery), (404, NotFound)],
        // A page makes up to 256 queries, and reads about twice as much as it shows.
        limits: at_most(120, 2400),
    }
}
