//! The pipeline as discrete events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;

use super::event::{Chunks, Event, Timed};
use super::limits::{
    KEY_READS, KEY_WRITES, NETWORK_BYTES, NEW_TABLE_WRITES, PREFIX_GETS, ROW_BYTES, RUN_SECONDS, SCANNED_BYTES,
    SPLIT_SECONDS, TABLE_DOUBLES_SECONDS, TIMES, WORKERS_AT_FIRST, WORKERS_PER_SECOND,
};
use super::resource::Resource;
use super::result::{Limit, Outcome, limit_of};
use super::scenario::{CHUNKS_PER_TALLY, Order, Scenario, TALLIES_MAX, Work};

/// Runs a job. Returns when it has ended and what limited it.
pub fn run(scenario: &Scenario) -> Outcome {
    if scenario.tallies() > TALLIES_MAX {
        return Outcome::too_long(scenario);
    }
    let mut model = Model::new(scenario);
    model.at(scenario.listing() + TIMES.delivery + TIMES.cold_start, Event::Split);
    while let Some(Reverse(next)) = model.events.pop() {
        model.now = next.at;
        match next.event {
            Event::Split => model.split(),
            Event::Cut => model.count(),
            Event::SplitEnd => model.end_split(),
            Event::Send { tally, released_by } => model.send(tally, released_by),
            Event::Begun { chunks, items } => model.process(chunks, &items),
            Event::Write { chunks, rows, begun } => model.write(chunks, rows, begun),
            Event::Continued { chunks } => model.go_on(chunks),
            Event::Processed(chunks) => model.commit(chunks),
            Event::Committed { tally, chunks } => model.committed(tally, chunks),
            Event::Free => model.free(),
            Event::Grow => model.grow(),
        }
    }
    model.outcome()
}

#[derive(Clone, Copy, Default)]
struct Tally {
    chunks: u64,
    done: u64,
    is_counted: bool,
    is_sent: bool,
}

impl Tally {
    const fn is_half_done(&self) -> bool {
        self.done * 2 >= self.chunks
    }
}

struct Model<'a> {
    scenario: &'a Scenario,
    now: f64,
    events: BinaryHeap<Reverse<Timed>>,
    planned: u64,
    rng: Rng,

    tallies: Vec<Tally>,
    cut: usize,
    split_since: f64,
    split_busy: f64,
    /// When the splitter has what it reads.
    read_to: f64,
    folded: u64,

    /// The messages that wait: the tally of each. The position of its chunk is not needed.
    queue: VecDeque<u32>,
    busy: u64,
    started: u64,
    grows_at: f64,
    is_growing: bool,
    worked: f64,
    chunks_left: u64,
    rows_left: u64,
    rows_done: u64,
    continuations: u64,
    ended_at: f64,

    /// The partition key with the job row and the totals, and with the tallies if these have no keys of their own.
    job_writes: Resource,
    job_reads: Resource,
    tally_writes: Vec<Resource>,
    record_keys: Resource,
    records_table: Resource,
    gets: Resource,
}

impl<'a> Model<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let chunks = scenario.chunks();
        let mut tallies = vec![Tally::default(); scenario.tallies() as usize];
        for (number, tally) in (0..).zip(&mut tallies) {
            tally.chunks = (chunks - number * CHUNKS_PER_TALLY).min(CHUNKS_PER_TALLY);
        }
        let keys = if scenario.tally_keys > 1 { scenario.tally_keys } else { 0 };
        let at_first = if scenario.warm_table { scenario.table_writes } else { NEW_TABLE_WRITES };
        Self {
            scenario,
            now: 0.0,
            events: BinaryHeap::new(),
            planned: 0,
            rng: Rng::with_seed(scenario.seed),
            tallies,
            cut: 0,
            split_since: 0.0,
            split_busy: 0.0,
            read_to: 0.0,
            folded: 0,
            queue: VecDeque::new(),
            busy: 0,
            started: 0,
            grows_at: 0.0,
            is_growing: false,
            worked: 0.0,
            chunks_left: chunks,
            rows_left: scenario.rows,
            rows_done: 0,
            continuations: 0,
            ended_at: 0.0,
            job_writes: Resource::new("writes of the job's key", KEY_WRITES),
            job_reads: Resource::new("reads of the job's key", KEY_READS),
            tally_writes: vec![Resource::new("writes of the tallies' keys", KEY_WRITES); keys],
            record_keys: Resource::new("writes of the records' keys", KEY_WRITES * scenario.buckets as f64),
            records_table: Resource::growing(
                "writes of the records table",
                at_first,
                TABLE_DOUBLES_SECONDS,
                scenario.table_writes,
            ),
            gets: Resource::new("reads of the file's prefix", PREFIX_GETS),
        }
    }

    fn at(&mut self, at: f64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse(Timed { at, number: self.planned, event }));
    }

    fn tally_key(&mut self, tally: u32) -> &mut Resource {
        match self.tally_writes.len() {
            0 => &mut self.job_writes,
            keys => &mut self.tally_writes[tally as usize % keys],
        }
    }

    /// The splitter reads a tally's bytes, while it works on the tally before, and puts its index.
    fn split(&mut self) {
        if self.split_since == 0.0 {
            self.split_since = self.now;
        }
        let Some(tally) = self.tallies.get(self.cut) else { return };
        let bytes = (tally.chunks * self.scenario.chunk_items()) as f64 * ROW_BYTES;
        self.read_to = self.read_to.max(self.split_since) + bytes / self.scenario.split_bytes;
        self.read_to += self.scenario.opening(tally.chunks);
        let stored = self.read_to.max(self.now) + bytes / SCANNED_BYTES + TIMES.s3 + TIMES.dynamodb;
        self.split_busy += stored - self.now;
        self.at(stored, Event::Cut);
    }

    /// The splitter counts the tally, and sends it if it may.
    fn count(&mut self) {
        let (number, now) = (self.cut, self.now);
        // Its row; the job's, of two units; the tally of which half must be done.
        let put = self.tally_key(number as u32).take(now, 1.0);
        let counted = self.job_writes.take(now, 2.0).max(put).max(self.job_reads.take(now, 2.0));
        let mut done = counted + 2.0 * TIMES.dynamodb;
        self.split_busy += 2.0 * TIMES.dynamodb;
        self.tallies[number].is_counted = true;
        let ahead = self.scenario.tallies_ahead() as usize;
        if number.checked_sub(ahead).is_none_or(|before| self.tallies[before].is_half_done()) {
            self.tallies[number].is_sent = true;
            done += TIMES.sqs;
            self.split_busy += TIMES.sqs;
            self.at(done, Event::Send { tally: number as u32, released_by: None });
        }
        self.cut += 1;
        if done - self.split_since > SPLIT_SECONDS {
            // The next invocation goes on, and begins to read.
            self.split_since = 0.0;
            done += TIMES.sqs + TIMES.delivery;
        }
        let next = if self.cut < self.tallies.len() { Event::Split } else { Event::SplitEnd };
        self.at(done, next);
    }

    fn end_split(&mut self) {
        let now = self.now;
        self.ended_at = self.ended_at.max(self.job_writes.take(now, 3.0));
    }

    fn send(&mut self, tally: u32, released_by: Option<u32>) {
        if let Some(by) = released_by {
            let now = self.now;
            self.tally_key(by).take(now, 1.0);
        }
        let chunks = self.tallies[tally as usize].chunks;
        self.queue.extend(std::iter::repeat_n(tally, chunks as usize));
        self.poll();
    }

    /// Workers that the queue has by now.
    fn workers(&self) -> u64 {
        let grown = WORKERS_AT_FIRST + (self.now - self.grows_at).max(0.0) * WORKERS_PER_SECOND;
        (grown as u64).clamp(1, self.scenario.workers)
    }

    /// Gives messages to the workers that are free.
    fn poll(&mut self) {
        if self.grows_at == 0.0 {
            self.grows_at = self.now;
        }
        while !self.queue.is_empty() && self.busy < self.workers() {
            self.begin();
        }
        if !self.is_growing && !self.queue.is_empty() && self.workers() < self.scenario.workers {
            self.is_growing = true;
            let next = self.now + 1.0 / WORKERS_PER_SECOND;
            self.at(next, Event::Grow);
        }
    }

    fn grow(&mut self) {
        self.is_growing = false;
        self.poll();
    }

    fn begin(&mut self) {
        self.busy += 1;
        let mut begins = self.now + TIMES.delivery;
        if self.busy > self.started {
            self.started = self.busy;
            begins += TIMES.cold_start;
        }
        let mut taken = Chunks::new();
        let mut items = Vec::new();
        while items.len() < self.scenario.chunks_per_invocation.max(1) as usize {
            let place = match self.scenario.order {
                Order::Sent => 0,
                Order::Shuffled => self.rng.usize(..self.queue.len().max(1)),
            };
            if self.queue.is_empty() {
                break;
            }
            self.queue.swap(0, place);
            let Some(tally) = self.queue.pop_front() else { break };
            *taken.entry(tally).or_default() += 1;
            items.push(self.scenario.chunk_items().min(self.rows_left));
            self.rows_left -= items.last().copied().unwrap_or_default();
        }
        self.at(begins, Event::Begun { chunks: taken, items });
    }

    /// A worker reads the job row, once, and the text of each chunk, and processes the items.
    fn process(&mut self, chunks: Chunks, items: &[u64]) {
        let now = self.now;
        let rows: u64 = items.iter().sum();
        let read = self.job_reads.take(now, 1.0).max(self.gets.take(now, items.len() as f64));
        let text = TIMES.dynamodb + TIMES.s3 + rows as f64 * ROW_BYTES / NETWORK_BYTES;
        let mut took = text + self.scenario.processing(items);
        self.rows_done += rows;
        if self.scenario.work == Work::Import {
            // Two rounds of requests for each batch of 250 rows; the chunks write side by side.
            let rounds = items.iter().max().map_or(0, |items| items.div_ceil(250)) * 2;
            took += rounds as f64 * 2.0 * TIMES.dynamodb;
            self.at(read + took, Event::Write { chunks, rows, begun: now });
        } else {
            self.ready(now, read + took, chunks);
        }
        self.worked += took + TIMES.delivery;
    }

    fn write(&mut self, chunks: Chunks, rows: u64, begun: f64) {
        let now = self.now;
        let written = self.record_keys.take(now, rows as f64).max(self.records_table.take(now, rows as f64));
        self.ready(begun, written, chunks);
    }

    /// The items are done then. What does not fit into an invocation goes on in the next ones.
    fn ready(&mut self, begun: f64, mut done: f64, chunks: Chunks) {
        let count = chunks.values().sum();
        for invocation in 1..=((done - begun) / RUN_SECONDS) as u64 {
            self.at(begun + invocation as f64 * RUN_SECONDS, Event::Continued { chunks: count });
            done += TIMES.s3 + TIMES.dynamodb + TIMES.sqs + TIMES.delivery;
            self.continuations += count;
        }
        self.at(done, Event::Processed(chunks));
    }

    /// A checkpoint and a sign of life for each chunk.
    fn go_on(&mut self, chunks: u64) {
        let now = self.now;
        self.job_writes.take(now, 2.0 * chunks as f64);
    }

    /// The chunks of an invocation that are on the same tally share commits. The worker is free when the last is
    /// written.
    fn commit(&mut self, chunks: Chunks) {
        let (mut free, mut commits) = (self.now, Vec::new());
        for (tally, mut left) in chunks {
            while left > 0 {
                let together = left.min(self.scenario.chunks_per_commit.max(1));
                left -= together;
                let now = self.now;
                let at = self.tally_key(tally).take(now, 1.0) + TIMES.dynamodb;
                commits.push((at, tally, together));
            }
        }
        for (at, tally, chunks) in commits {
            free = free.max(at);
            self.at(at, Event::Committed { tally, chunks });
        }
        self.at(free, Event::Free);
    }

    fn committed(&mut self, number: u32, chunks: u64) {
        let place = number as usize;
        let tally = &mut self.tallies[place];
        let was_half_done = tally.is_half_done();
        tally.done += chunks;
        let (is_half_done, is_closed) = (tally.is_half_done(), tally.done == tally.chunks);
        self.chunks_left -= chunks;
        if is_half_done && !was_half_done {
            self.release(place + self.scenario.tallies_ahead() as usize, number);
        }
        if is_closed {
            // The row of the totals holds the numbers of all that are folded.
            let units = ((200 + 5 * self.folded) as f64 / 1024.0).ceil();
            self.folded += 1;
            let at = self.job_writes.take(self.now, units) + TIMES.dynamodb;
            self.ended_at = self.ended_at.max(at);
        }
    }

    /// The run that makes a tally half done sends the one that waits for it.
    fn release(&mut self, next: usize, number: u32) {
        let Some(tally) = self.tallies.get_mut(next).filter(|tally| tally.is_counted && !tally.is_sent) else { return };
        tally.is_sent = true;
        let read = self.job_reads.take(self.now, 2.0) + TIMES.dynamodb;
        let sent = read + TIMES.s3 + TIMES.sqs;
        self.at(sent, Event::Send { tally: next as u32, released_by: Some(number) });
    }

    fn free(&mut self) {
        self.busy -= 1;
        self.poll();
    }

    fn outcome(self) -> Outcome {
        assert_eq!((self.chunks_left, self.rows_done), (0, self.scenario.rows), "each row is processed once");
        let seconds = self.ended_at.max(self.now) + TIMES.end;
        let worker_seconds = self.worker_seconds(seconds);
        let mut limits: Vec<Limit> = [&self.job_writes, &self.job_reads, &self.record_keys, &self.records_table]
            .into_iter()
            .chain([&self.gets])
            .chain(self.tally_writes.iter())
            .map(|resource| Limit::of(resource, seconds))
            .collect();
        limits.push(Limit { name: "the splitter", utilization: self.split_busy / seconds, waited: 0.0 });
        limits.push(Limit { name: "workers", utilization: self.worked / worker_seconds, waited: 0.0 });
        Outcome {
            scenario: *self.scenario,
            seconds: Some(seconds),
            limit: limit_of(&limits),
            continuations: self.continuations,
            limits,
        }
    }

    /// Seconds for which all workers together could have worked.
    fn worker_seconds(&self, until: f64) -> f64 {
        let most = self.scenario.workers as f64;
        let at_first = WORKERS_AT_FIRST.min(most);
        let (time, growing) = ((until - self.grows_at).max(0.0), (most - at_first) / WORKERS_PER_SECOND);
        let grown = time.min(growing);
        (at_first + WORKERS_PER_SECOND * grown / 2.0) * grown + most * (time - grown)
    }
}
