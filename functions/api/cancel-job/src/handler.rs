//! From the HTTP request to the use case and back.

use lambda_http::{Body, Response};
use rowmill_api::job::JobView;
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{Call, Problem, json_response, path_parameter, to_be_polled};
use rowmill_core::model::job::Job;
use rowmill_core::ports::JobStore;

use crate::cancel::{CancelError, Canceller};
use crate::pause::{PauseError, Pauser};

pub struct UseCases {
    pub canceller: Canceller,
    pub pauser: Pauser,
}

/// Answers `POST /api/jobs/{jobGuid}/cancel`, `…/pause` and `…/resume`.
pub async fn handle(use_cases: &UseCases, call: Call) -> Result<Response<Body>, Problem> {
    let UseCases { canceller, pauser } = use_cases;
    let (owner, job_guid) = (call.owner()?, path_parameter(&call.request, "jobGuid")?);
    let job = match call.operation {
        Operation::CancelJob => canceller.cancel(owner, job_guid).await.map_err(not_cancelled)?,
        Operation::PauseJob => pauser.pause(owner, job_guid).await.map_err(not_paused)?,
        Operation::ResumeJob => pauser.resume(owner, job_guid).await.map_err(not_paused)?,
        _ => return Err(Problem::no_such_route()),
    };
    Ok(accepted(&*canceller.jobs, &job).await)
}

async fn accepted(jobs: &dyn JobStore, job: &Job) -> Response<Body> {
    // The job is changed already, so a failed read of its counters must not fail the request.
    let view = JobView::read(jobs, job).await.unwrap_or_else(|_| JobView::of(job, None));
    let response = json_response(202, &view);
    if job.is_ended() { response } else { to_be_polled(response) }
}

fn not_cancelled(error: CancelError) -> Problem {
    let detail = error.to_string();
    match error {
        CancelError::Unknown(_) => Problem::not_found(detail),
        CancelError::Ended(status) => Problem::new(ProblemCode::JobEnded, detail).job_status(status),
        CancelError::Port(error) => error.into(),
    }
}

fn not_paused(error: PauseError) -> Problem {
    let detail = error.to_string();
    match error {
        PauseError::Unknown(_) => Problem::not_found(detail),
        PauseError::Ended(status) => Problem::new(ProblemCode::JobEnded, detail).job_status(status),
        PauseError::Stopping(status) | PauseError::Completing(status) => {
            Problem::new(ProblemCode::JobEnding, detail).job_status(status)
        }
        PauseError::Port(error) => error.into(),
    }
}
