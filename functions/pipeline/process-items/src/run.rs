//! One run over a chunk: gives each item an outcome, as far as time allows.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use jiff::Timestamp;
use rowmill_core::items::input::InputItem;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome};
use rowmill_core::ports::{BatchCall, BatchEnd, BatchRunner, Clock, Entropy, ItemBatch, PortError};
use rowmill_core::text::Record;
use serde_json::Value;

use crate::end::{ChunkEnd, Conclusion, RunError};
pub use crate::limits::RunLimits;
use crate::open_chunk::{ChunkPorts, Delivery};
use crate::prepared::{Prepared, PreparedJobs};
use crate::watch::JobWatch;
use rowmill_core::items::progress::Progress;

/// Time between two looks at the job of a call that may be dropped.
const STOP_LOOK: Duration = Duration::from_secs(2);

/// How long a target may take to hear of a cancel: the skip of the chunk waits for it.
const CANCEL_MAX: Duration = Duration::from_secs(5);

/// State that the runs of a process share.
pub struct Runs {
    pub prepared: PreparedJobs,
    pub batches: Arc<dyn BatchRunner>,
    pub limits: RunLimits,
    pub type_limits: Arc<JobTypeLimits>,
}

impl Runs {
    pub(crate) fn of_chunk<'a>(
        &'a self,
        ports: &'a ChunkPorts,
        delivery: &'a Delivery<'a>,
        prepared: &'a Prepared,
    ) -> ChunkRun<'a> {
        ChunkRun {
            job_guid: delivery.message.job_guid,
            attempt: delivery.message.address.attempt,
            prepared,
            time_limit: delivery.time_limit,
            batches: &*self.batches,
            watch: delivery.watch,
            clock: &*ports.clock,
            entropy: &*ports.entropy,
            limits: self.limits,
            items_at_once: self.type_limits.of(&prepared.spec.job_type).items_at_once,
        }
    }
}

pub(crate) struct ChunkRun<'a> {
    pub job_guid: JobGuid,
    pub attempt: u32,
    pub prepared: &'a Prepared,
    /// The invocation's time limit, less the margin.
    pub time_limit: Timestamp,
    pub batches: &'a dyn BatchRunner,
    /// Tells whether the job has been stopped.
    pub watch: &'a JobWatch,
    pub clock: &'a dyn Clock,
    /// Chance, for jitter.
    pub entropy: &'a dyn Entropy,
    pub limits: RunLimits,
    /// Maximum number of items handed to the processor together, if the job type has such a limit.
    pub items_at_once: Option<u32>,
}

/// What became of a batch.
pub(crate) enum InTime {
    /// It was processed.
    Done(Result<Vec<Result<ItemOutcome, ItemError>>, RunError>),
    /// It took too long.
    Late,
    /// Its job has stopped, and its calls are dropped.
    Stopped(Conclusion),
}

impl ChunkRun<'_> {
    /// Runs the items that are not done yet, a batch at a time, and adds each outcome to `progress`.
    ///
    /// # Errors
    /// See [`RunError`]; `progress` is right all the same.
    pub async fn run(&self, items: &mut [InputItem], progress: &mut Progress) -> Result<Conclusion, RunError> {
        let batch_items = self.batch_items();
        while (progress.done as usize) < items.len() {
            if let Some(end) = self.ended().await? {
                return Ok(end);
            }
            let rest = &mut items[progress.done as usize..];
            let batch_len = batch_len(rest, batch_items);
            let batch = &mut rest[..batch_len];
            // A hanging item must not take the finished ones with it.
            match self.in_time(self.time_limit, batch, BatchCall::Together).await {
                InTime::Late => return Ok(Conclusion::HandOver),
                InTime::Stopped(end) => return Ok(end),
                InTime::Done(results) => {
                    for (item, result) in rest[..batch_len].iter().zip(results?) {
                        progress.add(item, result, self.limits.output_max_bytes);
                    }
                }
            }
        }
        Ok(Conclusion::Commit)
    }

    /// Conclusion of a run that must end before the next item; `None` if the item may begin.
    pub(crate) async fn ended(&self) -> Result<Option<Conclusion>, PortError> {
        let job = self.watch.job(self.job_guid).await?;
        Ok(if job.is_past(self.attempt) {
            Some(Conclusion::End(ChunkEnd::Past))
        } else if job.is_stopped() {
            Some(Conclusion::Skip)
        } else {
            (self.clock.now() >= self.time_limit).then_some(Conclusion::HandOver)
        })
    }

    /// Number of items handed to the processor together.
    pub(crate) fn batch_items(&self) -> usize {
        let at_once = self.items_at_once.map_or(usize::MAX, |items| items as usize);
        self.prepared.processor.batch_items().min(at_once).max(1)
    }

    /// The work's result, unless this time comes first.
    pub async fn before<T>(&self, limit: Timestamp, work: impl Future<Output = T>) -> Option<T> {
        let left = Duration::try_from(limit.duration_since(self.clock.now())).unwrap_or_default();
        match select(pin!(work), self.clock.sleep(left)).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        }
    }

    /// Processes a batch until this time. If the job stops meanwhile, and its processor takes a cancel, it is dropped.
    pub async fn in_time(&self, limit: Timestamp, batch: &mut [InputItem], call: BatchCall) -> InTime {
        let processor = Arc::clone(&self.prepared.processor);
        if !processor.is_cancellable() || self.prepared.spec.is_dry_run() {
            return self.before(limit, self.process(batch, call)).await.map_or(InTime::Late, InTime::Done);
        }
        let well_formed = batch.iter().filter(|item| item.record.is_ok());
        let identifiers: Vec<String> = well_formed.map(|item| Item::identifier(self.job_guid, item.row)).collect();
        let end = {
            let mut work = pin!(self.process(batch, call));
            loop {
                let look_at = limit.min(self.clock.now() + STOP_LOOK);
                if let Some(results) = self.before(look_at, work.as_mut()).await {
                    return InTime::Done(results);
                }
                if self.clock.now() >= limit {
                    return InTime::Late;
                }
                if let Ok(Some(end @ (Conclusion::Skip | Conclusion::End(_)))) = self.ended().await {
                    break end;
                }
            }
        };
        // If the attempt is past, another run may have counted these items, or a later attempt may be at them.
        if end == Conclusion::Skip {
            let hear_by = limit.min(self.clock.now() + CANCEL_MAX);
            self.before(hear_by, processor.cancel(self.attempt, &identifiers)).await;
        }
        InTime::Stopped(end)
    }

    /// Processes a batch and returns a result for each item. Takes the records of the items. Malformed items do not
    /// reach the processor.
    async fn process(
        &self,
        batch: &mut [InputItem],
        call: BatchCall,
    ) -> Result<Vec<Result<ItemOutcome, ItemError>>, RunError> {
        let call = if self.prepared.spec.is_dry_run() { BatchCall::DryRun } else { call };
        let mut settled: Vec<Result<ItemOutcome, ItemError>> = vec![Ok(ItemOutcome::Succeeded); batch.len()];
        let well_formed: Vec<(usize, Item)> = (0..)
            .zip(batch)
            .filter_map(|(place, input)| {
                let record = std::mem::replace(input.record.as_mut().ok()?, Record::Json(Value::Null));
                Some((place, Item { job_guid: self.job_guid, row: input.row, record }))
            })
            .collect();
        let (mut places, mut items): (Vec<usize>, Vec<Item>) = well_formed.into_iter().unzip();
        for retry in 0.. {
            if items.is_empty() {
                break;
            }
            let began = self.clock.now();
            let sent = items.len();
            let processor = Arc::clone(&self.prepared.processor);
            let batch = ItemBatch { processor, items, call, output_max_bytes: self.limits.output_max_bytes };
            let (answered, results) = match self.batches.run(batch).await {
                BatchEnd::Answered { items, results } => (items, results),
                BatchEnd::Held { row } => return Err(RunError::Held { row }),
            };
            if results.len() != sent {
                let message = format!("the processor answered {} of {sent} items", results.len());
                return Err(RunError::TryAgain(message));
            }
            let (mut open_places, mut open_items, mut last_error) = (Vec::new(), Vec::new(), None);
            for ((place, item), result) in places.into_iter().zip(answered).zip(results) {
                match result {
                    Err(error) if error.transient => {
                        open_places.push(place);
                        open_items.push(item);
                        last_error = Some(error);
                    }
                    result => settled[place] = result,
                }
            }
            if let Some(error) = last_error {
                let took = Duration::try_from(self.clock.now().duration_since(began)).unwrap_or_default();
                self.before_retry(retry, took, open_items.len(), &error).await?;
            }
            (places, items) = (open_places, open_items);
        }
        Ok(settled)
    }

    /// Waits before items are tried again, unless the tries are used up, or another try that takes as long as `took`
    /// would not end in time.
    async fn before_retry(&self, retry: u32, took: Duration, open: usize, error: &ItemError) -> Result<(), RunError> {
        let doubled = self.limits.backoff.saturating_mul(2_u32.saturating_pow(retry));
        let wait = doubled.mul_f64(0.5 + self.entropy.fraction() / 2.0);
        if retry >= self.limits.transient_retries || self.clock.now() + wait + took >= self.time_limit {
            return Err(RunError::StillFailing { open, error: error.clone() });
        }
        self.clock.sleep(wait).await;
        Ok(())
    }
}

/// Length of the prefix of these items with that many well-formed ones; at least one.
pub(crate) fn batch_len(items: &[InputItem], well_formed: usize) -> usize {
    let mut left = well_formed;
    let within = items.iter().take_while(|item| {
        let fits = left > 0 || item.record.is_err();
        left = left.saturating_sub(usize::from(item.record.is_ok()));
        fits
    });
    within.count().max(1)
}
