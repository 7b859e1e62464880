use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use rowmill_core::ports::PortError;

use crate::sdk::denied::{denied, is_denied};

/// Maps a failed request to what the caller does about it.
pub fn port_error<E, R>(doing: &'static str, error: SdkError<E, R>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match error.code() {
        code if is_denied(code) => denied(doing, error.message().map(str::to_owned).as_deref(), error),
        _ => PortError::unavailable(doing, error),
    }
}
