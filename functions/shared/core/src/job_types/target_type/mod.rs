//! Job types in any language: items are sent to a target, which returns their results.
//!
//! Items are sent in batches. The answer lists the items that failed, in the format in which a Lambda function answers
//! SQS. If the job type is configured with outputs, the answer can also have outputs of the other items:
//!
//! ```json
//! {"batchItemFailures": [{"itemIdentifier": "jobGuid/7", "code": "no_such_street", "column": "street"}],
//!  "outputs": [{"itemIdentifier": "jobGuid/8", "output": {"lat": 52.5, "lon": 13.4}}]}
//! ```
//!
//! An item that is not listed as failed has succeeded. In a failure, `code`, `message`, `column` and `transient` are
//! optional; items with a transient failure are retried. If there is no valid answer:
//!
//! | what happened | reaction |
//! |---|---|
//! | the target does not answer, or is busy | the items are retried, first in the same run and then by the queue, as in any outage |
//! | the target refuses the call | the items of the call fail (`target_refused`) |
//! | the answer is invalid | the call is repeated once, which is safe because processing is at least once; then its items fail (`bad_answer`) |
//! | the target failed the call as a whole | the items are sent again in halves, see `bisect` |
//!
//! A target that answers later gets the items as a [task](crate::model::task), and accepts them with
//! `{"accepted": true}`, or reacts as above. If it does not answer, it may have them.

mod answer;
mod bisect;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use serde_json::{Map, Value};

use self::answer::is_accepted;
pub use answer::{BadAnswer, Results, read_answer};

use self::bisect::{Bisection, TARGET_FAILED, TARGET_UNAVAILABLE, item_error};
use crate::model::ids::JobGuid;
use crate::model::spec::{OutputFile, Spec};
use crate::model::task::TaskTerms;
use crate::ports::processor::{
    CostClass, HandedOver, InputKind, Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError,
};
use crate::ports::{REQUEST_MAX_BYTES, Target, TargetCancel, TargetError, TargetItem, TargetRequest, TargetTask};
use crate::text::json_bytes;

/// Maximum number of attempts to get a valid answer.
const ATTEMPTS_MAX: usize = 2;

/// Maximum number of attempts for an item of an isolated chunk. If the target fails on all, the item is the cause.
const ATTEMPTS_ALONE_MAX: usize = 3;

/// Maximum size of the outputs that are held for one batch, in bytes. A batch belongs to one chunk, and no chunk may
/// have more outputs (`RunLimits` of `process-items`), so an item beyond this limit would fail anyway.
pub const OUTPUTS_MAX_BYTES: usize = 8 * 1024 * 1024;

/// A job type whose items are processed by a target.
pub struct TargetType {
    name: String,
    calls: TargetCalls,
    input: InputKind,
    target: Option<Arc<dyn Target>>,
    tasks: Option<TaskTerms>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetCalls {
    /// Maximum number of items in a call.
    pub batch_items: usize,
    /// Maximum number of concurrent calls for one chunk.
    pub concurrency: usize,
    /// True if items have outputs.
    pub outputs: bool,
    /// True if a call may be dropped when its job stops, and the target wants to be told.
    pub cancel: bool,
}

impl TargetType {
    /// The type with this name and target. Without a target (`None`) it can only check params.
    pub fn new(name: impl Into<String>, calls: TargetCalls, target: Option<Arc<dyn Target>>) -> Self {
        Self { name: name.into(), calls, input: InputKind::File, target, tasks: None }
    }

    /// The same type with items from elsewhere. Without input ([`InputKind::None`]) the target is called once per job.
    #[must_use]
    pub fn with_input(self, input: InputKind) -> Self {
        Self { input, ..self }
    }

    /// The same type, whose items are tasks: of workers, which get requests and give answers like a target, or of a
    /// target that answers later.
    #[must_use]
    pub fn with_tasks(self, terms: TaskTerms) -> Self {
        Self { tasks: Some(terms), ..self }
    }
}

impl JobType for TargetType {
    fn name(&self) -> &str {
        &self.name
    }

    /// The target decides which params are valid.
    fn takes_any_params(&self) -> bool {
        true
    }

    fn input(&self) -> InputKind {
        self.input
    }

    fn tasks(&self) -> Option<TaskTerms> {
        self.tasks
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(TargetProcessor {
            job_guid: spec.job_guid,
            job_type: self.name.clone(),
            params: spec.params.clone(),
            calls: self.calls,
            target: self.target.clone(),
        }))
    }
}

struct TargetProcessor {
    job_guid: JobGuid,
    job_type: String,
    params: Map<String, Value>,
    calls: TargetCalls,
    target: Option<Arc<dyn Target>>,
}

#[async_trait]
impl ItemProcessor for TargetProcessor {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut results = self.process_batch(std::slice::from_ref(item)).await;
        results.pop().unwrap_or_else(|| {
            Err(ItemError::transient(TARGET_UNAVAILABLE, "the target returned no result for this item"))
        })
    }

    /// The chunk has failed for a long time before its items are processed alone. So if the target fails on this item
    /// at every attempt, the item is the cause and fails permanently.
    async fn process_alone(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut attempts = 1;
        loop {
            match self.process(item).await {
                Err(error) if error.transient && error.code == TARGET_FAILED => {
                    if attempts == ATTEMPTS_ALONE_MAX {
                        return Err(ItemError { transient: false, ..error });
                    }
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    fn output(&self) -> Option<OutputFile> {
        self.calls.outputs.then(OutputFile::lines)
    }

    fn concurrency(&self) -> usize {
        self.calls.concurrency
    }

    fn cost(&self) -> CostClass {
        CostClass::Remote
    }

    /// The items of all concurrent calls. At least two: if a target fails on a single item and answers no other call,
    /// it cannot be decided whether the item or the target is the cause.
    fn batch_items(&self) -> usize {
        self.calls.batch_items.saturating_mul(self.calls.concurrency).max(2)
    }

    async fn hand_over(&self, items: &[Item], task: TargetTask) -> HandedOver {
        let Some(caller) = self.caller() else { return HandedOver::Answered(unconnected(items)) };
        let request = TargetRequest { task: Some(task), ..caller.request(items) };
        let identifiers: Vec<&str> = request.items.iter().map(|item| item.item_identifier.as_str()).collect();
        let error = match caller.target.call(&request).await {
            Ok(bytes) if is_accepted(&bytes) => return HandedOver::Accepted,
            Ok(bytes) => match read_answer(&bytes, &identifiers, self.calls.outputs) {
                Ok(results) => return HandedOver::Answered(caller.bounded(results)),
                Err(bad) => TargetError::bad_answer(bad.to_string()),
            },
            Err(error) => error,
        };
        match error {
            TargetError::Unreachable { may_have_it: true, .. } => HandedOver::Unknown(item_error(&error)),
            _ => HandedOver::Answered(vec![Err(item_error(&error)); items.len()]),
        }
    }

    fn is_cancellable(&self) -> bool {
        self.calls.cancel
    }

    async fn cancel(&self, attempt: u32, item_identifiers: &[String]) {
        let Some(caller) = self.caller() else { return };
        let cancel = Some(TargetCancel { attempt, item_identifiers });
        // Its outcomes count for nothing, whether it hears of that or not.
        caller.target.call(&TargetRequest { cancel, ..caller.request(&[]) }).await.ok();
    }

    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let Some(caller) = self.caller() else { return unconnected(items) };
        let Batches { ranges, too_large } = caller.batches(items);
        let mut bisection = Bisection::of(items.len());
        for place in too_large {
            let message =
                format!("the item does not fit into a call, which may have {REQUEST_MAX_BYTES} bytes of JSON");
            bisection.set(place, Err(ItemError::permanent("item_too_large", message)));
        }
        let calls: Vec<_> = ranges.into_iter().map(|range| caller.call(items, range)).collect();
        let calls = stream::iter(calls).buffered(self.calls.concurrency.max(1)).collect::<Vec<_>>().await;
        // In reverse order: the bisection continues with the range that was recorded last, so it starts with the first.
        for (range, end) in calls.into_iter().rev() {
            bisection.record(range, end);
        }
        while let Some(range) = bisection.next() {
            let (range, end) = caller.call(items, range).await;
            bisection.record(range, end);
        }
        bisection.into_results()
    }
}

impl TargetProcessor {
    fn caller(&self) -> Option<Caller<'_>> {
        let target = &**self.target.as_ref()?;
        Some(Caller { target, processor: self, output_bytes: AtomicUsize::new(0) })
    }
}

fn unconnected(items: &[Item]) -> Results {
    let error = ItemError::transient(TARGET_UNAVAILABLE, "this process has no connection to the target");
    vec![Err(error); items.len()]
}

/// Calls the target for one batch of a job.
struct Caller<'a> {
    target: &'a dyn Target,
    processor: &'a TargetProcessor,
    /// Size of the outputs of all calls so far.
    output_bytes: AtomicUsize,
}

/// The division of the items into calls.
struct Batches {
    /// The range of the items in each call.
    ranges: Vec<Range<usize>>,
    /// The items that are too large for any call.
    too_large: Vec<usize>,
}

impl Caller<'_> {
    fn request<'i>(&'i self, items: &'i [Item]) -> TargetRequest<'i> {
        let TargetProcessor { job_guid, job_type, params, .. } = self.processor;
        let items = items.iter().map(TargetItem::from).collect();
        TargetRequest::of(*job_guid, job_type, params, items)
    }

    /// Divides the items into batches within the limits of items and bytes.
    fn batches(&self, items: &[Item]) -> Batches {
        let room = REQUEST_MAX_BYTES.saturating_sub(json_bytes(&self.request(&[])));
        let batch_items = self.processor.calls.batch_items.max(1);
        let mut batches = Batches { ranges: Vec::new(), too_large: Vec::new() };
        let (mut start, mut bytes) = (0, 0);
        for (place, item) in items.iter().enumerate() {
            // One more byte for the comma between two items.
            let size = json_bytes(&TargetItem::from(item)) + 1;
            if size > room || bytes + size > room || place - start == batch_items {
                batches.push(start..place);
                (start, bytes) = (place, 0);
            }
            if size > room {
                batches.too_large.push(place);
                start = place + 1;
            } else {
                bytes += size;
            }
        }
        batches.push(start..items.len());
        batches
    }

    /// Sends these items and reads the answer. Repeats the call if the answer is invalid.
    async fn call(&self, items: &[Item], range: Range<usize>) -> (Range<usize>, Result<Results, TargetError>) {
        let request = self.request(&items[range.clone()]);
        let identifiers: Vec<&str> = request.items.iter().map(|item| item.item_identifier.as_str()).collect();
        let mut attempts = 0;
        let end = loop {
            attempts += 1;
            let answer = self.target.call(&request).await.and_then(|bytes| {
                let read = read_answer(&bytes, &identifiers, self.processor.calls.outputs);
                read.map_err(|bad| TargetError::bad_answer(bad.to_string()))
            });
            if attempts == ATTEMPTS_MAX || !matches!(answer, Err(TargetError::BadAnswer { .. })) {
                break answer;
            }
        };
        (range, end.map(|results| self.bounded(results)))
    }

    /// Drops outputs that exceed [`OUTPUTS_MAX_BYTES`] together with the outputs of the calls before. Their items fail.
    fn bounded(&self, mut results: Results) -> Results {
        for result in &mut results {
            let Ok(ItemOutcome::Output(output)) = &*result else { continue };
            let bytes = output.len();
            if self.output_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > OUTPUTS_MAX_BYTES {
                self.output_bytes.fetch_sub(bytes, Ordering::Relaxed);
                let message = format!("with this output, the outputs of the chunk exceed {OUTPUTS_MAX_BYTES} bytes");
                *result = Err(ItemError::permanent("output_too_large", message));
            }
        }
        results
    }
}

impl Batches {
    fn push(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.ranges.push(range);
        }
    }
}
