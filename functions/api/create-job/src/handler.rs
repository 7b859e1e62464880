//! From the HTTP request to the use case and back.

use std::time::Duration;

use lambda_http::{Body, Response};
use rowmill_api::job::JobView;
use rowmill_api::problem::ProblemCode;
use rowmill_api::request::{ITEMS_MAX_BYTES, PruneRequest};
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{
    Call, JSON_MAX_BYTES, Problem, header, json_response, no_content, path_parameter, read_json_if_any,
    read_json_up_to, to_be_polled,
};
use rowmill_core::model::ids::JobGuid;

use crate::create::{Accepted, CreateJobError, Creator};
use crate::request::CreateJobRequest;

/// Answers `POST /api/jobs`, `POST /api/jobs/estimate`, `POST /api/jobs/{jobGuid}/undo`, `POST /api/jobs/{jobGuid}/prune`,
/// `DELETE /api/datasets/{dataset}` and `POST /api/uploads/{fileGuid}/preview`.
pub async fn handle(creator: &Creator, call: Call) -> Result<Response<Body>, Problem> {
    match call.operation {
        Operation::CreateJob => create(creator, &call).await,
        Operation::EstimateJob => estimate(creator, &call).await,
        Operation::UndoJob => of_job(creator, creator.undo(call.owner()?, job_of(&call)?).await).await,
        Operation::PruneDataset => {
            let PruneRequest { dry_run } = read_json_if_any(&call.request)?;
            of_job(creator, creator.prune(call.owner()?, job_of(&call)?, dry_run == Some(true)).await).await
        }
        Operation::DeleteDataset => {
            let name: String = path_parameter(&call.request, "dataset")?;
            answer(creator, creator.delete_dataset(call.owner()?, &name).await).await
        }
        Operation::PreviewUpload => preview(creator, &call).await,
        _ => Err(Problem::no_such_route()),
    }
}

async fn create(creator: &Creator, call: &Call) -> Result<Response<Body>, Problem> {
    let (owner, request) = (call.owner()?, &call.request);
    let body: CreateJobRequest = read_json_up_to(request, JSON_MAX_BYTES + ITEMS_MAX_BYTES)?;
    // A key that is not text counts as an empty key, so that it is rejected and not ignored.
    let key = request.headers().contains_key("idempotency-key").then(|| header(request, "idempotency-key"));
    let accepted = creator.accept(owner, &body, key.map(Option::unwrap_or_default)).await;
    answer(creator, accepted).await
}

fn job_of(call: &Call) -> Result<JobGuid, Problem> {
    path_parameter(&call.request, "jobGuid")
}

/// The answer to a request whose path names a job.
async fn of_job(creator: &Creator, accepted: Result<Accepted, CreateJobError>) -> Result<Response<Body>, Problem> {
    if let Err(error @ CreateJobError::JobActive(_)) = accepted {
        // No field of the body names it.
        return Err(Problem::new(ProblemCode::JobActive, error.to_string()));
    }
    answer(creator, accepted).await
}

async fn answer(creator: &Creator, accepted: Result<Accepted, CreateJobError>) -> Result<Response<Body>, Problem> {
    let Accepted { job, is_same } = accepted.map_err(|error| problem(error, creator))?;
    let view = JobView::read(&*creator.jobs, &job, creator.clock.now()).await?;
    let mut response = json_response(if is_same { 200 } else { 202 }, &view);
    if let Ok(location) = format!("/api/jobs/{}", job.job_guid).try_into() {
        response.headers_mut().insert("location", location);
    }
    Ok(if job.is_ended() { response } else { to_be_polled(response) })
}

async fn estimate(creator: &Creator, call: &Call) -> Result<Response<Body>, Problem> {
    let body: CreateJobRequest = read_json_up_to(&call.request, JSON_MAX_BYTES + ITEMS_MAX_BYTES)?;
    let estimate = creator.estimate(call.owner()?, &body).await.map_err(|error| problem(error, creator))?;
    Ok(estimate.map_or_else(no_content, |estimate| json_response(200, &estimate)))
}

async fn preview(creator: &Creator, call: &Call) -> Result<Response<Body>, Problem> {
    let (owner, request) = (call.owner()?, &call.request);
    let file_guid = path_parameter(request, "fileGuid")?;
    let preview = creator.preview(owner, file_guid, &read_json_if_any(request)?).await;
    let preview = preview.map_err(|error| match error {
        // The path names it, not the body.
        CreateJobError::UnknownUpload(_) => Problem::not_found(error.to_string()),
        error => problem(error, creator),
    })?;
    Ok(json_response(200, &preview))
}

/// The problem that the API answers with if no job was created.
pub fn problem(error: CreateJobError, creator: &Creator) -> Problem {
    let detail = error.to_string();
    match error {
        CreateJobError::Field(wrong) => Problem::new(ProblemCode::InvalidRequest, detail).field(wrong.field),
        CreateJobError::Params(wrong) => Problem::new(ProblemCode::InvalidParams, detail).field(wrong.field),
        CreateJobError::UnknownJobType { .. } => Problem::new(ProblemCode::UnknownJobType, detail).field("jobType"),
        CreateJobError::UnknownUpload(_) => Problem::new(ProblemCode::UnknownUpload, detail).field("fileGuid"),
        CreateJobError::UploadIncomplete(_) | CreateJobError::UploadFetching(_) => {
            Problem::new(ProblemCode::UploadIncomplete, detail).field("fileGuid")
        }
        CreateJobError::UnknownJob { field, .. } => Problem::new(ProblemCode::InvalidRequest, detail).field(field),
        CreateJobError::JobActive(_) => Problem::new(ProblemCode::JobActive, detail).field("source"),
        CreateJobError::NoSuchJob(_) | CreateJobError::NoSuchDataset(_) => Problem::not_found(detail),
        CreateJobError::NotPrunable(_) => Problem::new(ProblemCode::NotPrunable, detail),
        CreateJobError::NotUndoable(_) => Problem::new(ProblemCode::NotUndoable, detail),
        CreateJobError::RunsLive(until) => {
            let wait = until.duration_since(creator.clock.now()).as_secs().max(0).unsigned_abs() + 1;
            Problem::new(ProblemCode::JobEnding, detail).retry_after(Duration::from_secs(wait))
        }
        CreateJobError::UploadFailed { .. } => Problem::new(ProblemCode::UploadFailed, detail).field("fileGuid"),
        CreateJobError::UploadSize { .. } => Problem::new(ProblemCode::UploadSizeMismatch, detail).field("fileGuid"),
        CreateJobError::UploadChanged(_) => Problem::new(ProblemCode::UploadChanged, detail).field("fileGuid"),
        CreateJobError::Head(head) => {
            Problem::new(ProblemCode::UnreadableFile, detail).field("fileGuid").reason(head.code())
        }
        CreateJobError::Packing(packing) => {
            Problem::new(ProblemCode::UnreadableFile, detail).field("fileGuid").reason(packing.code())
        }
        CreateJobError::Packed(packed) => {
            Problem::new(ProblemCode::UnreadableFile, detail).field("fileGuid").reason(packed.code())
        }
        CreateJobError::Priority(_) => Problem::new(ProblemCode::PriorityNotAllowed, detail).field("priority"),
        CreateJobError::KeyReused => Problem::new(ProblemCode::IdempotencyKeyReused, detail),
        CreateJobError::Full(full) => Problem::full(&full, creator.clock.now(), creator.limits.retry_after_max),
        CreateJobError::Port(error) => error.into(),
    }
}
