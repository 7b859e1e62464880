use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use rowmill_core::ports::PortError;

use super::attributes::{Item, names};
use super::errors::port_error;
use crate::sdk::retry::Backoff;

pub enum Transacted {
    Applied,
    /// Nothing was applied. Holds the reason of each item; no reason is a temporary one.
    Refused(Vec<CancellationReason>),
}

/// Why an item cancelled its transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    /// It did not cancel it.
    None,
    Condition,
    /// A permanent error.
    Lasting,
    /// A temporary error: another transaction, throttling.
    Passing,
}

impl Reason {
    fn of(reason: &CancellationReason) -> Self {
        match reason.code() {
            None | Some("None") => Self::None,
            Some("ConditionalCheckFailed") => Self::Condition,
            Some("ValidationError" | "ItemCollectionSizeLimitExceeded") => Self::Lasting,
            // TransactionConflict, ThrottlingError, ProvisionedThroughputExceeded, and codes that AWS may add.
            Some(_) => Self::Passing,
        }
    }
}

/// True if the condition of this item was one that did not hold.
pub fn condition_failed(reason: &CancellationReason) -> bool {
    Reason::of(reason) == Reason::Condition
}

/// An update of one row as an item of a transaction. If its condition fails, the reason holds the current row.
pub struct RowUpdate<'a> {
    pub table: &'a str,
    pub key: Item,
    /// The update expression.
    pub change: &'a str,
    /// The condition; an empty text is none.
    pub condition: &'a str,
}

impl RowUpdate<'_> {
    /// The update with these values behind its placeholders.
    ///
    /// # Errors
    /// None in practice: it has all it needs.
    pub fn with<N: Into<String>>(
        self,
        doing: &'static str,
        values: impl IntoIterator<Item = (N, AttributeValue)>,
    ) -> Result<TransactWriteItem, PortError> {
        let mut update = Update::builder()
            .table_name(self.table)
            .set_key(Some(self.key))
            .update_expression(self.change)
            .set_condition_expression((!self.condition.is_empty()).then(|| self.condition.to_owned()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (placeholder, name) in names(self.change).chain(names(self.condition)) {
            update = update.expression_attribute_names(placeholder, name);
        }
        for (placeholder, value) in values {
            update = update.expression_attribute_values(placeholder, value);
        }
        let update = update.build().map_err(|error| PortError::invalid(doing, error))?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

/// Sends a transaction, and retries with this backoff after temporary errors. While one item has a temporary error, the
/// reasons of the others mean nothing.
///
/// # Errors
/// `Unavailable`; `Invalid` if DynamoDB rejects the transaction.
pub async fn transact(
    doing: &'static str,
    request: TransactWriteItemsFluentBuilder,
    backoff: &mut Backoff,
) -> Result<Transacted, PortError> {
    loop {
        let Err(error) = request.clone().send().await else { return Ok(Transacted::Applied) };
        let reasons = match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => cancelled.cancellation_reasons(),
            _ => &[],
        };
        let kinds: Vec<Reason> = reasons.iter().map(Reason::of).collect();
        let in_progress = error.code() == Some("TransactionInProgressException");
        if kinds.contains(&Reason::Passing) || in_progress {
            if backoff.wait().await {
                continue;
            }
            return Err(PortError::unavailable(doing, error));
        }
        if kinds.contains(&Reason::Lasting) {
            return Err(PortError::invalid(doing, error));
        }
        if kinds.contains(&Reason::Condition) {
            return Ok(Transacted::Refused(reasons.to_vec()));
        }
        return Err(port_error(doing, error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_or_throttling_is_never_mistaken_for_a_failed_condition() {
        let of = |code: &str| Reason::of(&CancellationReason::builder().code(code).build());
        for passing in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "SomethingNew"] {
            assert_eq!(of(passing), Reason::Passing);
        }
        assert_eq!(of("ConditionalCheckFailed"), Reason::Condition);
        assert_eq!(of("ValidationError"), Reason::Lasting);
        assert_eq!(of("None"), Reason::None);
    }
}
