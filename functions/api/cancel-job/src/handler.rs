//! From the HTTP request to the use case and back.

use lambda_http::{Body, Request, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::http::{Problem, json_response, operation_of, owner_of, path_parameter, to_be_polled};
use rowmill_core::progress::job_view;

use crate::cancel::{CancelError, Canceller};

/// Answers `POST /api/jobs/{jobGuid}/cancel`.
pub async fn handle(canceller: &Canceller, request: Request) -> Response<Body> {
    let answer = match operation_of(crate::NAME, &request) {
        Some(Operation::CancelJob) => cancel(canceller, &request).await,
        _ => Err(Problem::no_such_route()),
    };
    answer.unwrap_or_else(Into::into)
}

async fn cancel(canceller: &Canceller, request: &Request) -> Result<Response<Body>, Problem> {
    let owner = owner_of(request)?;
    let job = canceller.cancel(&owner, path_parameter(request, "jobGuid")?).await.map_err(problem)?;
    // The job is cancelled already, so a failed read of its counters must not fail the request.
    let view = job_view::read(&*canceller.jobs, &job).await.unwrap_or_else(|_| job_view::of(&job, None));
    let response = json_response(202, &view);
    Ok(if job.status.is_terminal() { response } else { to_be_polled(response) })
}

fn problem(error: CancelError) -> Problem {
    let detail = error.to_string();
    match error {
        CancelError::Unknown(_) => Problem::not_found(detail),
        CancelError::Ended(status) => Problem::new(ProblemCode::JobEnded, detail).job_status(status),
        CancelError::Port(error) => error.into(),
    }
}
