use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{Timestamp, Unit};
use rowmill_core::items::input::{InputError, InputItem, read_input};
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::{Job, Priority, Stop, StopCode};
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::spec::{Source, SourceFile, Spec};
use rowmill_core::model::tally::ChunkAddress;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor};
use rowmill_core::ports::{
    Admissions, Ceilings, Clock, Completion, Completions, Entropy, Jobs, NewJob, Objects, Tallies,
};
use rowmill_core::progress::update::stop_attempt;
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Dialect, Format, Head};
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::{CountingEntropy, InMemoryJobStore, InMemoryObjects, InlineBatchRunner, ManualClock};

use crate::end::{ChunkEnd, Conclusion, RunError};
use crate::prepared::Prepared;
use crate::run::{ChunkRun, RunLimits};
use crate::watch::JobWatch;
use rowmill_core::items::progress::Progress;

/// Fails each row with the errors of its script, one a call. A row without a script succeeds.
#[derive(Default)]
struct Scripted {
    script: HashMap<u64, Vec<ItemError>>,
    calls: Mutex<HashMap<u64, usize>>,
    /// Stops the job at this row.
    stop_at: Option<(u64, Arc<InMemoryJobStore>)>,
    /// Ends the job at this row, as if every chunk had been committed by others.
    end_at: Option<(u64, Arc<InMemoryJobStore>)>,
    /// The time that each row takes.
    slow: Option<(Arc<ManualClock>, Duration)>,
    hangs_at: Option<u64>,
    /// The items that it was told not to process, if it takes a cancel.
    cancelled: Option<Mutex<Vec<String>>>,
}

#[async_trait]
impl ItemProcessor for Scripted {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        if let Some((row, jobs)) = &self.stop_at
            && *row == item.row
        {
            let job = jobs.job(item.job_guid).await.unwrap();
            stop_attempt(&**jobs, &job, &stop()).await.unwrap();
        }
        if let Some((row, jobs)) = &self.end_at
            && *row == item.row
        {
            let (job, totals) = (jobs.job(item.job_guid).await.unwrap(), jobs.totals(item.job_guid, 1).await.unwrap());
            let end = Completion::of(&job, &totals, None, Timestamp::UNIX_EPOCH, Duration::ZERO);
            jobs.complete(&end.unwrap()).await.unwrap();
        }
        if let Some((clock, duration)) = &self.slow {
            clock.advance(*duration);
        }
        if self.hangs_at == Some(item.row) {
            std::future::pending::<()>().await;
        }
        let call = {
            let mut calls = self.calls.lock().unwrap();
            let calls = calls.entry(item.row).or_default();
            *calls += 1;
            *calls - 1
        };
        let error = self.script.get(&item.row).and_then(|errors| errors.get(call.min(errors.len() - 1)));
        error.map_or(Ok(ItemOutcome::Succeeded), |error| Err(error.clone()))
    }

    fn batch_items(&self) -> usize {
        2
    }

    fn is_cancellable(&self) -> bool {
        self.cancelled.is_some()
    }

    async fn cancel(&self, attempt: u32, identifiers: &[String]) {
        assert_eq!(attempt, 1);
        self.cancelled.as_ref().unwrap().lock().unwrap().extend_from_slice(identifiers);
    }
}

fn stop() -> Stop {
    let at = Timestamp::UNIX_EPOCH;
    Stop { code: StopCode::Cancelled, message: "enough".into(), row: None, offset: None, at }
}

const FILE: &[u8] = b"1\n2\n3\n4\n5\n";

struct Bench {
    jobs: Arc<InMemoryJobStore>,
    clock: Arc<ManualClock>,
    entropy: CountingEntropy,
    batches: InlineBatchRunner,
    job_guid: JobGuid,
    spec: Spec,
    items_at_once: Option<u32>,
}

impl Bench {
    async fn new() -> Self {
        let (jobs, clock) = (Arc::new(InMemoryJobStore::default()), Arc::new(ManualClock::default()));
        let entropy = CountingEntropy::default();
        let (job_guid, file_guid) = (entropy.job_guid(clock.now()), entropy.file_guid());
        let spec = spec(job_guid, file_guid, clock.now());
        let new = NewJob {
            job: Job { started_at: Some(clock.now()), ..Job::waiting(&spec, clock.now(), clock.now()) },
            spec: spec.clone(),
            ceilings: Ceilings { owner: 1, job_type: 1, system: 1 },
            idempotency: None,
            dedupe: None,
        };
        jobs.create(&new).await.unwrap();
        Self { jobs, clock, entropy, batches: InlineBatchRunner, job_guid, spec, items_at_once: None }
    }

    async fn run(&self, processor: Scripted, time: Duration) -> (Result<Conclusion, RunError>, Progress) {
        self.run_of(Arc::new(processor), time).await
    }

    async fn run_of(&self, processor: Arc<Scripted>, time: Duration) -> (Result<Conclusion, RunError>, Progress) {
        let mut items = self.items(5).await.unwrap();
        let columns = self.spec.head.columns.clone().into();
        let prepared = Prepared { spec: Arc::new(self.spec.clone()), columns, processor };
        let watch = JobWatch::new(self.jobs.clone(), self.clock.clone(), Duration::ZERO);
        let run = ChunkRun {
            job_guid: self.job_guid,
            attempt: 1,
            prepared: &prepared,
            time_limit: self.clock.now() + time,
            batches: &self.batches,
            watch: &watch,
            clock: &*self.clock,
            entropy: &self.entropy,
            limits: RunLimits {
                transient_retries: 2,
                backoff: Duration::from_secs(1),
                margin: Duration::from_secs(2),
                item_timeout: Duration::from_secs(20),
                passed_over_max: 1,
                output_max_bytes: 10,
                ..RunLimits::default()
            },
            items_at_once: self.items_at_once,
        };
        let mut progress = Progress::default();
        (run.run(&mut items, &mut progress).await, progress)
    }

    async fn done(&self, processor: Scripted) -> Progress {
        let (end, progress) = self.run(processor, MINUTES).await;
        assert_eq!((end.unwrap(), progress.done), (Conclusion::Commit, 5));
        progress
    }

    /// The file as a chunk with this number of items.
    async fn items(&self, items: u32) -> Result<Vec<InputItem>, InputError> {
        let objects = InMemoryObjects::default();
        let etag = objects.put("k", "text/csv", FILE.into(), None).await.unwrap();
        let file = SourceFile { etag, ..self.spec.source.file().unwrap().clone() };
        let spec = Spec { source: Source::File(file), ..self.spec.clone() };
        let message = ChunkMessage {
            job_guid: self.job_guid,
            owner: spec.owner.clone(),
            address: ChunkAddress { attempt: 1, tally: 0, index: 0 },
            epoch: 0,
            chunk: Chunk { offset: 0, length: FILE.len() as u64, first_row: 1, items, mode: ChunkMode::Items },
            delivery_mode: DeliveryMode::Fresh,
            max_concurrency: None,
            stored: None,
            part: None,
            job_type: None,
            priority: Priority::Normal,
            lane: None,
        };
        read_input(&objects, &spec, &spec.head.columns.clone().into(), &message).await
    }
}

fn spec(job_guid: JobGuid, file_guid: FileGuid, created_at: Timestamp) -> Spec {
    let file = SourceFile { file_guid: Some(file_guid), key: "k".into(), etag: "e".into(), size: FILE.len() as u64 };
    let dialect = Dialect { format: Format::Csv, delimiter: b',' };
    Spec {
        job_guid,
        job_type: "scripted".into(),
        created_at,
        source: Source::File(file),
        head: Head { dialect, columns: vec!["n".into()], header: None, data_start: 0 },
        limits: ChunkLimits { max_items: 5, max_bytes: 100, max_record_bytes: 100 },
        ..fixtures::spec()
    }
}

const MINUTES: Duration = Duration::from_secs(300);

#[tokio::test]
async fn a_permanent_error_fails_its_item_and_no_other() {
    let error = ItemError::permanent("bad", "not good").in_column("n");
    let script = HashMap::from([(2, vec![error])]);
    let progress = Bench::new().await.done(Scripted { script, ..Scripted::default() }).await;
    assert_eq!((progress.counts.succeeded, progress.counts.failed), (4, 1));
    let failed = &progress.run_output.failed[0];
    assert_eq!((failed.row, failed.offset, failed.raw.as_deref()), (2, 2, Some("2")));
    assert_eq!((failed.code.as_str(), failed.column.as_deref()), ("bad", Some("n")));
}

#[tokio::test]
async fn an_item_is_retried_until_its_transient_error_passes() {
    let flaky = ItemError::transient("busy", "not now");
    let then_bad = ItemError::permanent("bad", "not good");
    let script = HashMap::from([(3, vec![flaky.clone(), then_bad])]);
    let progress = Bench::new().await.done(Scripted { script, ..Scripted::default() }).await;
    assert_eq!((progress.counts.succeeded, progress.counts.failed), (4, 1), "the last error counts");
}

#[tokio::test]
async fn a_chunk_with_lasting_transient_errors_returns_to_its_queue_uncounted() {
    let script = HashMap::from([(3, vec![ItemError::transient("busy", "not now")])]);
    let (end, _) = Bench::new().await.run(Scripted { script, ..Scripted::default() }, MINUTES).await;
    assert!(matches!(&end, Err(RunError::StillFailing { open: 1, error }) if error.code == "busy"), "{end:?}");
}

#[tokio::test]
async fn a_run_that_runs_out_of_time_reports_its_progress() {
    let (end, progress) = Bench::new().await.run(Scripted::default(), Duration::ZERO).await;
    assert_eq!((end.unwrap(), progress), (Conclusion::HandOver, Progress::default()));
    let bench = Bench::new().await;
    let slow = Scripted { slow: Some((Arc::clone(&bench.clock), Duration::from_secs(10))), ..Scripted::default() };
    let (end, progress) = bench.run(slow, Duration::from_secs(30)).await;
    assert_eq!((end.unwrap(), progress.done, progress.counts.succeeded), (Conclusion::HandOver, 4, 4));
}

#[tokio::test]
async fn an_item_that_hangs_does_not_discard_the_batches_before_it() {
    let bench = Bench::new().await;
    let (end, progress) = bench.run(Scripted { hangs_at: Some(4), ..Scripted::default() }, MINUTES).await;
    assert_eq!((end.unwrap(), progress.done), (Conclusion::HandOver, 2), "its batch is run again from its start");
}

#[tokio::test]
async fn after_a_stop_no_further_batch_begins() {
    let bench = Bench::new().await;
    let processor = Scripted { stop_at: Some((2, bench.jobs.clone())), ..Scripted::default() };
    let (end, progress) = bench.run(processor, MINUTES).await;
    assert_eq!((end.unwrap(), progress.done, progress.counts.succeeded), (Conclusion::Skip, 2, 2));
}

#[tokio::test]
async fn a_run_whose_job_has_ended_begins_no_further_batch() {
    let bench = Bench::new().await;
    let processor = Scripted { end_at: Some((1, bench.jobs.clone())), ..Scripted::default() };
    let (end, progress) = bench.run(processor, MINUTES).await;
    assert_eq!((end.unwrap(), progress.done), (Conclusion::End(ChunkEnd::Past), 2));
}

#[tokio::test]
async fn a_call_is_dropped_when_its_job_stops_if_its_target_takes_a_cancel() {
    for takes_cancel in [true, false] {
        let bench = Bench::new().await;
        let began = bench.clock.now();
        let stop_at = Some((3, bench.jobs.clone()));
        let cancelled = takes_cancel.then(Mutex::default);
        let processor = Arc::new(Scripted { stop_at, hangs_at: Some(4), cancelled, ..Scripted::default() });
        let (end, progress) = bench.run_of(Arc::clone(&processor), MINUTES).await;
        let took = bench.clock.now() - began;
        let told = processor.cancelled.as_ref().map(|told| told.lock().unwrap().clone());
        match takes_cancel {
            true => assert_eq!((end.unwrap(), took.total(Unit::Second).unwrap() as i64), (Conclusion::Skip, 2)),
            false => assert_eq!((end.unwrap(), took.total(Unit::Second).unwrap() as i64), (Conclusion::HandOver, 300)),
        }
        assert_eq!(progress.done, 2, "its batch counts for nothing");
        let of_batch = || [3, 4].map(|row| Item::identifier(bench.job_guid, row)).to_vec();
        assert_eq!(told, takes_cancel.then(of_batch));
    }
}

#[tokio::test]
async fn nobody_is_told_of_a_cancel_if_another_run_has_counted_the_items() {
    let bench = Bench::new().await;
    let end_at = Some((3, bench.jobs.clone()));
    let cancelled = Some(Mutex::default());
    let processor = Arc::new(Scripted { end_at, hangs_at: Some(4), cancelled, ..Scripted::default() });
    let (end, _) = bench.run_of(Arc::clone(&processor), MINUTES).await;
    assert_eq!(end.unwrap(), Conclusion::End(ChunkEnd::Past));
    assert!(processor.cancelled.as_ref().unwrap().lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_chunk_that_is_read_as_another_number_of_items_is_not_processed() {
    let read = Bench::new().await.items(4).await;
    assert!(matches!(read, Err(InputError::OtherItems { expected: 4, found: 5 })), "{read:?}");
}

#[tokio::test]
async fn a_type_may_have_fewer_items_processed_at_once_than_its_batches_hold() {
    for (items_at_once, done) in [(None, 2), (Some(1), 1), (Some(5), 2)] {
        let bench = Bench { items_at_once, ..Bench::new().await };
        let stops_at_once = Scripted { stop_at: Some((1, Arc::clone(&bench.jobs))), ..Scripted::default() };
        let (_, progress) = bench.run(stops_at_once, MINUTES).await;
        // The job is looked at after each batch.
        assert_eq!(progress.done, done, "{items_at_once:?}");
    }
}
