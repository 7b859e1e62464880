//! From the HTTP request to the use case and back.

use lambda_http::{Body, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_api::task::{
    LeaseRequest, ProductRequest, ReleaseRequest, ReportRequest, TaskItemView, TaskOrder, TaskOrderView, TaskView,
};
use rowmill_aws::host::http::{Call, Problem, json_response, path_parameter, read_json, read_json_up_to};
use rowmill_core::model::ids::{Owner, RunId};
use rowmill_core::model::task::{LEASE, TaskId, TaskTerms};
use rowmill_core::ports::{ANSWER_MAX_BYTES, PortError, RecordObject};
use serde_json::Value;

use crate::allowed::Allowed;
use crate::error::TaskError;
use crate::lend::{Lent, TaskWork};

/// Seconds after which a worker asks again if there is no task.
const ASK_AGAIN_SECONDS: u64 = 5;

pub struct TaskRoutes {
    pub work: TaskWork,
    pub allowed: Allowed,
}

/// Answers `GET /api/workers`, `POST /api/tasks/lease`, and `POST /api/tasks/{taskId}/beat`, `…/finish`, `…/products` and
/// `…/release`.
pub async fn handle(routes: &TaskRoutes, call: Call) -> Result<Response<Body>, Problem> {
    let caller = call.owner()?;
    if call.operation == Operation::LeaseTask {
        return lease(routes, caller, &read_json(&call.request)?).await;
    }
    if call.operation == Operation::ListWorkers {
        return workers(routes, caller).await;
    }
    let id: TaskId = path_parameter(&call.request, "taskId")?;
    let work = &routes.work;
    match call.operation {
        Operation::BeatTask | Operation::FinishTask => {
            let mut report: ReportRequest = read_json_up_to(&call.request, ANSWER_MAX_BYTES)?;
            let token = token_in(&report.token)?;
            may_work(routes, caller, id).await?;
            let is_report = call.operation == Operation::FinishTask || report.item_identifiers.is_some();
            if !is_report {
                let (order, terms) = work.beat(id, token).await?;
                return Ok(order_view(order, Some(terms)));
            }
            work.list_products(id, token, &mut report.outputs).await?;
            let answer = answer_of(&report)?;
            let order = work.report(id, token, report.item_identifiers.as_deref(), &answer).await?;
            Ok(order_view(order, None))
        }
        Operation::StoreProduct => {
            let wanted: ProductRequest = read_json(&call.request)?;
            let token = token_in(&wanted.token)?;
            may_work(routes, caller, id).await?;
            Ok(json_response(200, &work.product(id, token, &wanted).await?))
        }
        Operation::ReleaseTask => {
            let release: ReleaseRequest = read_json(&call.request)?;
            let token = token_in(&release.token)?;
            may_work(routes, caller, id).await?;
            work.release(id, token, release.failed).await?;
            Ok(order_view(TaskOrder::Finished, None))
        }
        _ => Err(Problem::no_such_route()),
    }
}

/// A job that this caller may not work on is answered like one that does not exist.
async fn may_work(routes: &TaskRoutes, caller: &Owner, id: TaskId) -> Result<(), Problem> {
    match routes.work.job(id.job).await?.is_some_and(|job| routes.allowed.is(caller, &job.job_type)) {
        true => Ok(()),
        false => Err(TaskError::Gone(id).into()),
    }
}

async fn lease(routes: &TaskRoutes, caller: &Owner, request: &LeaseRequest) -> Result<Response<Body>, Problem> {
    if !request.is_valid() {
        let detail = "`jobTypes` must name 1 to 16 job types, and `worker` and `client` must have 1 to 128 characters.";
        return Err(Problem::new(ProblemCode::InvalidRequest, detail));
    }
    if let Some(job_type) = request.job_types.iter().find(|job_type| !routes.allowed.is(caller, job_type)) {
        return Err(TaskError::NotAllowed(job_type.clone()).into());
    }
    for job_type in &request.job_types {
        routes.work.types.admits(job_type, request.client.as_deref())?;
    }
    for job_type in &request.job_types {
        if let Some(lent) = routes.work.lend(job_type, &request.worker).await? {
            return Ok(json_response(200, &view_of(lent)));
        }
    }
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = lambda_http::http::StatusCode::NO_CONTENT;
    response.headers_mut().insert("retry-after", ASK_AGAIN_SECONDS.into());
    Ok(response)
}

async fn workers(routes: &TaskRoutes, caller: &Owner) -> Result<Response<Body>, Problem> {
    let types: Vec<&str> = routes.work.types.names().filter(|job_type| routes.allowed.is(caller, job_type)).collect();
    if types.is_empty() && caller.as_str() != Owner::LOCAL {
        return Err(TaskError::NoTypes.into());
    }
    Ok(json_response(200, &routes.work.workers(&types).await?))
}

fn view_of(lent: Lent) -> TaskView {
    let items = lent.items.iter().map(|item| TaskItemView {
        item_identifier: item.idempotency_key(),
        row: item.row,
        record: serde_json::to_value(RecordObject(&item.record)).unwrap_or(Value::Null),
    });
    TaskView {
        task_id: lent.id.to_string(),
        token: lent.token.to_string(),
        job_guid: lent.id.job,
        job_type: lent.job_type,
        params: lent.params,
        items: items.collect(),
        first_beat_seconds: LEASE.as_secs(),
        beat_seconds: lent.terms.beat.as_secs(),
        stop_after_seconds: lent.terms.patience().as_secs(),
    }
}

fn order_view(order: TaskOrder, terms: Option<TaskTerms>) -> Response<Body> {
    json_response(200, &TaskOrderView { order: order.into(), beat_seconds: terms.map(|terms| terms.beat.as_secs()) })
}

/// The outcomes in the form of the answer of a target.
fn answer_of(report: &ReportRequest) -> Result<Vec<u8>, Problem> {
    serde_json::to_vec(&report.outcomes()).map_err(|error| PortError::invalid("reading outcomes", error).into())
}

fn token_in(text: &str) -> Result<RunId, Problem> {
    let wrong = || Problem::new(ProblemCode::InvalidRequest, "`token` must be that of the lease.").field("token");
    text.parse().map_err(|_| wrong())
}

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        let problem = |code| Self::new(code, error.to_string());
        match error {
            TaskError::Gone(_) => problem(ProblemCode::TaskGone),
            TaskError::NotAllowed(_) | TaskError::NoTypes => problem(ProblemCode::Forbidden),
            TaskError::Outdated { .. } => problem(ProblemCode::ClientOutdated),
            TaskError::NoSuchType(_) => problem(ProblemCode::UnknownJobType).field("jobTypes"),
            TaskError::BadOutcomes(_) | TaskError::NotBegun(_) => problem(ProblemCode::InvalidRequest),
            TaskError::BadProduct { field, .. } => problem(ProblemCode::InvalidRequest).field(field),
            TaskError::OtherItems { .. } => problem(ProblemCode::InvalidRequest).field("itemIdentifiers"),
            TaskError::Port(error) => error.into(),
        }
    }
}
