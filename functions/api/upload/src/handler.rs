//! From the HTTP request to the use case and back.

use bytes::Bytes;
use lambda_http::{Body, Request, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{
    Call, Problem, content_type, header, json_response, no_content, path_parameter, query_parameter, read_json,
    read_json_if_any,
};
use rowmill_core::model::ids::Owner;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::fetched::FetchOrders;
use crate::request::AnnounceRequest;
use crate::upload::{UploadError, Uploads};

/// The use cases behind `/api/uploads`.
pub struct UploadRoutes {
    pub uploads: Uploads,
    pub orders: FetchOrders,
}

/// A JSON body, as far as it tells which of the two it is.
#[derive(Deserialize)]
struct MayFetch {
    #[serde(default)]
    source: Option<IgnoredAny>,
}

/// Answers the requests to `/api/uploads` and below.
pub async fn handle(routes: &UploadRoutes, call: Call) -> Result<Response<Body>, Problem> {
    let (owner, request, uploads) = (call.owner()?, &call.request, &routes.uploads);
    match call.operation {
        Operation::CreateUpload => create(routes, owner, request).await,
        Operation::CompleteUpload => {
            let view = uploads.complete(owner, path_parameter(request, "fileGuid")?).await;
            Ok(json_response(200, &view.map_err(|error| problem(error, uploads))?))
        }
        Operation::ShowUpload => {
            let view = uploads.show(owner, path_parameter(request, "fileGuid")?).await;
            Ok(json_response(200, &view.map_err(|error| problem(error, uploads))?))
        }
        Operation::SignParts => {
            let (file_guid, body) = (path_parameter(request, "fileGuid")?, read_json_if_any(request)?);
            let view = uploads.sign(owner, file_guid, body).await;
            Ok(json_response(200, &view.map_err(|error| problem(error, uploads))?))
        }
        Operation::DeleteUpload => {
            let deleted = uploads.delete(owner, path_parameter(request, "fileGuid")?).await;
            deleted.map_err(|error| problem(error, uploads))?;
            Ok(no_content())
        }
        _ => Err(Problem::no_such_route()),
    }
}

/// Stores the file in the body, the announcement of a file, or the order to fetch one.
async fn create(routes: &UploadRoutes, owner: &Owner, request: &Request) -> Result<Response<Body>, Problem> {
    let uploads = &routes.uploads;
    let view = match content_type(request).as_deref() {
        None => {
            let detail = "The request has no content type. Send the file with its own content type, such as `text/csv`, \
                          or announce it with `application/json`.";
            return Err(Problem::unsupported_media_type(detail));
        }
        Some(form @ ("multipart/form-data" | "application/x-www-form-urlencoded")) => {
            let detail = format!(
                "The content type `{form}` is not accepted. Send the file alone as the body, with its own content type."
            );
            return Err(Problem::unsupported_media_type(detail));
        }
        Some("application/json") if read_json::<MayFetch>(request)?.source.is_some() => {
            let view = routes.orders.order(uploads, owner, &read_json(request)?).await;
            return Ok(json_response(202, &view.map_err(|error| problem(error, uploads))?));
        }
        Some("application/json") => uploads.announce(owner, &read_json::<AnnounceRequest>(request)?).await,
        Some(_) => {
            let content_type = header(request, "content-type").unwrap_or_default();
            check_unaltered(request)?;
            let file_name: Option<String> = query_parameter(request, "fileName", "a file name")?;
            let body = Bytes::copy_from_slice(request.body().as_ref());
            uploads.store(owner, content_type, file_name.as_deref(), body).await
        }
    };
    Ok(json_response(201, &view.map_err(|error| problem(error, uploads))?))
}

/// Rejects a body that the gateway altered. The gateway passes on a body of a text type as text and replaces bytes that
/// are not UTF-8. The length of the body then differs from `Content-Length`.
fn check_unaltered(request: &Request) -> Result<(), Problem> {
    let sent: Option<usize> = header(request, "content-length").and_then(|length| length.parse().ok());
    let body: &[u8] = request.body().as_ref();
    if sent.is_none_or(|sent| sent == body.len()) {
        return Ok(());
    }
    let detail = "The file is not UTF-8, but its content type is a text type. Send it as `application/octet-stream`, \
                  or announce it with a JSON body and send it to the presigned URL in the answer.";
    Err(Problem::new(ProblemCode::BodyAltered, detail))
}

fn problem(error: UploadError, uploads: &Uploads) -> Problem {
    let detail = error.to_string();
    match error {
        UploadError::Field { field, .. } => Problem::new(ProblemCode::InvalidRequest, detail).field(field),
        UploadError::TooLarge { limit, .. } => Problem::too_large(limit, detail),
        UploadError::TooMany { full, limits } => {
            tracing::warn!(
                uploads = full.uploads,
                bytes = full.bytes,
                ?limits,
                "upload refused: too many are outstanding"
            );
            let wait = full.free_at.duration_since(uploads.clock.now());
            Problem::new(ProblemCode::TooManyUploads, detail).retry_after(wait.try_into().unwrap_or_default())
        }
        UploadError::Unknown(_) | UploadError::Aborted(_) => Problem::not_found(detail),
        UploadError::Ready(_) => Problem::new(ProblemCode::UploadReady, detail),
        UploadError::Fetching(_) => Problem::new(ProblemCode::UploadFetching, detail),
        UploadError::Failed(..) => Problem::new(ProblemCode::UploadFailed, detail).with_status(409),
        UploadError::Incomplete { .. } => Problem::new(ProblemCode::UploadIncomplete, detail),
        UploadError::OtherSize { .. } => Problem::new(ProblemCode::UploadSizeMismatch, detail).with_status(409),
        UploadError::Port(error) => error.into(),
    }
}
