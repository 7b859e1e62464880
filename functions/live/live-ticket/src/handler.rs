//! From the HTTP request to the use case and back.

use std::time::Duration;

use lambda_http::{Body, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{Call, Problem, json_response};

use crate::issue::{TicketError, TicketOffice};

/// When to try again if there are too many connections. A closed one is forgotten at once.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Answers `POST /api/live/tickets`. A stack without a WebSocket API has no office.
pub async fn handle(office: Option<&TicketOffice>, call: &Call) -> Result<Response<Body>, Problem> {
    match call.operation {
        Operation::CreateLiveTicket => create(office, call).await,
        _ => Err(Problem::no_such_route()),
    }
}

async fn create(office: Option<&TicketOffice>, call: &Call) -> Result<Response<Body>, Problem> {
    let office = office.ok_or_else(|| {
        let detail = "This stack has no live connections. Poll the job with GET instead.";
        Problem::new(ProblemCode::LiveUnavailable, detail)
    })?;
    let ticket = office.issue(call.owner()?, call.token_until()).await.map_err(problem)?;
    Ok(json_response(201, &ticket))
}

fn problem(error: TicketError) -> Problem {
    let detail = error.to_string();
    match error {
        TicketError::TooManyConnections(_) => {
            Problem::new(ProblemCode::TooManyConnections, detail).retry_after(RETRY_AFTER)
        }
        TicketError::Port(error) => error.into(),
    }
}
