//! Counts the requests to AWS inside the SDK: each attempt by service, and the capacity that DynamoDB reports.
//!
//! The counts belong to the process and only grow. [`take`] returns the counts since its last call, for the log. So the
//! sum over all invocations is always exact, and the share of each is exact if the process serves one invocation at a
//! time.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::operation::batch_execute_statement::{BatchExecuteStatementInput, BatchExecuteStatementOutput};
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemInput, DeleteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemError, PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsInput, TransactWriteItemsOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    self, BeforeSerializationInterceptorContextMut, FinalizerInterceptorContextRef, Input, Output,
};
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::ConfigBag;
use parking_lot::Mutex;
use rowmill_core::model::cost::{Capacity, Usage};
use serde::Serialize;

/// A service of AWS that the functions use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    DynamoDb,
    EventBridge,
    S3,
    Sqs,
}

/// Requests sent, every attempt of each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Requests {
    pub dynamodb: u64,
    pub eventbridge: u64,
    pub s3: u64,
    pub sqs: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Used {
    pub requests: Requests,
    /// Requests to S3 that are charged like PUT.
    pub s3_writes: u64,
    pub capacity: Capacity,
}

static DYNAMODB: AtomicU64 = AtomicU64::new(0);
static EVENTBRIDGE: AtomicU64 = AtomicU64::new(0);
static S3: AtomicU64 = AtomicU64::new(0);
static S3_READS: AtomicU64 = AtomicU64::new(0);
static S3_WRITES: AtomicU64 = AtomicU64::new(0);
static SQS: AtomicU64 = AtomicU64::new(0);
// Capacity comes in halves of a unit.
static READ_HALVES: AtomicU64 = AtomicU64::new(0);
static WRITE_HALVES: AtomicU64 = AtomicU64::new(0);

/// All that this process has used since it began, except the time and the invocations of its function.
pub fn counted() -> Usage {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Usage {
        dynamodb_requests: read(&DYNAMODB),
        read_halves: read(&READ_HALVES),
        write_halves: read(&WRITE_HALVES),
        s3_reads: read(&S3_READS),
        s3_writes: read(&S3_WRITES),
        sqs_requests: read(&SQS),
        ..Usage::NONE
    }
}

/// The counters when [`take`] was called last. The requests to EventBridge, and all those to S3, are beside it: some
/// are free.
static TAKEN: Mutex<(Usage, u64, u64)> = Mutex::new((Usage::NONE, 0, 0));

/// Takes the sums of this process since the last call.
pub fn take() -> Used {
    let now = (counted(), EVENTBRIDGE.load(Ordering::Relaxed), S3.load(Ordering::Relaxed));
    let before = std::mem::replace(&mut *TAKEN.lock(), now);
    let used = now.0.without(before.0);
    Used {
        requests: Requests {
            dynamodb: used.dynamodb_requests,
            eventbridge: now.1.saturating_sub(before.1),
            s3: now.2.saturating_sub(before.2),
            sqs: used.sqs_requests,
        },
        s3_writes: used.s3_writes,
        capacity: used.capacity(),
    }
}

/// Adds what one answer says it cost: of one table, or of several.
fn add_units<'a>(halves: &AtomicU64, consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) {
    let units: f64 = consumed.into_iter().filter_map(|consumed| consumed.capacity_units).sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number, not below zero")]
    halves.fetch_add((units.max(0.0) * 2.0).round() as u64, Ordering::Relaxed);
}

/// Counts the requests of one service's client, and asks DynamoDB for the capacity of each, which is free.
#[derive(Clone, Copy, Debug)]
pub struct Meter(pub Service);

#[dyn_dispatch_hint]
impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if self.0 == Service::DynamoDb {
            ask_what_it_costs(context.input_mut());
        }
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if context.request().is_some() {
            // Presigned for a client, or failed before it was sent.
            return Ok(());
        }
        let counter = match self.0 {
            Service::DynamoDb => &DYNAMODB,
            Service::EventBridge => &EVENTBRIDGE,
            Service::S3 => &S3,
            Service::Sqs => &SQS,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if self.0 == Service::S3
            && let Some(charged) = config.load::<Metadata>().and_then(|operation| s3_charge(operation.name()))
        {
            charged.fetch_add(1, Ordering::Relaxed);
        }
        match context.output_or_error() {
            Some(Ok(output)) if self.0 == Service::DynamoDb => note_what_it_cost(output),
            // A write whose condition fails is charged by the size of the stored item, but its response has no
            // capacity. Rows written on condition take one unit, except for job rows with much metadata.
            Some(Err(error)) if error.as_operation_error().is_some_and(is_failed_condition) => {
                WRITE_HALVES.fetch_add(Usage::of_row_writes(1).write_halves, Ordering::Relaxed);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The counter of the price class of a request to S3; none if it is free.
fn s3_charge(operation: &str) -> Option<&'static AtomicU64> {
    match operation {
        "DeleteObject" | "DeleteObjects" | "AbortMultipartUpload" => None,
        "PutObject"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload"
        | "ListObjectsV2"
        | "ListParts"
        | "ListMultipartUploads" => Some(&S3_WRITES),
        _ => Some(&S3_READS),
    }
}

fn is_failed_condition(error: &context::Error) -> bool {
    let put = error.downcast_ref::<PutItemError>().is_some_and(PutItemError::is_conditional_check_failed_exception);
    let update = error.downcast_ref::<UpdateItemError>();
    put || update.is_some_and(UpdateItemError::is_conditional_check_failed_exception)
}

fn ask_what_it_costs(input: &mut Input) {
    macro_rules! ask {
        ($($input:ty),+ $(,)?) => {
            $(if let Some(input) = input.downcast_mut::<$input>() {
                input.return_consumed_capacity = Some(ReturnConsumedCapacity::Total);
                return;
            })+
        };
    }
    ask!(
        GetItemInput,
        PutItemInput,
        UpdateItemInput,
        DeleteItemInput,
        QueryInput,
        BatchGetItemInput,
        TransactWriteItemsInput,
        BatchExecuteStatementInput,
    );
}

fn note_what_it_cost(output: &Output) {
    macro_rules! note {
        ($($output:ty => $halves:ident),+ $(,)?) => {
            $(if let Some(output) = output.downcast_ref::<$output>() {
                add_units(&$halves, output.consumed_capacity());
                return;
            })+
        };
    }
    note!(
        GetItemOutput => READ_HALVES,
        QueryOutput => READ_HALVES,
        BatchGetItemOutput => READ_HALVES,
        PutItemOutput => WRITE_HALVES,
        UpdateItemOutput => WRITE_HALVES,
        DeleteItemOutput => WRITE_HALVES,
        TransactWriteItemsOutput => WRITE_HALVES,
        BatchExecuteStatementOutput => WRITE_HALVES,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_to_s3_are_charged_by_their_class() {
        let class = |operation| s3_charge(operation).map(|counter| std::ptr::eq(counter, &raw const S3_WRITES));
        assert_eq!(class("UploadPart"), Some(true));
        assert_eq!(class("GetObject"), Some(false));
        assert_eq!(class("AbortMultipartUpload"), None);
    }
}
