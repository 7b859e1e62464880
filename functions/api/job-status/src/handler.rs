//! From the HTTP request to the use cases and back.

use std::sync::LazyLock;

use lambda_http::http::HeaderValue;
use lambda_http::{Body, Request, RequestExt, Response};
use rowmill_api::dead_letter::DeadLetterList;
use rowmill_api::item::{FailedItemPage, ItemsOutcome, SkippedItemPage, SucceededItemPage};
use rowmill_api::job::{JobPage, JobReader};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{
    Call, Problem, etag_of, invalid_query, json_response, page_limit, path_parameter, query_parameter, response,
    to_be_polled, with_etag,
};
use rowmill_core::items::audit::{AuditError, Auditor};
use rowmill_core::items::files::FilesAt;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::{JobFilter, PortError, StateFilter};
use rowmill_core::words::Word;

use crate::items::{CauseFilter, ItemPages};
use crate::limits::TASKS_PAGE_MAX;
use crate::repeat::JobRequests;
use crate::results::{JobResults, ResultsError};
use crate::tasks::TaskPages;
use crate::why::JobReasons;

/// The OpenAPI document. A test of `rowmill-api` compares it with the types.
const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

static DOCUMENT_ETAG: LazyLock<String> = LazyLock::new(|| etag_of(DOCUMENT.as_bytes()));

const JOBS_DEFAULT: usize = 20;

const ITEMS_DEFAULT: usize = 100;

/// The most dead letters shown for a job. A job with more of them has one cause for all.
const DEAD_LETTERS_MAX: usize = 1000;

/// The use cases and the limits of a page.
pub struct JobPages {
    pub jobs: JobReader,
    /// Failed and skipped items.
    pub items: ItemPages,
    pub results: JobResults,
    pub tasks: TaskPages,
    pub audits: Auditor,
    pub reasons: JobReasons,
    pub requests: JobRequests,
    pub jobs_page_max: usize,
    pub items_page_max: usize,
}

/// Answers the `GET` requests to `/api/jobs` and below.
pub async fn handle(pages: &JobPages, call: Call) -> Result<Response<Body>, Problem> {
    let request = &call.request;
    match call.operation {
        Operation::ShowDocument => Ok(document(request)),
        Operation::ListJobs => list(pages, call.owner()?, request).await,
        Operation::ShowJob => show(pages, call.owner()?, request).await,
        Operation::ListItems => items(pages, call.owner()?, request).await,
        Operation::ListFiles => files(pages, call.owner()?, request).await,
        Operation::ShowResults => results(pages, call.owner()?, request).await,
        Operation::ShowProduct => product(pages, call.owner()?, request).await,
        Operation::ListDeadLetters => dead_letters(pages, call.owner()?, request).await,
        Operation::ListTasks => tasks(pages, call.owner()?, request).await,
        Operation::AuditJob => audit(pages, call.owner()?, request).await,
        Operation::ShowRequest => job_request(pages, call.owner()?, request).await,
        Operation::ExplainJob => why(pages, call.owner()?, request).await,
        _ => Err(Problem::no_such_route()),
    }
}

/// Answers the OpenAPI document. It belongs to no owner, so none is asked for here. If the stack has an issuer, API
/// Gateway still demands a token.
fn document(request: &Request) -> Response<Body> {
    let document = response(200, [("content-type", "application/json".to_owned())], DOCUMENT);
    let mut answer = with_etag(request, document, &DOCUMENT_ETAG);
    answer.headers_mut().insert("cache-control", HeaderValue::from_static("max-age=3600"));
    answer
}

async fn show(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    let view = pages.jobs.show(&job).await?;
    let response = json_response(200, &view);
    let etag = etag_of(response.body());
    let response = with_etag(request, response, &etag);
    Ok(if job.is_ended() { response } else { to_be_polled(response) })
}

async fn list(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let status = word(request, "status", &Status::ALL)?;
    let outcome = word(request, "outcome", &JobOutcome::ALL)?;
    let filter = JobFilter {
        state: outcome.map(StateFilter::Outcome).or(status.map(StateFilter::Status)),
        job_type: query_parameter(request, "jobType", "the name of a job type")?,
        limit: page_limit(request, JOBS_DEFAULT, pages.jobs_page_max)?,
        after: query_parameter(request, "after", "a `next` that this API gave out")?,
    };
    if outcome.is_some() && status.is_some_and(|status| status != Status::Completed) {
        // Only completed jobs have an outcome.
        return Ok(json_response(200, &JobPage { jobs: Vec::new(), next: None }));
    }
    let page = pages.jobs.list(owner, &filter).await?;
    Ok(json_response(200, &page))
}

/// A query parameter that is one of these words.
fn word<W: Word>(request: &Request, name: &'static str, known: &[W]) -> Result<Option<W>, Problem> {
    let Some(given) = query_parameter::<String>(request, name, "a word")? else { return Ok(None) };
    let found = known.iter().copied().find(|word| word.as_str() == given);
    found.map(Some).ok_or_else(|| invalid_query(name, format!("must be {}", one_of(known))))
}

fn one_of<W: Word>(known: &[W]) -> String {
    let known: Vec<&str> = known.iter().map(|word| word.as_str()).collect();
    format!("one of {}", known.join(", "))
}

async fn items(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let after = query_parameter(request, "after", "a `next` that this API gave out")?.unwrap_or(0);
    let limit = page_limit(request, ITEMS_DEFAULT, pages.items_page_max)?;
    let outcome = word(request, "outcome", &ItemsOutcome::ALL)?;
    let outcome = outcome.ok_or_else(|| invalid_query("outcome", format!("must be {}", one_of(&ItemsOutcome::ALL))))?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    let query = request.query_string_parameters_ref();
    // An empty text narrows too.
    let text = |name| query.and_then(|query| query.first(name)).map(str::to_owned);
    let filter = CauseFilter { code: text("code"), column: text("column"), rule: text("rule") };
    let next = |row: Option<u64>| row.map(|row| row.to_string());
    match outcome {
        ItemsOutcome::Failed => {
            let page = pages.items.failed(&job, &filter, after, limit).await?;
            let table = pages.items.table(&job).await?;
            Ok(json_response(200, &FailedItemPage { items: page.items, next: next(page.next), table }))
        }
        ItemsOutcome::Skipped => {
            let page = pages.items.skipped(&job, after, limit).await?;
            Ok(json_response(200, &SkippedItemPage { items: page.items, next: next(page.next) }))
        }
        ItemsOutcome::Succeeded => {
            let page = pages.items.succeeded(&job, after, limit).await?.ok_or_else(|| {
                let detail = format!(
                    "Items of this job have no outputs: `{}` was created without. Those of `import` have, with the param `outputs`.",
                    job.job_type
                );
                Problem::new(ProblemCode::NoResults, detail)
            })?;
            Ok(json_response(200, &SucceededItemPage { items: page.items, next: next(page.next) }))
        }
    }
}

async fn files(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let expected = "a `next` that this API gave out";
    let after: Option<String> = query_parameter(request, "after", expected)?;
    let at = after.map_or(Ok(FilesAt::START), |after| after.parse());
    let at = at.map_err(|()| invalid_query("after", format!("must be {expected}")))?;
    let limit = page_limit(request, ITEMS_DEFAULT, pages.items_page_max)?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    match pages.items.files(&job, at, limit).await {
        // The cursor is none of this job.
        Err(PortError::Invalid { .. }) if at != FilesAt::START => {
            Err(invalid_query("after", format!("must be {expected} for this job")))
        }
        page => Ok(json_response(200, &page?)),
    }
}

async fn dead_letters(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    let dead_letters = pages.jobs.jobs.dead_letters(job.job_guid, DEAD_LETTERS_MAX).await?;
    Ok(json_response(200, &DeadLetterList { dead_letters: dead_letters.into_iter().map(Into::into).collect() }))
}

async fn audit(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let after: Option<String> = query_parameter(request, "after", "a `next` that this API gave out")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    match pages.audits.page(&job, after.as_deref()).await {
        Ok(view) => Ok(json_response(200, &view)),
        Err(AuditError::Cursor) => {
            let expected = "must be a `next` that this API gave out for an audit of this job";
            Err(invalid_query("after", expected.to_owned()))
        }
        Err(AuditError::Moved) => {
            let detail = "The job has ended or was redriven since this audit began. Begin again without `after`.";
            Err(Problem::new(ProblemCode::Changed, detail))
        }
        Err(AuditError::Port(error)) => Err(error.into()),
    }
}

async fn why(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    Ok(json_response(200, &pages.reasons.of(&job).await?))
}

async fn job_request(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    let dry_run = query_parameter(request, "dryRun", "true or false")?;
    match pages.requests.of(&job, dry_run).await {
        Ok(request) => Ok(json_response(200, &request)),
        Err(PortError::NotFound) => Err(Problem::not_found(
            "The request of this job is not known any more: an older version of Rowmill created it, or its items have expired.",
        )),
        Err(error) => Err(error.into()),
    }
}

async fn tasks(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let expected = "a `next` that this API gave out for this job";
    let after: Option<TaskId> = query_parameter(request, "after", expected)?;
    if after.is_some_and(|after| after.job != job_guid) {
        return Err(invalid_query("after", format!("must be {expected}")));
    }
    let limit = page_limit(request, TASKS_PAGE_MAX, TASKS_PAGE_MAX)?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    Ok(json_response(200, &pages.tasks.page(&job, after, limit).await?))
}

async fn results(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    match pages.results.of(&job).await {
        Ok(view) => Ok(json_response(200, &view)),
        Err(ResultsError::Active) => Err(Problem::new(ProblemCode::JobActive, ResultsError::Active.to_string())),
        Err(error @ ResultsError::None) => Err(Problem::new(ProblemCode::NoResults, error.to_string())),
        Err(ResultsError::Port(error)) => Err(error.into()),
    }
}

async fn product(pages: &JobPages, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let job_guid = path_parameter(request, "jobGuid")?;
    let job = pages.jobs.owned(owner, job_guid).await.map_err(|error| problem(error, job_guid))?;
    match pages.results.product(&job, &path_parameter(request, "product")?).await {
        Ok(view) => Ok(json_response(200, &view)),
        Err(PortError::NotFound) => Err(Problem::not_found("The job has no such product, or it has expired.")),
        Err(error) => Err(error.into()),
    }
}

fn problem(error: PortError, job_guid: JobGuid) -> Problem {
    match error {
        PortError::NotFound => Problem::not_found(format!("There is no job {job_guid}, or it has expired.")),
        error => error.into(),
    }
}
