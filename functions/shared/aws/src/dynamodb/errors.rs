use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use rowmill_core::ports::PortError;

use crate::retry::Pauses;

/// What a failed request means to the caller.
pub fn port_error<E, R>(doing: &'static str, error: SdkError<E, R>) -> PortError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match error.code() {
        // The request is not one DynamoDB takes; it will not take it the next time either.
        Some("ValidationException" | "SerializationException" | "IdempotentParameterMismatchException") => {
            PortError::invalid(doing, error)
        }
        _ => PortError::unavailable(doing, error),
    }
}

/// Whether a request was refused only because a transaction had its hand on the row. The SDK does not try these again.
fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    matches!(error.code(), Some("TransactionConflictException" | "TransactionInProgressException"))
}

/// Sends a request until no transaction is in its way, within bounds.
pub async fn past_conflicts<T, E, R, F>(mut send: impl FnMut() -> F) -> Result<T, SdkError<E, R>>
where
    E: ProvideErrorMetadata,
    F: Future<Output = Result<T, SdkError<E, R>>>,
{
    let mut pauses = Pauses::after_conflict();
    loop {
        match send().await {
            Err(error) if is_conflict(&error) && pauses.wait().await => {}
            result => return result,
        }
    }
}
