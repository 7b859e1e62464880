//! Routes of what has come of a job.

use rowmill_core::model::audit::AuditProof;

use super::{Answer, Json, Operation, Parameter, Route, at_most, query};
use crate::dead_letter::DeadLetterList;
use crate::item::{FailedItemPage, FilePage, SkippedItemPage, SucceededItemPage};
use crate::problem::ProblemCode::*;
use crate::request::CreateJobRequest;
use crate::results::ResultsView;
use crate::upload::RequestView;

routes! {
    ListItems = "GET" "/api/jobs/{jobGuid}/items" by "job-status" {
        summary: "List items by outcome",
        description: "In row order, a page at a time. A page may have fewer items than `limit` although more follow: \
                      only `next` tells. Succeeded items are listed if they have outputs.",
        parameters: &[
            Parameter {
                required: true,
                ..query("outcome", "Which items to list.", r#"{"type": "string", "enum": ["failed", "skipped", "succeeded"]}"#)
            },
            query(
                "limit", "The most items of a page: 100 if left out, at most 1,000.",
                r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#,
            ),
            query("after", "The `next` of the page before.", r#"{"type": "string", "pattern": "^[0-9]{1,18}$"}"#),
            query("code", "Only failed items with this code.", r#"{"type": "string"}"#),
            query("column", "Only those of which this column is wrong. Empty: those that name no column.", r#"{"type": "string"}"#),
            query("rule", "Only those that break this rule of the schema. Empty: those that break none.", r#"{"type": "string"}"#),
        ],
        answers: &[
            Answer {
                json: &[Json::of::<FailedItemPage>(), Json::of::<SkippedItemPage>(), Json::of::<SucceededItemPage>()],
                ..Answer::empty(200, "A page of items.")
            },
        ],
        problems: &[(400, InvalidQuery), (404, NotFound), (404, NoResults)],
        // A page reads up to 200 objects.
        limits: at_most(120, 2400),
    }
    ListFiles = "GET" "/api/jobs/{jobGuid}/files" by "job-status" {
        summary: "List the files of a job over many",
        description: "In their order, each with its rows by outcome as they are now, a page at a time. A page may have fewer \
                      files than `limit` although more follow: only `next` tells. A job over one file has no list.",
        parameters: &[
            query(
                "limit", "The most files of a page: 100 if left out, at most 1,000.",
                r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#,
            ),
            query("after", "The `next` of the page before.", r#"{"type": "string", "pattern": "^[0-9]{1,15}(-[0-9]{1,15}){6}$"}"#),
        ],
        answers: &[Answer::of::<FilePage>(200, "A page of files.")],
        problems: &[(400, InvalidQuery), (404, NotFound)],
        // A page reads about 200 objects.
        limits: at_most(120, 2400),
    }
    ShowResults = "GET" "/api/jobs/{jobGuid}/results" by "job-status" {
        summary: "Show the results of an ended job",
        description: "The result files with links that work for an hour by default.",
        answers: &[Answer::of::<ResultsView>(200, "The results.")],
        problems: &[(404, NotFound), (404, NoResults), (409, JobActive)],
        // Signs links: little work.
        limits: at_most(300, 6000),
    }
    ShowProduct = "GET" "/api/jobs/{jobGuid}/products/{product}" by "job-status" {
        summary: "Link to a product",
        description: "A file that a worker stored beside an output. The output names the path in its field `products`.",
        answers: &[Answer::of::<RequestView>(200, "The request that reads it.")],
        problems: &[(404, NotFound)],
        // One look and a signature.
        limits: at_most(600, 12_000),
    }
    ShowRequest = "GET" "/api/jobs/{jobGuid}/request" by "job-status" {
        summary: "Show the request that would create a job again",
        description: "The body of a `POST /api/jobs` for a job that does the same with the same input. It leaves out `after` and \
                      `dedupe`.",
        parameters: &[query(
            "dryRun", "`true` or `false`: with the param `dryRun`, or without it. Left out: as the job had it.",
            r#"{"type": "boolean"}"#,
        )],
        answers: &[Answer::of::<CreateJobRequest>(200, "The request.")],
        problems: &[(400, InvalidQuery), (404, NotFound)],
        // Reads the items that came with the request: up to 1 MiB.
        limits: at_most(120, 2400),
    }
    ListDeadLetters = "GET" "/api/jobs/{jobGuid}/dead-letters" by "job-status" {
        summary: "List the dead letters of a job",
        description: "The messages of the job that a queue gave up on.",
        answers: &[Answer::of::<DeadLetterList>(200, "The dead letters.")],
        problems: &[(404, NotFound)],
        // Reads up to 1,000 rows.
        limits: at_most(120, 2400),
    }
    AuditJob = "GET" "/api/jobs/{jobGuid}/audit" by "job-status" {
        summary: "Audit a job",
        description: "Recomputes the counts of the job from its tallies, chunk indexes and run outputs, and names the first \
                      thing that does not hold. A large job takes several requests: ask again with `next` while the verdict \
                      is `continues`.",
        parameters: &[query(
            "after", "The `next` of the answer before.",
            r#"{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,1024}$"}"#,
        )],
        answers: &[Answer::of::<AuditProof>(200, "The proof, or what was found instead.")],
        problems: &[(400, InvalidQuery), (404, NotFound), (409, Changed)],
        // A page takes up to 10 seconds, so a caller has 10 of them at once at most, on average.
        limits: at_most(60, 1200),
    }
}
