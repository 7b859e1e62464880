//! A job whose chunks are committed faster than its partition key takes writes: the real use cases over the real store,
//! on a DynamoDB that takes 1,000 writes a second of each key. Time is virtual.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::use_cases::{Limits, UseCases};
use acceptance::world::Doubles;
use async_trait::async_trait;
use futures::future::{join, join_all};
use jiff::Timestamp;
use process_items::handler;
use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_aws::sdk::patience;
use rowmill_aws::{Batch, Delivery};
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Clock, Queue, Tallies};
use rowmill_core::wiring::Port;
use serde_json::json;
use tokio::time::Instant;

use crate::contended_server::ContendedServer;
use crate::dynamodb_server::create_job_tables;
use crate::lost_replies::at;

/// The writes that a partition key of DynamoDB takes in a second.
const KEY_WRITES: f64 = 1000.0;

const ITEMS: u64 = 8192;

/// 64 tallies.
const CHUNKS: u64 = ITEMS / 2;

/// The default of `ProcessTimeoutSeconds`.
const INVOCATION: Duration = Duration::from_secs(90);

/// A job that is not complete by then has a fault.
const LONGEST: Duration = Duration::from_secs(600);

struct VirtualClock(Instant);

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let since = i64::try_from(self.0.elapsed().as_millis()).unwrap();
        at(0) + Duration::from_millis(since.unsigned_abs())
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

struct World {
    server: ContendedServer,
    store: Arc<DynamoDbJobStore>,
    clock: Arc<VirtualClock>,
    functions: UseCases,
    /// The ports besides the store and the clock.
    doubles: Doubles,
    /// Messages that wait, with how often they were delivered before.
    waiting: Mutex<VecDeque<(ChunkMessage, u32)>>,
    most_deliveries: Mutex<u32>,
    chunks_per_invocation: usize,
}

async fn world(chunks_per_invocation: usize) -> World {
    let server = ContendedServer::start();
    let client = server.client().await;
    let (jobs, admission) = create_job_tables(&client, 0).await;
    let store = Arc::new(DynamoDbJobStore::new(client, jobs, Some(admission)));
    let clock = Arc::new(VirtualClock(Instant::now()));
    let doubles = Doubles::default();
    let mut ports = doubles.ports(&JobTypeLimits::default());
    ports.jobs = Port::given(store.clone());
    ports.clock = Port::given(clock.clone());
    let limits = Limits::default().but(|limits| limits.create.chunks.max_items = 2);
    let functions = UseCases { ports, limits, job_types: JobTypes::built_in(None) };
    World {
        server,
        store,
        clock,
        functions,
        doubles,
        waiting: Mutex::default(),
        most_deliveries: Mutex::default(),
        chunks_per_invocation,
    }
}

impl World {
    async fn job(&self) -> JobGuid {
        let mut csv = String::from("a,b\n");
        (0..ITEMS).for_each(|n| writeln!(csv, "{n},{n}").unwrap());
        let owner = Owner(Owner::LOCAL.to_owned());
        let stored = self.functions.uploads().store(&owner, "text/csv", None, csv.into()).await.unwrap();
        let request = json!({ "jobType": "validate", "fileGuid": stored.file_guid });
        let request = serde_json::from_value(request).unwrap();
        self.functions.creator().create(&owner, &request, None).await.unwrap().job_guid
    }

    /// Runs `split-job` beside so many workers until the job is complete. Returns how long it took.
    async fn run(&self, workers: usize) -> Duration {
        let begun = Instant::now();
        let split = async {
            let splitter = self.functions.splitter();
            for message in self.doubles.splits.take() {
                let deadline = self.clock.now() + Duration::from_secs(280);
                let wall = Timestamp::now() + Duration::from_secs(280);
                patience::until(wall, splitter.split(&message, deadline)).await.unwrap();
            }
        };
        join(split, join_all((0..workers).map(|_| self.work()))).await;
        begun.elapsed()
    }

    async fn work(&self) {
        let processor = self.functions.processor();
        while self.doubles.completions.backlog().await.unwrap() == 0 && self.clock.0.elapsed() < LONGEST {
            let batch = self.receive();
            if batch.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            let deliveries = batch.iter().enumerate().map(|(place, (message, before))| Delivery {
                message_id: place.to_string(),
                message: message.clone(),
                receive_count: before + 1,
                receipt: String::new(),
            });
            let invocation = Batch { deliveries: deliveries.collect(), deadline: self.clock.now() + INVOCATION };
            let again = patience::until(Timestamp::now() + INVOCATION, handler::handle(&processor, invocation)).await;
            for (place, (message, before)) in batch.into_iter().enumerate() {
                let mut most = self.most_deliveries.lock().unwrap();
                *most = (*most).max(before + 1);
                if again.contains(&place.to_string()) {
                    self.waiting.lock().unwrap().push_back((message, before + 1));
                }
            }
        }
    }

    fn receive(&self) -> Vec<(ChunkMessage, u32)> {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.extend(self.doubles.chunks.take().into_iter().map(|message| (message, 0)));
        let many = waiting.len().min(self.chunks_per_invocation);
        waiting.drain(..many).collect()
    }
}

/// The answers of DynamoDB to a job.
struct Run {
    time: Duration,
    written: u32,
    throttled: u32,
}

async fn run(workers: usize, chunks_per_invocation: usize) -> Run {
    let world = world(chunks_per_invocation).await;
    let job = world.job().await;
    world.server.limit_keys(KEY_WRITES);
    let time = world.run(workers).await;
    let (throttled, written) = world.server.throttled();
    let most_deliveries = *world.most_deliveries.lock().unwrap();
    println!(
        "{workers} workers, {chunks_per_invocation} chunks an invocation: {CHUNKS} chunks in {time:?}, {written} writes, \
         {throttled} throttled attempts"
    );
    let totals = world.store.totals(job, 1).await.unwrap();
    assert_eq!(totals.counts, Counts { succeeded: ITEMS, failed: 0, skipped: 0 });
    assert_eq!(most_deliveries, 1, "no message is given back because of throttling");
    Run { time, written, throttled }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_writes_too_fast_is_throttled_and_no_message_is_delivered_twice() {
    let alone = run(100, 1).await;
    assert!(alone.throttled > 0, "the key takes all that 100 workers commit");
    assert!(alone.time < Duration::from_secs(60), "{:?}", alone.time);
    // A joint commit is one write of the key.
    let together = run(100, 10).await;
    assert!(together.written * 4 < alone.written && together.throttled < alone.throttled);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_writes_slowly_is_not_throttled() {
    assert_eq!(run(1, 1).await.throttled, 0);
}
