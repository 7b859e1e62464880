//! From the HTTP request to the use case and back.

use lambda_http::{Body, Request, Response};
use rowmill_aws::http::{Problem, header, json_response, owner_of, read_json, to_be_polled};
use rowmill_core::progress::job_view::JobView;

use crate::create::{CreateJobError, Creator};
use crate::request::CreateJobRequest;

/// Answers `POST /api/jobs`.
pub async fn handle(creator: &Creator, request: Request) -> Response<Body> {
    create(creator, &request).await.unwrap_or_else(Into::into)
}

async fn create(creator: &Creator, request: &Request) -> Result<Response<Body>, Problem> {
    let owner = owner_of(request)?;
    let wish: CreateJobRequest = read_json(request)?;
    // A key that is no text is as wrong as an empty one, and must not pass for none.
    let key = request.headers().contains_key("idempotency-key").then(|| header(request, "idempotency-key"));
    let job = creator
        .create(&owner, &wish, key.map(Option::unwrap_or_default))
        .await
        .map_err(|error| problem(error, creator))?;
    let mut response = json_response(202, &JobView::read(&*creator.jobs, &job).await?);
    if let Ok(location) = format!("/api/jobs/{}", job.job_guid).try_into() {
        response.headers_mut().insert("location", location);
    }
    Ok(if job.status.is_terminal() { response } else { to_be_polled(response) })
}

/// Why there is no job, as the API says it.
pub fn problem(error: CreateJobError, creator: &Creator) -> Problem {
    let detail = error.to_string();
    match error {
        CreateJobError::Field(wrong) => Problem::unprocessable("invalid_request", detail).with("field", wrong.field),
        CreateJobError::Params(wrong) => Problem::unprocessable("invalid_params", detail).with("field", wrong.field),
        CreateJobError::UnknownJobType { .. } => {
            Problem::unprocessable("unknown_job_type", detail).with("field", "jobType")
        }
        CreateJobError::UnknownUpload(_) => Problem::unprocessable("unknown_upload", detail).with("field", "fileGuid"),
        CreateJobError::UploadIncomplete(_) => Problem::conflict("upload_incomplete", detail).with("field", "fileGuid"),
        CreateJobError::UploadSize { .. } => {
            Problem::unprocessable("upload_size_mismatch", detail).with("field", "fileGuid")
        }
        CreateJobError::UploadChanged(_) => Problem::unprocessable("upload_changed", detail).with("field", "fileGuid"),
        CreateJobError::Head(head) => {
            Problem::unprocessable("unreadable_file", detail).with("field", "fileGuid").with("reason", head.code())
        }
        CreateJobError::Packing(packing) => {
            Problem::unprocessable("unreadable_file", detail).with("field", "fileGuid").with("reason", packing.code())
        }
        CreateJobError::Packed(packed) => {
            Problem::unprocessable("unreadable_file", detail).with("field", "fileGuid").with("reason", packed.code())
        }
        CreateJobError::KeyReused => Problem::unprocessable("idempotency_key_reused", detail),
        CreateJobError::Full(full) => Problem::full(&full, creator.clock.now(), creator.limits.retry_after_max),
        CreateJobError::Port(error) => error.into(),
    }
}
