//! Routes of tasks, and of the workers that process them.

use super::{Answer, Json, Operation, RETRY_AFTER, RequestBody, Route, at_most, query};
use crate::at_work::{TaskPage, WorkerList};
use crate::problem::ProblemCode::{self, ClientOutdated, InvalidQuery, NotFound, TaskGone, UnknownJobType};
use crate::task::{LeaseRequest, ProductRequest, ReleaseRequest, ReportRequest, TaskOrderView, TaskView};
use crate::upload::RequestView;

const ORDER: &[Answer] = &[Answer::of::<TaskOrderView>(200, "What to do next.")];

const HELD: &[(u16, ProblemCode)] = &[(404, NotFound), (410, TaskGone)];

routes! {
    ListTasks = "GET" "/api/jobs/{jobGuid}/tasks" by "job-status" {
        summary: "List the tasks of a job",
        description: "Who works on what: the chunks of an active job that wait for workers outside of the stack, or that those \
                      hold, a page at a time. A page may have fewer tasks than `limit` although more follow: only `next` tells.",
        parameters: &[
            query(
                "limit", "The most tasks of a page: 100 if left out, at most 100.",
                r#"{"type": "integer", "minimum": 1, "maximum": 100}"#,
            ),
            query("after", "The `next` of the page before.", r#"{"type": "string", "pattern": "^[0-9a-f-]{36}(\\.[0-9]{1,10}){3}$"}"#),
        ],
        answers: &[Answer::of::<TaskPage>(200, "A page of tasks.")],
        problems: &[(400, InvalidQuery), (404, NotFound)],
        // Reads up to 202 rows.
        limits: at_most(120, 2400),
    }
    ListWorkers = "GET" "/api/workers" by "work-task" {
        summary: "List workers",
        description: "The workers that have tasks, of all job types that the caller may work on. Looks at 1,000 leased tasks at \
                      most; `complete` says whether these are all.",
        answers: &[Answer::of::<WorkerList>(200, "The workers.")],
        // Reads up to 6,000 rows.
        limits: at_most(30, 600),
    }
    LeaseTask = "POST" "/api/tasks/lease" by "work-task" {
        summary: "Lease a task",
        description: "For workers outside of the stack, on job types that are configured with `workers`. `docs/workers.md` has the \
                      protocol. The items stay the worker's as long as it beats.",
        body: Some(RequestBody { required: true, json: Json::of::<LeaseRequest>(), or_file: false }),
        answers: &[
            Answer::of::<TaskView>(200, "A task."),
            Answer::empty(204, "There is none now. Ask again after `Retry-After`.").with(&[RETRY_AFTER]),
        ],
        problems: &[(403, ClientOutdated), (422, UnknownJobType)],
        // A worker of short tasks leases, beats and finishes one a second.
        limits: at_most(60_000, 3_600_000),
    }
    BeatTask = "POST" "/api/tasks/{taskId}/beat" by "work-task" {
        summary: "Keep a task",
        description: "Before the first item begins, and then at least every `beatSeconds`. May report outcomes of the items that \
                      are done, which then count.",
        body: Some(RequestBody { required: true, json: Json::of::<ReportRequest>(), or_file: false }),
        answers: ORDER,
        problems: HELD,
        limits: at_most(60_000, 3_600_000),
    }
    FinishTask = "POST" "/api/tasks/{taskId}/finish" by "work-task" {
        summary: "Report the outcomes of a task",
        description: "Each outcome counts once, however often the report is repeated.",
        body: Some(RequestBody { required: true, json: Json::of::<ReportRequest>(), or_file: false }),
        answers: ORDER,
        problems: HELD,
        limits: at_most(60_000, 3_600_000),
    }
    StoreProduct = "POST" "/api/tasks/{taskId}/products" by "work-task" {
        summary: "Store a product",
        description: "A file that an item has produced: send its bytes with the answer, and then report an output of the item \
                      that names it.",
        body: Some(RequestBody { required: true, json: Json::of::<ProductRequest>(), or_file: false }),
        answers: &[Answer::of::<RequestView>(200, "The presigned request. The storage answers 412 if the product exists.")],
        problems: HELD,
        limits: at_most(60_000, 3_600_000),
    }
    ReleaseTask = "POST" "/api/tasks/{taskId}/release" by "work-task" {
        summary: "Give a task back",
        description: "Items that were reported stay done. Another worker gets the rest at once.",
        body: Some(RequestBody { required: true, json: Json::of::<ReleaseRequest>(), or_file: false }),
        answers: ORDER,
        problems: HELD,
        limits: at_most(60_000, 3_600_000),
    }
}
