use aws_sdk_dynamodb::config::Config;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use rowmill_core::ports::PortError;

use super::attributes::{Item, names};
use super::errors::{past_conflicts, port_error};

/// The answer to a conditional write, with the current row.
pub enum Written {
    Applied(Item),
    /// Its condition failed.
    Refused(Item),
}

/// A conditional update of one row.
pub struct Update<'a> {
    /// The operation, for errors.
    pub doing: &'static str,
    /// The update expression.
    pub change: &'a str,
    /// The condition; an empty text is none.
    pub condition: &'a str,
}

impl Update<'_> {
    /// Applies the update to the row of the request.
    ///
    /// # Errors
    /// `NotFound` if the condition fails because the row does not exist.
    pub async fn apply(
        &self,
        request: UpdateItemFluentBuilder,
        values: impl IntoIterator<Item = (impl Into<String>, AttributeValue)>,
    ) -> Result<Written, PortError> {
        let request = self.prepare(request, values);
        self.answer(past_conflicts(|| request.clone().send()).await)
    }

    /// Applies the update, and does not send it again if the reply is lost; throttled ones are sent again, since they
    /// were not applied. So one that is refused was never applied, which the row of a repeated one might not tell.
    ///
    /// # Errors
    /// As [`apply`](Self::apply). After `Unavailable` it may have been applied.
    pub async fn apply_once(
        &self,
        request: UpdateItemFluentBuilder,
        values: impl IntoIterator<Item = (impl Into<String>, AttributeValue)>,
    ) -> Result<Written, PortError> {
        let request = self.prepare(request, values);
        let once = || Config::builder().retry_config(RetryConfig::disabled());
        self.answer(past_conflicts(|| request.clone().customize().config_override(once()).send()).await)
    }

    fn prepare(
        &self,
        request: UpdateItemFluentBuilder,
        values: impl IntoIterator<Item = (impl Into<String>, AttributeValue)>,
    ) -> UpdateItemFluentBuilder {
        let mut request = request
            .update_expression(self.change)
            .set_condition_expression((!self.condition.is_empty()).then(|| self.condition.to_owned()))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (placeholder, name) in names(self.change).chain(names(self.condition)) {
            request = request.expression_attribute_names(placeholder, name);
        }
        for (placeholder, value) in values {
            request = request.expression_attribute_values(placeholder, value);
        }
        request
    }

    fn answer(&self, answer: Result<UpdateItemOutput, SdkError<UpdateItemError>>) -> Result<Written, PortError> {
        match answer {
            Ok(output) => Ok(Written::Applied(output.attributes.unwrap_or_default())),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    refused.item().cloned().map(Written::Refused).ok_or(PortError::NotFound)
                }
                _ => Err(port_error(self.doing, error)),
            },
        }
    }
}

/// Puts a row unless its key exists. Returns whether it was put.
pub async fn put_if_absent(
    doing: &'static str,
    request: PutItemFluentBuilder,
    key: &'static str,
) -> Result<bool, PortError> {
    let request = request.condition_expression("attribute_not_exists(#key)").expression_attribute_names("#key", key);
    match past_conflicts(|| request.clone().send()).await {
        Ok(_) => Ok(true),
        Err(error) => match error.as_service_error() {
            Some(refused) if refused.is_conditional_check_failed_exception() => Ok(false),
            _ => Err(port_error(doing, error)),
        },
    }
}
