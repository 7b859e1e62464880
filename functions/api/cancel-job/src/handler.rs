//! From the HTTP request to the use case and back.

use lambda_http::{Body, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::http::{Call, Problem, json_response, path_parameter, to_be_polled};
use rowmill_core::progress::job_view;

use crate::cancel::{CancelError, Canceller};

/// Answers `POST /api/jobs/{jobGuid}/cancel`.
///
/// # Errors
/// The problem to answer.
pub async fn handle(canceller: &Canceller, call: &Call) -> Result<Response<Body>, Problem> {
    match call.operation {
        Operation::CancelJob => cancel(canceller, call).await,
        _ => Err(Problem::no_such_route()),
    }
}

async fn cancel(canceller: &Canceller, call: &Call) -> Result<Response<Body>, Problem> {
    let job = canceller.cancel(call.owner()?, path_parameter(&call.request, "jobGuid")?).await.map_err(problem)?;
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
