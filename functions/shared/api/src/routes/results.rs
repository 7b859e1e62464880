//! Routes of what has come of a job.

use super::{Answer, Json, Operation, Parameter, Route};
use crate::audit::AuditView;
use crate::dead_letter::DeadLetterList;
use crate::item::{FailedItemPage, SkippedItemPage};
use crate::problem::ProblemCode::*;
use crate::results::ResultsView;

routes!(
    Route {
        operation: ListItems,
        method: "GET",
        path: "/api/jobs/{jobGuid}/items",
        function: "job-status",
        summary: "List failed or skipped items",
        description: "In row order, a page at a time. A page may have fewer items than `limit` although more follow: \
                      only `next` tells.",
        parameters: &[
            Parameter {
                name: "outcome",
                place: "query",
                required: true,
                description: "Which items to list.",
                schema: r#"{"type": "string", "enum": ["failed", "skipped"]}"#,
            },
            Parameter {
                name: "limit",
                place: "query",
                required: false,
                description: "The most items of a page: 100 if left out, at most 1,000.",
                schema: r#"{"type": "integer", "minimum": 1, "maximum": 1000}"#,
            },
            Parameter {
                name: "after",
                place: "query",
                required: false,
                description: "The `next` of the page before.",
                schema: r#"{"type": "integer", "format": "int64", "minimum": 0}"#,
            },
        ],
        body: None,
        answers: &[Answer {
            status: 200,
            description: "A page of items.",
            json: &[Json::of::<FailedItemPage>(), Json::of::<SkippedItemPage>()],
            headers: &[],
        }],
        problems: &[(400, InvalidQuery), (404, NotFound)],
        guarded: true,
    },
    Route {
        operation: ShowResults,
        method: "GET",
        path: "/api/jobs/{jobGuid}/results",
        function: "job-status",
        summary: "Show the results of an ended job",
        description: "The result files with links that work for an hour by default.",
        parameters: &[],
        body: None,
        answers: &[Answer {
            status: 200,
            description: "The results.",
            json: &[Json::of::<ResultsView>()],
            headers: &[],
        }],
        problems: &[(404, NotFound), (404, NoResults), (409, JobActive)],
        guarded: true,
    },
    Route {
        operation: ListDeadLetters,
        method: "GET",
        path: "/api/jobs/{jobGuid}/dead-letters",
        function: "job-status",
        summary: "List the dead letters of a job",
        description: "The messages of the job that a queue gave up on.",
        parameters: &[],
        body: None,
        answers: &[Answer {
            status: 200,
            description: "The dead letters.",
            json: &[Json::of::<DeadLetterList>()],
            headers: &[],
        }],
        problems: &[(404, NotFound)],
        guarded: true,
    },
    Route {
        operation: AuditJob,
        method: "GET",
        path: "/api/jobs/{jobGuid}/audit",
        function: "job-status",
        summary: "Audit a job",
        description: "Recomputes the counts of the job from its tallies, chunk indexes and run outputs, and names the first \
                      thing that does not hold. A large job takes several requests: ask again with `next` while the verdict \
                      is `continues`.",
        parameters: &[Parameter {
            name: "after",
            place: "query",
            required: false,
            description: "The `next` of the answer before.",
            schema: r#"{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,1024}$"}"#,
        }],
        body: None,
        answers: &[Answer {
            status: 200,
            description: "The proof, or what was found instead.",
            json: &[Json::of::<AuditView>()],
            headers: &[],
        }],
        problems: &[(400, InvalidQuery), (404, NotFound), (409, Changed)],
        guarded: true,
    },
);
