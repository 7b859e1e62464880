//! Routes of jobs.

use rowmill_core::model::why::JobWhy;

use super::{
    Answer, AnswerHeader, ETAG, IF_NONE_MATCH, Json, LOCATION, NOT_MODIFIED, Operation, POLL_AFTER, Parameter,
    RETRY_AFTER, RequestBody, Route, at_most, query,
};
use crate::estimate::EstimateView;
use crate::job::{JobPage, JobView};
use crate::problem::ProblemCode::*;
use crate::request::{CreateJobRequest, PruneRequest, RedriveRequest, RetuneRequest};

routes! {
    CreateJob = "POST" "/api/jobs" by "create-job" {
        summary: "Create a job",
        description: "Starts a job type over an upload, over items in the request, over a dataset, or over nothing. Send an \
                      `Idempotency-Key` to make it safe to repeat the request: a repeated request is answered with the job \
                      that the first one created. With `dedupe`, a request for a job that exists is answered with that job.",
        parameters: &[Parameter {
            name: "Idempotency-Key",
            place: "header",
            required: false,
            description: "A name of the client's own for this request. It is remembered for 24 hours.",
            schema: r#"{"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}"#,
        }],
        body: Some(RequestBody { required: true, json: Json::of::<CreateJobRequest>(), or_file: false }),
        answers: &[
            Answer::of::<JobView>(200, "The job exists: `dedupe` found it, and nothing was created.")
                .with(&[LOCATION, POLL_AFTER]),
            Answer::of::<JobView>(202, "The job is accepted.").with(&[LOCATION, POLL_AFTER]),
        ],
        problems: &[
            (403, PriorityNotAllowed), (404, NotFound), (409, UploadIncomplete), (409, Changed), (422, InvalidParams),
            (422, UnknownJobType), (422, UnknownUpload), (422, UploadFailed), (422, UploadSizeMismatch),
            (422, UploadChanged), (422, UnreadableFile), (422, IdempotencyKeyReused), (429, OwnerFull), (503, JobTypeFull), (503, SystemFull),
        ],
    }
    EstimateJob = "POST" "/api/jobs/estimate" by "create-job" {
        summary: "Estimate what a job costs",
        description: "Says what a job of this request would cost and how long it would take at least. Reads the beginning of its \
                      file, and creates nothing. It takes no slot, so limits of active jobs do not matter. Without `fileGuid`, for a \
                      type that reads a file: checks the rest of the request before the file is uploaded.",
        body: Some(RequestBody { required: true, json: Json::of::<CreateJobRequest>(), or_file: false }),
        answers: &[
            Answer::of::<EstimateView>(200, "The estimate."),
            Answer::empty(204, "Nothing is wrong as far as it can be checked without the file."),
        ],
        problems: &[
            (403, PriorityNotAllowed), (404, NotFound), (409, UploadIncomplete), (409, Changed), (422, InvalidParams),
            (422, UnknownJobType), (422, UnknownUpload), (422, UploadFailed), (422, UploadSizeMismatch),
            (422, UploadChanged), (422, UnreadableFile),
        ],
    }
    ListJobs = "GET" "/api/jobs" by "job-status" {
        summary: "List jobs",
        description: "The caller's jobs, newest first, a page at a time. An empty parameter counts as left out.",
        parameters: &[
            query("status", "Only jobs of this status.", r##"{"$ref": "#/components/schemas/Status"}"##),
            query(
                "outcome", "Only jobs that completed with this outcome. Jobs of other statuses have none.",
                r##"{"$ref": "#/components/schemas/JobOutcome"}"##,
            ),
            query("jobType", "Only jobs of this type.", r#"{"type": "string"}"#),
            query(
                "limit", "The most jobs of a page: 20 if left out, at most 100.",
                r#"{"type": "integer", "minimum": 1, "maximum": 100}"#,
            ),
            query("after", "The `next` of the page before.", r##"{"$ref": "#/components/schemas/JobGuid"}"##),
        ],
        answers: &[Answer::of::<JobPage>(200, "A page of jobs.")],
        problems: &[(400, InvalidQuery)],
    }
    ShowJob = "GET" "/api/jobs/{jobGuid}" by "job-status" {
        summary: "Show a job",
        description: "To follow a job, ask again after `Retry-After` seconds.",
        parameters: &[IF_NONE_MATCH],
        answers: &[
            Answer::of::<JobView>(200, "The job.").with(&[ETAG, POLL_AFTER]),
            Answer { headers: &[ETAG, POLL_AFTER], ..NOT_MODIFIED },
        ],
        problems: &[(404, NotFound)],
    }
    ExplainJob = "GET" "/api/jobs/{jobGuid}/why" by "job-status" {
        summary: "Tell why a job is not done yet",
        description: "What holds the job up now, the most important first: its phase, other jobs before it, its limits, the \
                      breaker of its type, chunks that take long. If nothing does, the one reason is `running`, with a rate.",
        answers: &[Answer::of::<JobWhy>(200, "The reasons.")],
        problems: &[(404, NotFound)],
        // Reads up to about 80 rows.
        limits: at_most(120, 2400),
    }
    RetuneJob = "PATCH" "/api/jobs/{jobGuid}" by "cancel-job" {
        summary: "Change limits of an active job",
        description: "Changes any of `maxConcurrency`, `tolerance`, `deadlineSeconds` and `priority`, under the rules of a new \
                      job. They hold for what is not sent yet, and for every later look at deadline and failed rows. The same \
                      values again change nothing.",
        body: Some(RequestBody { required: true, json: Json::of::<RetuneRequest>(), or_file: false }),
        answers: &[Answer::of::<JobView>(200, "The job has these limits.").with(&[POLL_AFTER])],
        problems: &[
            (400, InvalidRequest), (403, PriorityNotAllowed), (404, NotFound), (409, JobEnded), (409, JobEnding),
            (409, JobTooOld),
        ],
    }
    DeleteJob = "DELETE" "/api/jobs/{jobGuid}" by "cancel-job" {
        summary: "Delete an ended job",
        description: "From then on there is no such job: its results, failed rows and settings cannot be read any more. What is \
                      stored of it is erased after `StaleSeconds` (a quarter of an hour), when no function can be at work on it. \
                      Its upload, its records and copies of its results in other buckets stay.",
        answers: &[Answer::empty(204, "The job is deleted.")],
        problems: &[(404, NotFound), (409, JobActive)],
    }
    CancelJob = "POST" "/api/jobs/{jobGuid}/cancel" by "cancel-job" {
        summary: "Cancel a job",
        description: "Running work ends, queued work is skipped. Cancelling a job again changes nothing.",
        answers: &[Answer::of::<JobView>(202, "The job is being cancelled, or is cancelled.").with(&[POLL_AFTER])],
        problems: &[(404, NotFound), (409, JobEnded)],
    }
    PauseJob = "POST" "/api/jobs/{jobGuid}/pause" by "cancel-job" {
        summary: "Pause a job",
        description: "Running chunks end and count. No other chunk begins until the job is resumed. A paused job keeps its \
                      deadline and its place among the active jobs of its owner. After `StopGraceSeconds` it gives its places \
                      in the limits of its job type and of the system to others. Pausing a job again changes nothing.",
        answers: &[Answer::of::<JobView>(202, "The job is paused.").with(&[POLL_AFTER])],
        problems: &[(404, NotFound), (409, JobEnded), (409, JobEnding)],
    }
    ResumeJob = "POST" "/api/jobs/{jobGuid}/resume" by "cancel-job" {
        summary: "Resume a paused job",
        description: "Sends what the job still has to do. Resuming a job that is not paused changes nothing.",
        answers: &[Answer::of::<JobView>(202, "The job is not paused any more.").with(&[POLL_AFTER])],
        problems: &[(404, NotFound), (409, JobEnded), (409, JobEnding)],
    }
    RedriveJob = "POST" "/api/jobs/{jobGuid}/redrive" by "redrive-job" {
        summary: "Process the failed items of an ended job again",
        description: "Starts the next attempt over exactly the failed items. A corrected file replaces the rows it \
                      holds.",
        body: Some(RequestBody { required: false, json: Json::of::<RedriveRequest>(), or_file: false }),
        answers: &[
            Answer::of::<JobView>(202, "The next attempt is started.")
                .with(&[AnswerHeader { description: "Seconds after which to look again.", ..RETRY_AFTER }]),
        ],
        problems: &[
            (404, NotFound), (409, JobActive), (409, NothingToRedrive), (409, JobUndone), (409, JobTooOld), (409, Changed),
            (422, UnknownUpload), (422, UploadChanged), (422, InvalidCorrectedFile), (422, RowsNotFailed),
            (429, OwnerFull), (503, JobTypeFull), (503, SystemFull),
        ],
    }
    PruneDataset = "POST" "/api/jobs/{jobGuid}/prune" by "create-job" {
        summary: "Remove the records that an import has not got",
        description: "Creates a job that removes the records which were written before an import and are not in its file, so \
                      that its dataset has what the file has. All rows of the import must have succeeded. What a later \
                      job has written stays. The job can be undone.",
        body: Some(RequestBody { required: false, json: Json::of::<PruneRequest>(), or_file: false }),
        answers: &[Answer::of::<JobView>(202, "The job is accepted.").with(&[LOCATION, POLL_AFTER])],
        problems: &[
            (404, NotFound), (409, JobActive), (409, NotPrunable), (429, OwnerFull), (503, JobTypeFull), (503, SystemFull),
        ],
    }
    UndoJob = "POST" "/api/jobs/{jobGuid}/undo" by "create-job" {
        summary: "Undo a job",
        description: "Creates a job that reverses what an ended import has written to its dataset, or what an undo has \
                      reversed. A record that another job has written since is kept, and listed with that job. A repeated \
                      request is answered with the undo that the first one created, unless that one has left items.",
        answers: &[
            Answer::of::<JobView>(200, "The undo that exists.").with(&[LOCATION, POLL_AFTER]),
            Answer::of::<JobView>(202, "The undo is accepted.").with(&[LOCATION, POLL_AFTER]),
        ],
        problems: &[
            (404, NotFound), (409, JobActive), (409, JobEnding), (409, NotUndoable), (409, Changed), (429, OwnerFull),
            (503, JobTypeFull), (503, SystemFull),
        ],
    }
}
