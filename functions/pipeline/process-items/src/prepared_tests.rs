use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rowmill_aws::host::batch_threads::BatchThreads;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use rowmill_core::ports::{Admissions, Ceilings, Clock, Entropy, NewJob};
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::{CountingEntropy, InMemoryJobStore, InMemoryObjects, InlineBatchRunner, ManualClock};

use crate::prepared::PreparedJobs;

/// A job type whose processors take 60 MiB each. Counts them.
#[derive(Clone, Default)]
struct Heavy(Arc<AtomicUsize>);

impl JobType for Heavy {
    fn name(&self) -> &str {
        "heavy"
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ItemProcessor for Heavy {
    async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    fn held_bytes(&self) -> usize {
        60 * 1024 * 1024
    }
}

/// A job type that compiles until it is told to end. Counts what it compiles.
#[derive(Clone, Default)]
struct Slow {
    ends: Arc<(Mutex<bool>, Condvar)>,
    compiled: Arc<AtomicUsize>,
}

impl JobType for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        self.compiled.fetch_add(1, Ordering::SeqCst);
        let (ends, told) = &*self.ends;
        let wait = told.wait_timeout_while(ends.lock().unwrap(), PATIENCE, |ends| !*ends).unwrap();
        assert!(!wait.1.timed_out(), "the other job is held up");
        Ok(Arc::new(Heavy::default()))
    }
}

/// Time limit of a test for events that must come by themselves.
const PATIENCE: Duration = Duration::from_secs(20);

async fn create(jobs: &InMemoryJobStore) -> JobGuid {
    create_of(jobs, "heavy").await
}

async fn create_of(jobs: &InMemoryJobStore, job_type: &str) -> JobGuid {
    let clock = ManualClock::default();
    let job_guid = ENTROPY.with(|entropy| entropy.job_guid(clock.now()));
    let spec = Spec { job_guid, job_type: job_type.into(), ..fixtures::spec() };
    let new = NewJob {
        job: Job::waiting(&spec, clock.now(), clock.now()),
        spec,
        ceilings: Ceilings { owner: 9, job_type: 9, system: 9 },
        idempotency: None,
        dedupe: None,
    };
    jobs.create(&new).await.unwrap();
    job_guid
}

/// A chunk of this job.
fn chunk_of(job_guid: JobGuid) -> ChunkMessage {
    ChunkMessage { job_guid, ..fixtures::chunk_message(0, 0) }
}

thread_local! {
    static ENTROPY: CountingEntropy = CountingEntropy::default();
}

#[tokio::test]
async fn the_jobs_that_a_process_keeps_are_bounded_by_bytes() {
    let (jobs, heavy) = (Arc::new(InMemoryJobStore::default()), Heavy::default());
    let [one, two, three] = [create(&jobs).await, create(&jobs).await, create(&jobs).await];
    let job_types = JobTypes::of([Arc::new(heavy.clone()) as Arc<dyn JobType>]);
    let objects = Arc::new(InMemoryObjects::default());
    let prepared = PreparedJobs::new(jobs, objects, job_types, Arc::new(InlineBatchRunner));
    for job in [one, two, one, two] {
        prepared.get(&chunk_of(job)).await.unwrap();
    }
    assert_eq!(heavy.0.load(Ordering::Relaxed), 2, "two of them fit into 128 MiB");
    for job in [three, two, three] {
        prepared.get(&chunk_of(job)).await.unwrap();
    }
    assert_eq!(heavy.0.load(Ordering::Relaxed), 3, "the third one takes the place of the one used longest ago");
    prepared.get(&chunk_of(one)).await.unwrap();
    assert_eq!(heavy.0.load(Ordering::Relaxed), 4);
}

// One worker: a compile on a task would hold up everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_job_that_compiles_for_long_holds_up_no_other_job_and_is_compiled_once() {
    let (jobs, slow) = (Arc::new(InMemoryJobStore::default()), Slow::default());
    let [one, other] = [create_of(&jobs, "slow").await, create(&jobs).await];
    let job_types = [Arc::new(slow.clone()) as Arc<dyn JobType>, Arc::new(Heavy::default())];
    let batches = Arc::new(BatchThreads::new(PATIENCE));
    let prepared =
        Arc::new(PreparedJobs::new(jobs, Arc::new(InMemoryObjects::default()), JobTypes::of(job_types), batches));
    let get = |job| {
        let prepared = Arc::clone(&prepared);
        tokio::spawn(async move { prepared.get(&chunk_of(job)).await.map(|prepared| prepared.spec.job_guid) })
    };
    let waiting = [get(one), get(one)];
    while slow.compiled.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(other).await.unwrap().unwrap(), other);
    *slow.ends.0.lock().unwrap() = true;
    slow.ends.1.notify_all();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap(), one);
    }
    assert_eq!(slow.compiled.load(Ordering::SeqCst), 1);
}
