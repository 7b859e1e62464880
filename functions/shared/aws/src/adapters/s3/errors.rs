use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use rowmill_core::model::keys;
use rowmill_core::ports::PortError;

use crate::sdk::denied::{denied, is_denied};

/// Maps a failed request for this key to what the caller does about it. What is wrong with an external bucket is not a
/// fault of the stack.
pub fn error_at<E>(key: &str, doing: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    match (keys::of_other_bucket(key), error.code()) {
        (Some(_), Some("NoSuchBucket")) => PortError::NotFound,
        (Some(_), _) if is_refused(&error) => PortError::denied(doing, error),
        _ => port_error(doing, error),
    }
}

fn status<E>(error: &SdkError<E, HttpResponse>) -> u16 {
    error.raw_response().map_or(0, |response| response.status().as_u16())
}

/// True if a policy refuses the request. The answer to HEAD has no error document; other causes of a 403, such as an
/// expired session, have a code of their own. An archived object must be restored first, and one whose key cannot be
/// used is not readable.
fn is_refused<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    let code = error.code().unwrap_or_default();
    code == "InvalidObjectState"
        || code.starts_with("KMS.")
        || is_denied(Some(code))
        || (code.is_empty() && status(error) == 403)
}

/// Maps a failed request to what the caller does about it. Without an error document, as for HEAD, the status decides.
pub fn port_error<E>(doing: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let code = error.code().unwrap_or_default();
    match (code, status(&error)) {
        // A missing bucket is a broken deployment, not a missing object.
        ("NoSuchBucket", _) => PortError::unavailable(doing, error),
        ("NoSuchKey" | "NotFound" | "NoSuchUpload", _) | (_, 404) => PortError::NotFound,
        ("PreconditionFailed" | "InvalidPart", _) | (_, 412) => PortError::Changed,
        ("BadDigest" | "XAmzContentChecksumMismatch" | "XAmzContentSHA256Mismatch", _) => PortError::Changed,
        // HEAD of an object that is encrypted with the key of its owner, or of a key that S3 does not take.
        ("", 400) => PortError::invalid(doing, error),
        ("InvalidArgument" | "InvalidRequest" | "EntityTooLarge" | "InvalidPartOrder", _) => {
            PortError::invalid(doing, error)
        }
        _ if is_refused(&error) => denied(doing, error.message().map(str::to_owned).as_deref(), error),
        _ => PortError::unavailable(doing, error),
    }
}

/// True if the requested range begins beyond the object's end.
pub fn is_beyond_the_end<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    error.code() == Some("InvalidRange")
        || error.raw_response().is_some_and(|response| response.status().as_u16() == 416)
}
