use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight, Suspects};
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::states::{Phase, Status};
use rowmill_core::model::job::{Job, Stop};
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::{Mark, MarkKind, Tally};
use rowmill_core::model::task::TaskTerms;
use rowmill_testing::fixtures;

use crate::end::{ChunkEnd, Conclusion};
use crate::plan::{Facts, Plan, RunMode, Step};

const EPOCH: Timestamp = Timestamp::UNIX_EPOCH;

/// Differences from a first delivery of a fresh message of a running job whose chunks have begun.
#[derive(Clone)]
struct Case {
    redelivered: bool,
    message: ChunkMessage,
    job: Option<Job>,
    has_begun: bool,
    tally: Option<Tally>,
    checkpoint: Option<Checkpoint>,
    tasks: Option<TaskTerms>,
    limits: &'static str,
}

impl Case {
    fn new() -> Self {
        let job = Job { deadline_at: at(1000), first_chunk_at: Some(EPOCH), ..fixtures::job_in(Status::Running) };
        let message = fixtures::chunk_message(0, 1);
        let (redelivered, has_begun) = (false, false);
        let (tally, checkpoint, tasks) = (None, None, None);
        Self { redelivered, message, job: Some(job), has_begun, tally, checkpoint, tasks, limits: "{}" }
    }

    /// A message of this mode, with all that a delivery of it reads.
    fn of(delivery_mode: DeliveryMode) -> Self {
        let message = ChunkMessage { delivery_mode, ..Self::new().message };
        let checkpoint = Some(blank());
        Self { message, tally: Some(tally()), checkpoint, ..Self::new() }
    }

    fn job(self, change: impl FnOnce(Job) -> Job) -> Self {
        Self { job: self.job.map(change), ..self }
    }

    fn plan(&self) -> Result<Plan, Step> {
        let type_limits = JobTypeLimits::parse(self.limits).unwrap();
        let facts = Facts {
            message: &self.message,
            redelivered: self.redelivered,
            type_limits: &type_limits,
            tasks: self.tasks,
            job: self.job.clone().map(Arc::new),
            has_begun: self.has_begun,
            tally: self.tally.clone(),
            checkpoint: self.checkpoint.clone(),
        };
        facts.plan(at(100))
    }
}

fn at(seconds: u64) -> Timestamp {
    EPOCH + Duration::from_secs(seconds)
}

fn blank() -> Checkpoint {
    Checkpoint::blank(fixtures::chunk_message(0, 1).address, EPOCH)
}

fn tally() -> Tally {
    let chunk = fixtures::chunk_message(0, 0).chunk;
    Tally::of(1, 0, chunk.start(), &[chunk, chunk], EPOCH)
}

fn end(end: ChunkEnd) -> Result<Plan, Step> {
    conclude(Conclusion::End(end))
}

fn conclude(conclusion: Conclusion) -> Result<Plan, Step> {
    Ok(Plan::Conclude(conclusion))
}

fn run(mode: RunMode) -> Result<Plan, Step> {
    Ok(Plan::Run(mode))
}

fn stopped(job: Job) -> Job {
    Job { phase: Phase::Stopping(Stop::deadline_exceeded(EPOCH)), ..job }
}

fn paused(job: Job) -> Job {
    Job { phase: Phase::Paused(None), ..job }
}

fn noted(until: u64, deaths: u32, items: u32) -> Option<Checkpoint> {
    Some(Checkpoint { isolated: true, in_flight: Some(InFlight::of_run(at(until), deaths, items)), ..blank() })
}

#[test]
fn a_message_is_dropped_if_its_job_is_gone_past_or_paused() {
    let gone = Case { job: None, ..Case::new() };
    let ended = Case::new().job(|_| fixtures::job_in(Status::Completed));
    let redriven = Case::new().job(|job| Job { attempt: 2, ..job });
    let paused = Case::new().job(paused);
    for (case, expected) in
        [(gone, ChunkEnd::Past), (ended, ChunkEnd::Past), (redriven, ChunkEnd::Past), (paused, ChunkEnd::Dropped)]
    {
        assert_eq!(case.plan(), end(expected));
        assert_eq!(Case { redelivered: true, ..case }.plan(), end(expected), "nothing else is read");
    }
}

#[test]
fn a_chunk_that_may_have_run_is_looked_up_and_one_that_is_accounted_for_only_repeats_what_follows() {
    assert_eq!(Case::new().plan(), run(RunMode::Plain), "a first delivery reads neither tally nor checkpoint");
    let again = Case { redelivered: true, ..Case::new() };
    assert_eq!(again.plan(), Err(Step::ReadTally));
    let open = Case { tally: Some(tally()), ..again };
    assert_eq!(open.plan(), Err(Step::ReadCheckpoint));
    assert_eq!(Case { checkpoint: Some(blank()), ..open.clone() }.plan(), run(RunMode::Plain));
    for mode in [DeliveryMode::Recovered, DeliveryMode::Isolated] {
        assert_eq!(Case { tally: None, ..Case::of(mode) }.plan(), Err(Step::ReadTally));
    }
    let mark = Mark { kind: MarkKind::Clean, run: RunId::from_bytes([1; 7]) };
    let mut committed = tally();
    committed.marks[1] = Some(mark);
    let closed_without_it = Tally { done: 2, ..tally() };
    for tally in [committed, closed_without_it] {
        let case = Case { tally: Some(tally.clone()), ..open.clone() }.job(stopped);
        assert_eq!(case.plan(), conclude(Conclusion::Repeat(Box::new(tally))));
    }
}

#[test]
fn a_stopped_job_is_skipped_and_an_overdue_one_is_stopped_first() {
    for case in [Case::new(), Case::of(DeliveryMode::Recovered), Case::of(DeliveryMode::Isolated)] {
        assert_eq!(case.clone().job(stopped).plan(), conclude(Conclusion::Skip));
        let overdue = case.job(|job| Job { deadline_at: at(100), first_chunk_at: None, ..job });
        assert_eq!(overdue.plan(), Err(Step::StopOverdue), "before a chunk begins");
        assert_eq!(overdue.job(stopped).plan(), conclude(Conclusion::Skip));
    }
}

#[test]
fn a_chunk_begins_once_and_is_planned_again_with_the_job_that_this_shows() {
    let first = Case::new().job(|job| Job { first_chunk_at: None, ..job });
    assert_eq!(first.plan(), Err(Step::Begin));
    let begun = Case { has_begun: true, ..first };
    assert_eq!(begun.plan(), run(RunMode::Plain));
    assert_eq!(begun.clone().job(stopped).plan(), conclude(Conclusion::Skip));
    assert_eq!(begun.job(paused).plan(), end(ChunkEnd::Dropped));
}

#[test]
fn a_message_beside_the_lanes_of_its_type_is_sent_on_one_of_them() {
    let laned = |case: Case| Case { limits: r#"{"import": {"concurrency": 2}}"#, ..case };
    for (mode, sent) in [
        (DeliveryMode::Fresh, DeliveryMode::Recovered),
        (DeliveryMode::Recovered, DeliveryMode::Recovered),
        (DeliveryMode::Isolated, DeliveryMode::Isolated),
    ] {
        let case = laned(Case::of(mode)).job(|job| Job { first_chunk_at: None, ..job });
        let message = ChunkMessage { delivery_mode: sent, ..case.message.clone() };
        assert_eq!(case.plan(), conclude(Conclusion::Send(Box::new(message), ChunkEnd::Rerouted)), "before it begins");
    }
    let mut on_a_lane = laned(Case::new());
    on_a_lane.message.lane = Some(1);
    assert_eq!(on_a_lane.plan(), run(RunMode::Plain));
}

#[test]
fn an_isolated_chunk_runs_only_from_an_isolated_message_and_not_beside_a_live_run() {
    let case = Case { checkpoint: noted(101, 0, 1), ..Case::of(DeliveryMode::Recovered) };
    let isolated = Case::of(DeliveryMode::Isolated);
    let message = Box::new(isolated.message.clone());
    assert_eq!(case.plan(), conclude(Conclusion::Send(message, ChunkEnd::Continued)));
    assert_eq!(isolated.plan(), run(RunMode::Isolated));
    let live = Case { checkpoint: noted(101, 0, 1), ..isolated };
    assert!(matches!(live.plan(), Ok(Plan::Conclude(Conclusion::GiveBack(_)))));
}

#[test]
fn an_expired_note_is_a_death_of_its_items() {
    let case = |checkpoint, redelivered| Case { checkpoint, redelivered, ..Case::of(DeliveryMode::Isolated) }.plan();
    assert_eq!(case(noted(100, 0, 1), true), run(RunMode::Isolated), "the first one of one item");
    assert_eq!(case(noted(100, 1, 1), true), run(RunMode::PassOverPoison), "the second one");
    let suspects = |deaths| Some(Suspects { deaths, ..Suspects::after(0, 1) });
    let stored = |deaths| Some(Checkpoint { suspects: suspects(deaths), ..blank() });
    assert_eq!(case(stored(1), false), run(RunMode::Isolated));
    assert_eq!(case(stored(2), false), run(RunMode::PassOverPoison), "noted by a run whose last write failed");
    assert_eq!(case(noted(100, 0, 16), true), conclude(Conclusion::HandOver), "suspects get a fresh message");
    assert_eq!(case(noted(100, 0, 16), false), run(RunMode::Isolated), "this is one");
}

const TERMS: TaskTerms = TaskTerms { beat: Duration::from_secs(60), items: 1, called: false, minimum_client: None };

#[test]
fn a_service_is_called_with_a_chunk_that_nobody_holds() {
    let terms = TaskTerms { called: true, ..TERMS };
    let case = |checkpoint| Case { checkpoint, tasks: Some(terms), ..Case::of(DeliveryMode::Recovered) };
    let first = Case { tasks: Some(terms), ..Case::new() };
    assert_eq!(first.plan(), run(RunMode::Called(terms)));
    assert_eq!(first.job(|job| Job { first_chunk_at: None, ..job }).plan(), Err(Step::Begin));
    assert_eq!(case(noted(200, 0, 1)).plan(), conclude(Conclusion::Offer(at(205))), "it has the items");
    assert_eq!(case(noted(90, 1, 1)).plan(), run(RunMode::Called(terms)), "it has died");
    assert_eq!(case(noted(90, 2, 1)).plan(), run(RunMode::PassOverPoison));
}

#[test]
fn a_chunk_of_a_type_with_workers_is_offered_and_not_run() {
    let of_workers = |case: Case| Case { tasks: Some(TERMS), ..case };
    let offer = |due_at| conclude(Conclusion::Offer(at(due_at)));
    let first = of_workers(Case::new()).job(|job| Job { first_chunk_at: None, ..job });
    assert_eq!(first.plan(), offer(100), "nothing is read, and no chunk has begun");
    assert_eq!(Case { redelivered: true, tally: Some(tally()), ..first }.plan(), Err(Step::ReadCheckpoint));
    for mode in [DeliveryMode::Recovered, DeliveryMode::Isolated] {
        assert_eq!(of_workers(Case::of(mode)).plan(), offer(100));
        let with = |checkpoint| Case { checkpoint, ..of_workers(Case::of(mode)) };
        assert_eq!(with(noted(200, 0, 1)).plan(), offer(205), "when its holder is given up");
        assert_eq!(with(noted(90, 2, 1)).plan(), run(RunMode::PassOverPoison));
        assert_eq!(with(noted(90, 1, 1)).plan(), offer(100));
        let done = Checkpoint { done: fixtures::chunk_message(0, 1).chunk.items, ..blank() };
        assert_eq!(with(Some(done)).plan(), run(RunMode::Plain), "only its commit is missing");
    }
    assert_eq!(of_workers(Case::new()).job(stopped).plan(), Err(Step::ReadCheckpoint));
    let stopped_with = |checkpoint| Case { checkpoint, ..of_workers(Case::new()) }.job(stopped);
    let waits = conclude(Conclusion::GiveBack("a worker or a service is at its items"));
    assert_eq!(stopped_with(noted(200, 0, 1)).plan(), waits, "its holder reports first");
    let lent = noted(200, 0, 1).map(|mut checkpoint| {
        checkpoint.in_flight = checkpoint.in_flight.map(|note| InFlight { unconfirmed: true, ..note });
        checkpoint
    });
    for checkpoint in [Some(blank()), noted(90, 0, 1), lent] {
        assert_eq!(stopped_with(checkpoint).plan(), conclude(Conclusion::Skip));
    }
    assert_eq!(of_workers(Case::new()).job(paused).plan(), end(ChunkEnd::Dropped));
}
