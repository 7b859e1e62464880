use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use rowmill_core::ports::PortError;

use crate::sdk::denied::{denied, is_denied};
use crate::sdk::retry::Backoff;

/// Maps a failed request to what the caller does about it.
pub fn port_error<E, R>(doing: &'static str, error: SdkError<E, R>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match error.code() {
        // DynamoDB rejects the request, and will reject it again.
        Some("ValidationException" | "SerializationException" | "IdempotentParameterMismatchException") => {
            PortError::invalid(doing, error)
        }
        code if is_denied(code) => denied(doing, error.message().map(str::to_owned).as_deref(), error),
        _ => PortError::unavailable(doing, error),
    }
}

/// True if a request conflicts with a transaction on the same row. The SDK does not retry these.
fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    matches!(error.code(), Some("TransactionConflictException" | "TransactionInProgressException"))
}

/// Sends a request, and retries a few times while it conflicts with a transaction.
pub async fn past_conflicts<T, E, R, F>(mut send: impl FnMut() -> F) -> Result<T, SdkError<E, R>>
where
    E: ProvideErrorMetadata,
    F: Future<Output = Result<T, SdkError<E, R>>>,
{
    let mut backoff = Backoff::after_conflict();
    loop {
        match send().await {
            Err(error) if is_conflict(&error) && backoff.wait().await => {}
            result => return result,
        }
    }
}
