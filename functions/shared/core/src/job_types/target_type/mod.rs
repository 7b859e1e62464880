//! Job types in any language: each item is sent to a target, which says how it ended.
//!
//! Items are sent in batches. The target answers with those that failed, in the shape in which a Lambda function
//! answers SQS, and with outputs of the others, if its job type is to have any:
//!
//! ```json
//! {"batchItemFailures": [{"itemIdentifier": "jobGuid/7", "code": "no_such_street", "column": "street"}],
//!  "outputs": [{"itemIdentifier": "jobGuid/8", "output": {"lat": 52.5, "lon": 13.4}}]}
//! ```
//!
//! An item that is not among the failures has succeeded. Of a failure `code`, `message`, `column` and `transient` may
//! be left out; a transient one is tried again. What is done where there is no such answer:
//!
//! | what happened | what is done |
//! |---|---|
//! | the target does not answer, or is busy | its items are tried again, in place and then by way of the queue, like those of any outage |
//! | it refuses the call | the call's items fail (`target_refused`) |
//! | the answer is bad | it is asked once more, since effects are at least once anyway; then the call's items fail (`bad_answer`) |
//! | it failed as a whole | the items are sent again in halves, see `divide` |

mod answer;
mod divide;

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

pub use answer::{BadAnswer, Results, read_answer};

use self::divide::{Division, TARGET_FAILED, TARGET_UNAVAILABLE};
use super::size::json_bytes;
use crate::model::ids::JobGuid;
use crate::model::spec::{OutputFile, Spec};
use crate::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use crate::ports::{REQUEST_MAX_BYTES, Target, TargetError, TargetItem, TargetRequest};

/// How often a target is asked before its answer counts as bad.
const ASKED_MAX: usize = 2;

/// How often a target is asked about an item of an isolated chunk before the item is to blame for its failing.
const ALONE_ASKED_MAX: usize = 3;

/// How many bytes of outputs are held of the items that are handed over at once, which are those of one chunk. No chunk may
/// have more, see the template's `ChunkOutputMaxBytes`, so an item beyond that fails in any case.
pub const OUTPUTS_MAX_BYTES: usize = 8 * 1024 * 1024;

/// A job type whose items are processed by a target.
pub struct TargetType {
    name: String,
    calls: TargetCalls,
    target: Option<Arc<dyn Target>>,
}

/// How a target is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetCalls {
    /// How many items a call has at most.
    pub batch_items: usize,
    /// How many calls of one chunk are made at once.
    pub concurrency: usize,
    /// Whether items have outputs.
    pub outputs: bool,
}

impl TargetType {
    /// The type of this name, with this target; `None` where params are only checked.
    pub fn new(name: impl Into<String>, calls: TargetCalls, target: Option<Arc<dyn Target>>) -> Self {
        Self { name: name.into(), calls, target }
    }
}

impl JobType for TargetType {
    fn name(&self) -> &str {
        &self.name
    }

    /// They are for the target to judge.
    fn takes_any_params(&self) -> bool {
        true
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
        results.pop().unwrap_or_else(|| Err(ItemError::transient(TARGET_UNAVAILABLE, "there is no answer")))
    }

    /// A target that fails on a single item whenever it is asked, after all the time it took to get here, fails on that
    /// item.
    async fn process_alone(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let mut asked = 1;
        loop {
            match self.process(item).await {
                Err(error) if error.transient && error.code == TARGET_FAILED => {
                    if asked == ALONE_ASKED_MAX {
                        return Err(ItemError { transient: false, ..error });
                    }
                    asked += 1;
                }
                result => return result,
            }
        }
    }

    fn output(&self) -> Option<OutputFile> {
        self.calls.outputs.then(|| OutputFile {
            name: "outputs.jsonl".into(),
            content_type: "application/x-ndjson".into(),
            header: None,
            gzip: false,
        })
    }

    fn concurrency(&self) -> usize {
        self.calls.concurrency
    }

    /// As many as the calls made at once take. At least two: of a single item that a target fails on nobody can say whether
    /// the item is to blame.
    fn batch_items(&self) -> usize {
        self.calls.batch_items.saturating_mul(self.calls.concurrency).max(2)
    }

    async fn process_batch(&self, items: &[Item]) -> Vec<Result<ItemOutcome, ItemError>> {
        let Some(target) = &self.target else {
            let error = ItemError::transient(TARGET_UNAVAILABLE, "this process knows no targets");
            return vec![Err(error); items.len()];
        };
        let caller = Caller { target: &**target, processor: self, output_bytes: AtomicUsize::new(0) };
        let Batches { ranges, too_large } = caller.batches(items);
        let mut division = Division::of(items.len());
        for place in too_large {
            let message =
                format!("the item takes more than the {REQUEST_MAX_BYTES} bytes of JSON that a call may have");
            division.settle(place, Err(ItemError::permanent("item_too_large", message)));
        }
        let calls: Vec<_> = ranges.into_iter().map(|range| caller.call(items, range)).collect();
        let calls = stream::iter(calls).buffered(self.calls.concurrency.max(1)).collect::<Vec<_>>().await;
        // The last one on top: the division begins with the first.
        for (range, end) in calls.into_iter().rev() {
            division.note(range, end);
        }
        while let Some(range) = division.next() {
            let (range, end) = caller.call(items, range).await;
            division.note(range, end);
        }
        division.into_results()
    }
}

/// The target, with what every call says of the job.
struct Caller<'a> {
    target: &'a dyn Target,
    processor: &'a TargetProcessor,
    /// How many bytes the outputs of all calls so far take.
    output_bytes: AtomicUsize,
}

/// How items are sent.
struct Batches {
    /// Where each batch is among them.
    ranges: Vec<Range<usize>>,
    /// Where those are that no call can take.
    too_large: Vec<usize>,
}

impl Caller<'_> {
    fn request<'i>(&'i self, items: &'i [Item]) -> TargetRequest<'i> {
        let TargetProcessor { job_guid, job_type, params, .. } = self.processor;
        TargetRequest { job_guid: *job_guid, job_type, params, items: items.iter().map(TargetItem::from).collect() }
    }

    /// Cuts the items into batches that are neither too many items nor too many bytes.
    fn batches(&self, items: &[Item]) -> Batches {
        let room = REQUEST_MAX_BYTES.saturating_sub(json_bytes(&self.request(&[])));
        let batch_items = self.processor.calls.batch_items.max(1);
        let mut batches = Batches { ranges: Vec::new(), too_large: Vec::new() };
        let (mut start, mut bytes) = (0, 0);
        for (place, item) in items.iter().enumerate() {
            // A comma stands between two items.
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

    /// Sends these items and reads the answer; a bad one is asked for again.
    async fn call(&self, items: &[Item], range: Range<usize>) -> (Range<usize>, Result<Results, TargetError>) {
        let request = self.request(&items[range.clone()]);
        let identifiers: Vec<&str> = request.items.iter().map(|item| item.item_identifier.as_str()).collect();
        let mut asked = 0;
        let end = loop {
            asked += 1;
            let answer = self.target.call(&request).await.and_then(|bytes| {
                let read = read_answer(&bytes, &identifiers, self.processor.calls.outputs);
                read.map_err(|bad| TargetError::bad_answer(bad.to_string()))
            });
            if asked == ASKED_MAX || !matches!(answer, Err(TargetError::BadAnswer { .. })) {
                break answer;
            }
        };
        (range, end.map(|results| self.bounded(results)))
    }

    /// Lets go of the outputs that do not fit beside those of the calls before.
    fn bounded(&self, mut results: Results) -> Results {
        for result in &mut results {
            let Ok(ItemOutcome::Output(output)) = &*result else { continue };
            let bytes = output.len();
            if self.output_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > OUTPUTS_MAX_BYTES {
                self.output_bytes.fetch_sub(bytes, Ordering::Relaxed);
                let message =
                    format!("the outputs of its chunk take more than {OUTPUTS_MAX_BYTES} bytes with this one");
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
