//! From the HTTP request to the use case and back.

use lambda_http::{Body, Response};
use rowmill_api::job::JobView;
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{Call, Problem, json_response, no_content, path_parameter, read_json, to_be_polled};
use rowmill_core::model::job::Job;

use crate::change::Changer;
use crate::error::ChangeError;

/// Answers `PATCH` and `DELETE /api/jobs/{jobGuid}`, and `POST /api/jobs/{jobGuid}/cancel`, `…/pause` and `…/resume`.
pub async fn handle(changer: &Changer, call: Call) -> Result<Response<Body>, Problem> {
    let (owner, job_guid) = (call.owner()?, path_parameter(&call.request, "jobGuid")?);
    let job = match call.operation {
        Operation::RetuneJob => {
            let limits = read_json(&call.request)?;
            let job = changer.retune(owner, job_guid, &limits).await?;
            return Ok(answer(200, changer, &job).await);
        }
        Operation::DeleteJob => {
            changer.delete(owner, job_guid).await?;
            return Ok(no_content());
        }
        Operation::CancelJob => changer.cancel(owner, job_guid, call.is_by_operator()).await?,
        Operation::PauseJob => changer.pause(owner, job_guid).await?,
        Operation::ResumeJob => changer.resume(owner, job_guid).await?,
        _ => return Err(Problem::no_such_route()),
    };
    Ok(answer(202, changer, &job).await)
}

async fn answer(status: u16, changer: &Changer, job: &Job) -> Response<Body> {
    // The job is changed already, so a failed read of its counters must not fail the request.
    let view = JobView::read(&*changer.jobs, job, changer.clock.now()).await;
    let view = view.unwrap_or_else(|_| JobView::of(job, None));
    let response = json_response(status, &view);
    if job.is_ended() { response } else { to_be_polled(response) }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let problem = |code| Self::new(code, error.to_string());
        match error {
            ChangeError::Unknown(_) => Self::not_found(error.to_string()),
            ChangeError::Active => problem(ProblemCode::JobActive),
            ChangeError::Ended(status) => problem(ProblemCode::JobEnded).job_status(status),
            ChangeError::Stopping(status) | ChangeError::Completing(status) => {
                problem(ProblemCode::JobEnding).job_status(status)
            }
            ChangeError::NoLimit => problem(ProblemCode::InvalidBody),
            ChangeError::Field { field, .. } => problem(ProblemCode::InvalidRequest).field(field),
            ChangeError::DeadlinePassed(_) => {
                problem(ProblemCode::InvalidRequest).with_status(400).field("deadlineSeconds")
            }
            ChangeError::TooOld(_) => problem(ProblemCode::JobTooOld),
            ChangeError::Priority(_) => problem(ProblemCode::PriorityNotAllowed).field("priority"),
            ChangeError::Port(error) => error.into(),
        }
    }
}
