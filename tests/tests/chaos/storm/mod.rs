//! A job while everything fails at once. Function processes are killed. AWS calls fail, sometimes all of them for
//! seconds. Messages of all kinds are repeated, some as dead letters. The sweep runs again and again. At the end every
//! count is exact.
//!
//! ```console
//! $ cargo test --test chaos storm                                            # 20,000 rows, as in CI
//! $ ROWMILL_CHAOS=long ROWMILL_CHAOS_SEED=7 cargo test --test chaos storm    # 200,000 rows
//! ```
//!
//! Both print a report. The seed decides all random choices of the test, but not the timing of the machine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::Write as _;
use std::time::{Duration, Instant};

use acceptance::copies::{chunk_messages, completion_message, split_message};
use acceptance::fault_proxy::{Fault, Weather};
use acceptance::local_stack::{EventListener, JobWatch, LocalStack, answer, kill};
use fastrand::Rng;
use reqwest::StatusCode;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use serde_json::{Value, json};

use crate::stack::{CHUNK_MAX_ITEMS, ChaosStack, alone_on_the_stack, seed};
use crate::storm::file::StormFile;

mod file;

/// The size of a storm.
struct Size {
    rows: u64,
    /// Number of processes killed while they work.
    kills: usize,
    /// For how many chunks the message is also sent as a dead letter.
    dead_letters: usize,
    patience: Duration,
}

const SHORT: Size = Size { rows: 20_000, kills: 10, dead_letters: 2, patience: Duration::from_secs(900) };
const LONG: Size = Size { rows: 200_000, kills: 40, dead_letters: 10, patience: Duration::from_secs(1800) };

/// The function that ends a job.
const COMPLETE: &str = "complete-job";

const WEATHER: Weather = Weather {
    refused: 0.02,
    reply_lost: 0.02,
    throttled: 0.02,
    conflict: 0.02,
    transaction_conflict: 0.7,
    latency: Duration::ZERO,
};

#[test]
fn every_row_is_counted_once_in_spite_of_all_faults() {
    alone_on_the_stack(async |chaos| {
        let size = if std::env::var("ROWMILL_CHAOS").is_ok_and(|form| form == "long") { LONG } else { SHORT };
        let storm = Storm::begin(chaos, size).await;
        let ended = tokio::select! {
            ended = storm.watch() => ended,
            never = storm.kill() => match never {},
            never = storm.kill_completion() => match never {},
            never = storm.send_again() => match never {},
            never = storm.lose_messages() => match never {},
            never = storm.refuse_everything() => match never {},
            never = storm.sweep() => match never {},
        };
        chaos.proxy.set(Weather::default());
        storm.report();
        // Only after the end: a dead letter of the completion, long after the last chunk, would end the job as failed.
        let completion = completion_message(storm.job.parse().expect("a guid"));
        chaos.stack.send("CompletionsDeadLetterQueueUrl", &completion).await;
        chaos.stack.queues_are_empty().await;
        assert_eq!(chaos.stack.job(&storm.job).await, ended, "nothing moves after the end");
        storm.check_weather();
        storm.check_counts(&ended).await;
        storm.check_rows().await;
        storm.check_events(&ended).await;
    });
}

/// A job under faults.
struct Storm {
    chaos: &'static ChaosStack,
    /// The job's events, as another system receives them.
    event_listener: EventListener<'static>,
    size: Size,
    file: StormFile,
    /// The messages of all chunks.
    chunks: Vec<ChunkMessage>,
    job: String,
    began: Instant,
    rng: RefCell<Rng>,
    /// The last known number of dispatched items.
    dispatched: Cell<u64>,
    kills: RefCell<BTreeMap<&'static str, usize>>,
    copies: Cell<usize>,
    dead_letters: Cell<usize>,
    outages: Cell<usize>,
    sweeps: Cell<usize>,
    unavailable: Cell<usize>,
}

impl Storm {
    async fn begin(chaos: &'static ChaosStack, size: Size) -> Self {
        let (file, event_listener) = (StormFile::new(size.rows), chaos.stack.listen().await);
        let upload = chaos.stack.upload("text/csv", file.bytes.clone()).await;
        chaos.proxy.set(WEATHER);
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let params = json!({ "dataset": "storm", "key": "id", "schema": schema });
        let request = json!({ "jobType": "import", "fileGuid": upload, "params": params });
        let (began, unavailable) = (Instant::now(), Cell::new(0));
        let job = create(&chaos.stack, &request, &unavailable).await;
        let chunks = chunk_messages(job.parse().expect("a guid"), &file.bytes, CHUNK_MAX_ITEMS);
        Self {
            chaos,
            event_listener,
            size,
            file,
            chunks,
            job,
            began,
            rng: RefCell::new(Rng::with_seed(seed())),
            dispatched: Cell::default(),
            kills: RefCell::default(),
            copies: Cell::default(),
            dead_letters: Cell::default(),
            outages: Cell::default(),
            sweeps: Cell::default(),
            unavailable,
        }
    }

    fn chance<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.borrow_mut())
    }

    async fn sleep(&self, millis: std::ops::Range<u64>) {
        tokio::time::sleep(Duration::from_millis(self.chance(|rng| rng.u64(millis)))).await;
    }

    /// Polls the job like a client, until it has ended.
    async fn watch(&self) -> Value {
        let mut watch = JobWatch::default();
        loop {
            let (status, shown) = answer(self.chaos.stack.get(&format!("/api/jobs/{}", self.job))).await;
            if status == StatusCode::OK {
                watch.look(&shown);
                self.dispatched.set(shown["itemCount"].as_u64().expect("a count"));
                if shown["finishedAt"].is_string() {
                    return shown;
                }
            } else {
                check_unavailable(status, &shown, &self.unavailable);
            }
            assert!(self.began.elapsed() < self.size.patience, "the job does not end: {shown}");
            self.sleep(50..150).await;
        }
    }

    /// Kills one process at a time, up to the planned number; `process-items` most often, because it works most.
    async fn kill(&self) -> Infallible {
        while self.kills() < self.size.kills {
            self.sleep(100..500).await;
            let victims = ["process-items", "process-items", "process-items", "split-job"];
            let function = self.chance(|rng| victims[rng.usize(..victims.len())]);
            let processes = self.chaos.stack.processes_of(function);
            if let Some(pid) = self.chance(|rng| rng.choice(&processes)) {
                self.count_kills(function, usize::from(kill(pid)));
            }
        }
        std::future::pending().await
    }

    /// Kills the completer once, when it is about to end the job.
    async fn kill_completion(&self) -> Infallible {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.dispatched.get() < self.size.rows {
                continue;
            }
            // After the split, only a completer takes the lease.
            let job = self.chaos.stack.job_row(&self.job).await;
            if job.flag("splitDone") && job.has("leaseHolder") {
                self.count_kills(COMPLETE, self.chaos.stack.kill_processes_of(COMPLETE));
                return std::future::pending().await;
            }
        }
    }

    /// The kills by [`kill`](Self::kill). Completers are not counted: their number depends on the machine.
    fn kills(&self) -> usize {
        self.kills.borrow().iter().filter(|(function, _)| **function != COMPLETE).map(|(_, count)| count).sum()
    }

    fn count_kills(&self, function: &'static str, count: usize) {
        *self.kills.borrow_mut().entry(function).or_default() += count;
    }

    /// A random dispatched chunk, if one is dispatched yet.
    fn dispatched_chunk(&self) -> Option<&ChunkMessage> {
        let is_dispatched = |message: &ChunkMessage| {
            message.chunk.first_row + u64::from(message.chunk.items) <= self.dispatched.get() + 1
        };
        let dispatched = self.chunks.partition_point(is_dispatched);
        (dispatched > 0).then(|| &self.chunks[self.chance(|rng| rng.usize(..dispatched))])
    }

    /// Repeats messages that were sent before.
    async fn send_again(&self) -> Infallible {
        let (stack, job_guid) = (&self.chaos.stack, self.job.parse().expect("a guid"));
        loop {
            self.sleep(100..300).await;
            let Some(message) = self.dispatched_chunk() else { continue };
            let delivery_mode =
                self.chance(|rng| if rng.bool() { DeliveryMode::Fresh } else { DeliveryMode::Recovered });
            stack.send("ItemsQueueUrl", &ChunkMessage { delivery_mode, ..message.clone() }).await;
            match self.chance(|rng| rng.u8(..8)) {
                0 => stack.send("JobsQueueUrl", &split_message(job_guid)).await,
                1 => stack.send("CompletionsQueueUrl", &completion_message(job_guid)).await,
                _ => {}
            }
            self.copies.set(self.copies.get() + 1);
        }
    }

    /// Sends messages to their dead-letter queues, as if all deliveries had failed: the messages of some chunks, and
    /// the first message of the split, which has progressed since.
    async fn lose_messages(&self) -> Infallible {
        let stack = &self.chaos.stack;
        while self.dead_letters.get() < self.size.dead_letters {
            self.sleep(500..1000).await;
            let Some(message) = self.dispatched_chunk() else { continue };
            stack.send("ItemsDeadLetterQueueUrl", message).await;
            if self.dead_letters.replace(self.dead_letters.get() + 1) == 0 {
                stack.send("JobsDeadLetterQueueUrl", &split_message(self.job.parse().expect("a guid"))).await;
            }
        }
        std::future::pending().await
    }

    /// Refuses all calls for a while, longer than any client retries.
    async fn refuse_everything(&self) -> Infallible {
        loop {
            self.sleep(1000..8000).await;
            self.chaos.proxy.outage(Duration::from_millis(1000));
            self.outages.set(self.outages.get() + 1);
        }
    }

    async fn sweep(&self) -> Infallible {
        loop {
            self.chaos.stack.sweep().await;
            self.sweeps.set(self.sweeps.get() + 1);
            self.sleep(1500..2500).await;
        }
    }

    fn report(&self) {
        let (dead_letters, sweeps, outages) = (self.dead_letters.get(), self.sweeps.get(), self.outages.get());
        tell(format_args!(
            "seed {}, {} rows in {:.1} s; killed {:?}; {} copies of chunk messages, {dead_letters} dead letters, {sweeps} \
             sweeps, {outages} outages; {} answers 503; {}",
            seed(),
            self.size.rows,
            self.began.elapsed().as_secs_f64(),
            self.kills.borrow(),
            self.copies.get(),
            self.unavailable.get(),
            self.chaos.proxy.injected(),
        ));
    }

    /// Asserts that the planned faults did happen.
    fn check_weather(&self) {
        assert!(self.kills() >= self.size.kills, "only {} kills", self.kills());
        let injected = self.chaos.proxy.injected();
        for fault in [Fault::Refused, Fault::ReplyLost, Fault::Throttled, Fault::Conflict, Fault::Outage] {
            assert!(injected.count(fault) > 0, "no call got the fault {fault:?}");
        }
    }

    async fn check_counts(&self, ended: &Value) {
        let stack = &self.chaos.stack;
        assert_eq!((&ended["status"], &ended["outcome"]), (&json!("completed"), &json!("partial")), "{ended}");
        let number = |name: &str| ended[name].as_u64().expect("a count");
        assert_eq!((number("itemCount"), number("itemsSkipped")), (self.size.rows, 0), "{ended}");
        assert_eq!(number("itemsSucceeded") + number("itemsFailed"), self.size.rows, "{ended}");

        let rows = stack.job_rows(&self.job).await;
        assert_eq!(rows["job"].number("completions"), 1);
        let tallies: Vec<_> = rows.iter().filter(|(key, _)| key.starts_with("tally#1#")).map(|(_, row)| row).collect();
        assert_eq!(tallies.len() as u64, rows["job"].number("tallies"));
        let sum = |name: &str| tallies.iter().map(|tally| tally.number(name)).sum::<u64>();
        assert_eq!((sum("done"), sum("expected")), (self.chunks.len() as u64, self.chunks.len() as u64));
        assert_eq!((sum("succeeded"), sum("failed")), (number("itemsSucceeded"), number("itemsFailed")));
        for scope in ["owner#local", "type#import", "system"] {
            assert_eq!(stack.active(scope).await, 0, "{scope}");
        }
        // The dead letters that were sent, and any others.
        let letters = stack.dead_letters(&self.job).await;
        let about = |kind: &str| letters.iter().filter(|letter| letter["about"] == kind).count();
        assert!(about("items") >= self.size.dead_letters, "{letters:?}");
        assert!(about("split") >= 1 && about("completion") >= 1, "{letters:?}");
    }

    /// Asserts that every row is a record, or is listed as failed with its reason.
    async fn check_rows(&self) {
        let stack = &self.chaos.stack;
        let failed = stack.items(&self.job, "failed", 1000).await;
        let listed = failed
            .iter()
            .map(|item| (item["row"].as_u64().expect("a row"), item["code"].as_str().expect("a code").to_owned()));
        let listed: Vec<_> = listed.collect();
        assert!(listed.is_sorted_by(|a, b| a.0 < b.0), "failed rows are listed in order, each once");
        let listed: BTreeMap<u64, String> = listed.into_iter().collect();
        let mut recorded = vec![0_u8; usize::try_from(self.size.rows).expect("fits") + 1];
        for record in stack.records("storm").await {
            recorded[record.text("key").parse::<usize>().expect("keys are row numbers")] += 1;
        }
        let mut given_up = 0;
        for row in 1..=self.size.rows {
            let records = recorded[usize::try_from(row).expect("fits")];
            match (self.file.fault_of(row), listed.get(&row).map(String::as_str)) {
                (Some(code), Some(found)) if found == code => assert_eq!(records, 0, "row {row}"),
                (None, None) => assert_eq!(records, 1, "row {row}"),
                // Two processes were killed while the row ran alone, or all deliveries of its chunk failed. A good
                // row may have been written before.
                (expected, Some("poison" | "dead_letter")) => {
                    assert!(records == 0 || (records == 1 && expected.is_none()), "row {row}");
                    given_up += 1;
                }
                (expected, found) => panic!("row {row}: expected {expected:?}, listed as {found:?}"),
            }
        }
        tell(format_args!("{} rows are listed as failed, {given_up} of them given up", listed.len()));
    }

    /// Asserts that another system received the job's start and its end, even if the functions that wrote them died.
    async fn check_events(&self, ended: &Value) {
        let events = self.event_listener.heard(&self.job, 2).await;
        assert!(events.contains_key(&format!("{}/1/running", self.job)), "{events:?}");
        let event = &events[&format!("{}/1/completed", self.job)]["detail"];
        for field in ["outcome", "itemsSucceeded", "itemsFailed"] {
            assert_eq!(event[field], ended[field], "{event}");
        }
    }
}

/// Prints to standard error directly, because the captured output of a passing test is not shown.
fn tell(what: std::fmt::Arguments<'_>) {
    // A closed standard error must not fail the test.
    let _ = writeln!(std::io::stderr(), "storm: {what}");
}

/// Requests the job until the API confirms it.
async fn create(stack: &LocalStack, request: &Value, unavailable: &Cell<usize>) -> String {
    loop {
        let (status, shown) = answer(stack.post("/api/jobs").header("idempotency-key", "storm").json(request)).await;
        if status == StatusCode::ACCEPTED {
            return shown["jobGuid"].as_str().expect("a jobGuid").to_owned();
        }
        check_unavailable(status, &shown, unavailable);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Asserts that the API answers 503: the only error that a client may get.
fn check_unavailable(status: StatusCode, problem: &Value, unavailable: &Cell<usize>) {
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
    unavailable.set(unavailable.get() + 1);
}
