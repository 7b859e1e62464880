//! From the HTTP request to the use case and back.

use lambda_http::{Body, Response};
use rowmill_api::job::JobView;
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{Call, Problem, json_response, path_parameter, read_json_if_any, to_be_polled};

use crate::redrive::{RedriveJobError, Redriver};

/// Answers `POST /api/jobs/{jobGuid}/redrive`.
pub async fn handle(redriver: &Redriver, call: Call) -> Result<Response<Body>, Problem> {
    match call.operation {
        Operation::RedriveJob => redrive(redriver, &call).await,
        _ => Err(Problem::no_such_route()),
    }
}

async fn redrive(redriver: &Redriver, call: &Call) -> Result<Response<Body>, Problem> {
    let (owner, request) = (call.owner()?, &call.request);
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = redriver
        .redrive(owner, job_guid, &read_json_if_any(request)?)
        .await
        .map_err(|error| problem(error, redriver))?;
    // The attempt has started already, so a failed read of its counters must not fail the request.
    let view = JobView::read(&*redriver.jobs, &job, redriver.clock.now()).await;
    let view = view.unwrap_or_else(|_| JobView::of(&job, None));
    Ok(to_be_polled(json_response(202, &view)))
}

fn problem(error: RedriveJobError, redriver: &Redriver) -> Problem {
    let detail = error.to_string();
    match error {
        RedriveJobError::UnknownJob(_) => Problem::not_found(detail),
        RedriveJobError::Active => Problem::new(ProblemCode::JobActive, detail),
        RedriveJobError::NothingFailed => Problem::new(ProblemCode::NothingToRedrive, detail),
        RedriveJobError::Undone(_) => Problem::new(ProblemCode::JobUndone, detail),
        RedriveJobError::TooOld(_) => Problem::new(ProblemCode::JobTooOld, detail),
        RedriveJobError::Deadline(_) => Problem::new(ProblemCode::InvalidRequest, detail).field("deadlineSeconds"),
        RedriveJobError::Selection(_) => Problem::new(ProblemCode::InvalidRequest, detail).field("select"),
        RedriveJobError::UnknownUpload(_) => Problem::new(ProblemCode::UnknownUpload, detail).field("fileGuid"),
        RedriveJobError::UploadChanged(_) => Problem::new(ProblemCode::UploadChanged, detail).field("fileGuid"),
        RedriveJobError::TooBig { .. } | RedriveJobError::Corrected(_) => {
            Problem::new(ProblemCode::InvalidCorrectedFile, detail).field("fileGuid")
        }
        RedriveJobError::NotFailed(_) => Problem::new(ProblemCode::RowsNotFailed, detail).field("fileGuid"),
        RedriveJobError::Full(full) => Problem::full(&full, redriver.clock.now(), redriver.limits.retry_after_max),
        RedriveJobError::Port(error) => error.into(),
    }
}
