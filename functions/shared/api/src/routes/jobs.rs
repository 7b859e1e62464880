use super::{
    Answer, AnswerHeader, ETAG, IF_NONE_MATCH, NOT_MODIFIED, Operation, POLL_AFTER, Parameter, RETRY_AFTER,
    RequestBody, Route,
};
use crate::problem::ProblemCode::*;

pub(super) static CREATE: Route = Route {
    operation: Operation::CreateJob,
    method: "POST",
    path: "/api/jobs",
    function: "create-job",
    summary: "Create a job",
    description: "Starts a job type over an upload, or over a dataset. Send an `Idempotency-Key` to make it safe to repeat \
                  the request: a repeated request is answered with the job that the first one created.",
    parameters: &[Parameter {
        name: "Idempotency-Key",
        place: "header",
        required: false,
        description: "A name of the client's own for this request. It is remembered for 24 hours.",
        schema: r#"{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}"#,
    }],
    body: Some(RequestBody { required: true, json: "CreateJobRequest", files: &[] }),
    answers: &[Answer {
        status: 202,
        description: "The job is accepted.",
        json: &["JobView"],
        headers: &[
            AnswerHeader {
                name: "Location",
                required: true,
                description: "The path of the job.",
                schema: r#"{"type": "string", "pattern": "^/api/jobs/[0-9a-f-]{36}$"}"#,
            },
            POLL_AFTER,
        ],
    }],
    problems: &[
        (400, InvalidJson),
        (400, InvalidBody),
        (404, NotFound),
        (409, UploadIncomplete),
        (409, Changed),
        (413, BodyTooLarge),
        (415, UnsupportedMediaType),
        (422, InvalidRequest),
        (422, InvalidParams),
        (422, UnknownJobType),
        (422, UnknownUpload),
        (422, UploadSizeMismatch),
        (422, UploadChanged),
        (422, UnreadableFile),
        (422, IdempotencyKeyReused),
        (429, OwnerFull),
        (503, JobTypeFull),
        (503, SystemFull),
    ],
    guarded: true,
};

pub(super) static LIST: Route = Route {
    operation: Operation::ListJobs,
    method: "GET",
    path: "/api/jobs",
    function: "job-status",
    summary: "List jobs",
    description: "The caller's jobs, newest first, a page at a time. An empty parameter counts as left out.",
    parameters: &[
        Parameter {
            name: "status",
            place: "query",
            required: false,
            description: "Only jobs of this status.",
            schema: r##"{"$ref": "#/components/schemas/Status"}"##,
        },
        Parameter {
            name: "jobType",
            place: "query",
            required: false,
            description: "Only jobs of this type.",
            schema: r#"{"type": "string"}"#,
        },
        Parameter {
            name: "limit",
            place: "query",
            required: false,
            description: "The most jobs of a page: 20 if left out, at most 100.",
            schema: r#"{"type": "integer", "minimum": 1, "maximum": 100}"#,
        },
        Parameter {
            name: "after",
            place: "query",
            required: false,
            description: "The `next` of the page before.",
            schema: r##"{"$ref": "#/components/schemas/JobGuid"}"##,
        },
    ],
    body: None,
    answers: &[Answer { status: 200, description: "A page of jobs.", json: &["JobPage"], headers: &[] }],
    problems: &[(400, InvalidQuery)],
    guarded: true,
};

pub(super) static SHOW: Route = Route {
    operation: Operation::ShowJob,
    method: "GET",
    path: "/api/jobs/{jobGuid}",
    function: "job-status",
    summary: "Show a job",
    description: "To follow a job, ask again after `Retry-After` seconds.",
    parameters: &[IF_NONE_MATCH],
    body: None,
    answers: &[
        Answer { status: 200, description: "The job.", json: &["JobView"], headers: &[ETAG, POLL_AFTER] },
        Answer { headers: &[ETAG, POLL_AFTER], ..NOT_MODIFIED },
    ],
    problems: &[(404, NotFound)],
    guarded: true,
};

pub(super) static ITEMS: Route = Route {
    operation: Operation::ListItems,
    method: "GET",
    path: "/api/jobs/{jobGuid}/items",
    function: "job-status",
    summary: "List failed or skipped items",
    description: "In row order, a page at a time. A page may have fewer items than `limit` although more follow: only \
                  `next` tells.",
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
        json: &["FailedItemPage", "SkippedItemPage"],
        headers: &[],
    }],
    problems: &[(400, InvalidQuery), (404, NotFound)],
    guarded: true,
};

pub(super) static RESULTS: Route = Route {
    operation: Operation::ShowResults,
    method: "GET",
    path: "/api/jobs/{jobGuid}/results",
    function: "job-status",
    summary: "Show the results of an ended job",
    description: "The result files with links that work for an hour by default.",
    parameters: &[],
    body: None,
    answers: &[Answer { status: 200, description: "The results.", json: &["ResultsView"], headers: &[] }],
    problems: &[(404, NotFound), (404, NoResults), (409, JobActive)],
    guarded: true,
};

pub(super) static DEAD_LETTERS: Route = Route {
    operation: Operation::ListDeadLetters,
    method: "GET",
    path: "/api/jobs/{jobGuid}/dead-letters",
    function: "job-status",
    summary: "List the dead letters of a job",
    description: "The messages of the job that a queue gave up on.",
    parameters: &[],
    body: None,
    answers: &[Answer { status: 200, description: "The dead letters.", json: &["DeadLetterList"], headers: &[] }],
    problems: &[(404, NotFound)],
    guarded: true,
};

pub(super) static CANCEL: Route = Route {
    operation: Operation::CancelJob,
    method: "POST",
    path: "/api/jobs/{jobGuid}/cancel",
    function: "cancel-job",
    summary: "Cancel a job",
    description: "Running work ends, queued work is skipped. Cancelling a job again changes nothing.",
    parameters: &[],
    body: None,
    answers: &[Answer {
        status: 202,
        description: "The job is being cancelled, or is cancelled.",
        json: &["JobView"],
        headers: &[POLL_AFTER],
    }],
    problems: &[(404, NotFound), (409, JobEnded)],
    guarded: true,
};

pub(super) static REDRIVE: Route = Route {
    operation: Operation::RedriveJob,
    method: "POST",
    path: "/api/jobs/{jobGuid}/redrive",
    function: "redrive-job",
    summary: "Process the failed items of an ended job again",
    description: "Starts the next attempt over exactly the failed items. A corrected file replaces the rows it holds.",
    parameters: &[],
    body: Some(RequestBody { required: false, json: "RedriveRequest", files: &[] }),
    answers: &[Answer {
        status: 202,
        description: "The next attempt is started.",
        json: &["JobView"],
        headers: &[AnswerHeader { description: "Seconds after which to look again.", ..RETRY_AFTER }],
    }],
    problems: &[
        (400, InvalidJson),
        (400, InvalidBody),
        (404, NotFound),
        (409, JobActive),
        (409, NothingToRedrive),
        (409, Changed),
        (413, BodyTooLarge),
        (415, UnsupportedMediaType),
        (422, InvalidRequest),
        (422, UnknownUpload),
        (422, InvalidCorrectedFile),
        (422, RowsNotFailed),
        (429, OwnerFull),
        (503, JobTypeFull),
        (503, SystemFull),
    ],
    guarded: true,
};

pub(super) static DOCUMENT: Route = Route {
    operation: Operation::ShowDocument,
    method: "GET",
    path: "/api/openapi.json",
    function: "job-status",
    summary: "Show this document",
    description: "The OpenAPI document of this version. It may be cached for an hour.",
    parameters: &[IF_NONE_MATCH],
    body: None,
    answers: &[
        Answer {
            status: 200,
            description: "The OpenAPI document.",
            json: &["OpenApiDocument"],
            headers: &[ETAG, CACHE_CONTROL],
        },
        Answer { headers: &[ETAG, CACHE_CONTROL], ..NOT_MODIFIED },
    ],
    problems: &[],
    guarded: false,
};

const CACHE_CONTROL: AnswerHeader = AnswerHeader {
    name: "Cache-Control",
    required: true,
    description: "How long the answer may be kept.",
    schema: r#"{"type": "string"}"#,
};
