//! What holds a job up, as a table: what was read, and the codes that follow in their order.

use jiff::Timestamp;

use super::task_reasons::TasksSeen;
use super::why::{Others, Seen, looked_at, reasons, waits_for_capacity};
use crate::fixtures;
use crate::model::at_work::{AtWork, TaskState};
use crate::model::breaker::{Breaker, BreakerPause, BreakerState, Probe};
use crate::model::checkpoint::{Checkpoint, InFlight};
use crate::model::ids::{JobGuid, RunId};
use crate::model::job::states::{Phase, Status};
use crate::model::job::{Awaits, Job, Lease, Priority, Redrive, SharedSlots, SplitState, Stop, StopCode};
use crate::model::tally::{ChunkAddress, Counts, Mark, MarkKind, Tally, Totals};
use crate::model::task::{Holder, Task};
use crate::model::why::{Reason, ReasonCode};
use crate::ports::{ActiveJobs, SlotsTaken};
use crate::progress::counters::Counters;
use crate::text::{Chunk, ChunkMode, Position};

const NOW: i64 = 1000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A tally of so many chunks of ten items of one byte, of which the first `done` are committed.
fn tally(chunks: usize, done: usize) -> Tally {
    let chunk = Chunk { offset: 0, length: 10, first_row: 1, items: 10, mode: ChunkMode::Items };
    let mut tally = Tally::of(1, 0, Position { offset: 0, row: 1 }, &vec![chunk; chunks], at(990));
    for place in 0..done {
        tally.marks[place] = Some(Mark { kind: MarkKind::Clean, run: RunId::from_bytes([1; 7]) });
    }
    tally.done = done as u32;
    (tally.counts.succeeded, tally.bytes) = (10 * done as u64, 10 * done as u64);
    tally
}

/// A job that runs: it is split into four chunks of ten items, its first chunk began at 900, it moved at 980.
fn running() -> Job {
    let next = Position { offset: 40, row: 41 };
    Job {
        started_at: Some(at(800)),
        first_chunk_at: Some(at(900)),
        moved_at: at(980),
        deadline_at: at(9000),
        wake_at: Some(at(1800)),
        data_bytes: 40,
        split: SplitState { tallies: 1, dispatched: 1, cursor: next, done: true, at_end: true },
        ..fixtures::job()
    }
}

/// The same with nothing sent yet.
fn untaken() -> Job {
    Job { started_at: None, first_chunk_at: None, split: SplitState::from(0), moved_at: at(980), ..running() }
}

fn counters(tallies: Vec<Tally>) -> Counters {
    Counters { totals: Totals::default(), open: tallies, at_work: None }
}

fn half_done() -> Counters {
    counters(vec![tally(4, 1)])
}

fn seen<'a>(job: &'a Job, counters: &'a Counters) -> Seen<'a> {
    Seen { job, counters, breaker: None, lanes: None, checkpoints: Vec::new(), tasks: None, others: None, now: at(NOW) }
}

fn codes(seen: &Seen<'_>) -> Vec<ReasonCode> {
    let known = |reason: Reason| ReasonCode::ALL.into_iter().find(|code| reason.code == *code);
    reasons(seen).into_iter().filter_map(known).collect()
}

fn only(seen: &Seen<'_>) -> Reason {
    let [reason] = reasons(seen).try_into().expect("one reason");
    reason
}

#[test]
fn the_phase_and_the_split_of_a_job_tell_why_it_is_not_done() {
    use ReasonCode::*;
    let paused = |phase| Job { phase, paused_at: Some(at(950)), ..running() };
    let lease = Some(Lease { holder: RunId::from_bytes([1; 7]), until: at(1050) });
    let splitting = SplitState { done: false, at_end: false, ..running().split };
    let stop = Stop::because(StopCode::DeadlineExceeded, "it took too long", at(970));
    let redrive =
        Job { first_chunk_at: None, split: SplitState::from(0), attempt: 2, attempt_at: at(940), ..running() };
    let cases: Vec<(&str, Job, &[ReasonCode])> = vec![
        ("it has ended", fixtures::job_in(Status::Completed), &[Ended]),
        ("it is cancelled", fixtures::job_in(Status::Cancelling), &[Stopping]),
        ("it is stopped", Job { phase: Phase::Stopping(stop), ..running() }, &[Stopping]),
        ("its owner has paused it", paused(Phase::Paused(None)), &[Paused]),
        (
            "the breaker has paused it",
            paused(Phase::Paused(Some(BreakerPause::after("unavailable", "it answered 503", at(960))))),
            &[TargetDown],
        ),
        ("it waits for slots", Job { slots: SharedSlots::Awaited, ..paused(Phase::Paused(None)) }, &[NoSlot]),
        ("nobody has taken it up", untaken(), &[NotTakenUp]),
        ("its files are listed", Job { awaits: Some(Awaits::Files), ..untaken() }, &[FilesListing]),
        ("its file is fetched", Job { awaits: Some(Awaits::File), ..untaken() }, &[FileFetching]),
        ("it follows a job", Job { awaits: Some(Awaits::Job(JobGuid(uuid::Uuid::nil()))), ..untaken() }, &[AfterJob]),
        ("nobody has taken its redrive up", redrive, &[NotTakenUp]),
        ("its deadline has passed", Job { deadline_at: at(999), ..untaken() }, &[DeadlinePassed, NotTakenUp]),
        ("it was silent", Job { moved_at: at(900), ..untaken() }, &[NotTakenUp, Silent]),
        ("it is resumed", Job { resend_from: Some(0), ..running() }, &[Resuming, Running]),
        ("it is split and nothing began", Job { first_chunk_at: None, ..running() }, &[ChunksQueued]),
        ("it is being split", Job { split: splitting, lease, ..running() }, &[Splitting, Running]),
        ("its split is handed over", Job { split: splitting, ..running() }, &[Splitting, Running]),
        ("it has a low priority", Job { priority: Priority::Low, ..running() }, &[LowPriority, Running]),
        ("its width is full", Job { max_concurrency: Some(1), ..running() }, &[MaxConcurrency, Running]),
        ("its width is not full", Job { max_concurrency: Some(9), ..running() }, &[Running]),
        ("nothing holds it up", running(), &[Running]),
    ];
    for (case, job, expected) in cases {
        let counters = if job.split.tallies == 0 { counters(Vec::new()) } else { half_done() };
        assert_eq!(codes(&seen(&job, &counters)), expected, "{case}");
    }
}

#[test]
fn a_job_whose_items_are_all_accounted_for_waits_for_its_results_also_if_it_is_paused() {
    let whole = counters(vec![tally(4, 4)]);
    for phase in [Phase::Runnable, Phase::Paused(None)] {
        let reason = only(&seen(&Job { phase, ..running() }, &whole));
        assert_eq!((reason.code, reason.since), (ReasonCode::Composing.into(), Some(at(990))));
        assert_eq!(reason.numbers["items"], 40);
    }
}

#[test]
fn a_running_job_has_a_rate_and_an_expected_end() {
    let (job, counters) = (running(), half_done());
    let reason = only(&seen(&job, &counters));
    // 10 of 40 bytes took 100 s.
    assert_eq!((reason.since, reason.expected_end_at), (Some(at(900)), Some(at(NOW + 300))));
    assert_eq!((reason.numbers["itemsDone"], reason.numbers["itemsPerHour"]), (10, 360));
    assert!(reason.message.contains("10 so far, about 360 an hour"), "{}", reason.message);

    let redrive =
        Redrive { before: Counts { failed: 20, ..Counts::default() }, ..fixtures::full_job().redrive.unwrap() };
    let redriven = Job { redrive: Some(redrive), ..job.clone() };
    let by_items = only(&seen(&redriven, &counters)).expected_end_at;
    assert_eq!(by_items, Some(at(NOW + 100)), "half of its 20 items are done");

    let none = only(&seen(&job, &self::counters(vec![tally(4, 0)])));
    assert_eq!((none.expected_end_at, none.numbers.get("itemsPerHour")), (None, None), "{}", none.message);
}

#[test]
fn a_job_that_waits_for_capacity_names_the_jobs_before_it() {
    let of = |active| ActiveJobs { active, ..ActiveJobs::default() };
    let taken = SlotsTaken { owner: of(3), job_type: of(12), system: of(40) };
    let jobs = vec![JobGuid(uuid::Uuid::from_u128(5))];
    let behind = |job: &Job, counters: &Counters| {
        assert!(waits_for_capacity(job));
        let others = Some(Others { jobs: jobs.clone(), taken: taken.clone() });
        let reason = only(&Seen { others, ..seen(job, counters) });
        assert_eq!(reason.jobs, jobs);
        ["jobsOfOwner", "jobsOfType", "jobsOfSystem"].map(|name| reason.numbers[name])
    };
    let queued = Job { first_chunk_at: None, ..running() };
    assert_eq!(behind(&untaken(), &counters(Vec::new())), [2, 11, 39], "it is one of them");
    assert_eq!(behind(&queued, &half_done()), [2, 11, 39]);
    let awaiting = Job { phase: Phase::Paused(None), slots: SharedSlots::Awaited, ..running() };
    assert_eq!(behind(&awaiting, &half_done()), [2, 12, 40], "it has no slot of its type and of the system");
    assert!(!waits_for_capacity(&running()) && !waits_for_capacity(&fixtures::job_in(Status::Paused)));
}

#[test]
fn chunks_that_wait_tell_what_for() {
    use ReasonCode::*;
    let counters = counters(vec![tally(4, 0)]);
    let queued = |moved_at| Job { first_chunk_at: None, moved_at: at(moved_at), ..running() };
    let (moved, silent) = (queued(990), queued(900));
    let of = |job, lanes, (of_type, of_system)| {
        let active = |active| ActiveJobs { active, ..ActiveJobs::default() };
        let taken = SlotsTaken { owner: active(1), job_type: active(of_type), system: active(of_system) };
        let others = Some(Others { jobs: Vec::new(), taken });
        // The tally was written at 990.
        codes(&Seen { others, lanes, now: at(1055), ..seen(job, &counters) })[0]
    };
    assert_eq!(of(&moved, Some(2), (2, 9)), LaneFull);
    assert_eq!(of(&moved, Some(2), (1, 9)), ChunksQueued, "no other job of the type is active");
    assert_eq!(of(&moved, None, (2, 9)), ChunksQueued);
    assert_eq!(of(&silent, None, (1, 1)), Throttled);
    assert_eq!(of(&queued(1000), None, (1, 1)), ChunksQueued, "it was sent less than a minute ago");
}

#[test]
fn the_breaker_of_the_job_type_is_a_reason_while_runs_fail() {
    let (job, counters) = (running(), half_done());
    let probe = |job| Probe { job, attempt: 1, began: at(985), accounted: 0, until: at(1285) };
    let closed = |failed| BreakerState::Closed { since: at(940), failed, good: 3 };
    let breaker = |state, changed| Breaker {
        rev: 7,
        at: at(changed),
        state,
        openings: 2,
        code: "unavailable".to_owned(),
        failed_probe: None,
    };
    let other = JobGuid(uuid::Uuid::from_u128(5));
    for (state, changed, expected) in [
        (BreakerState::Open { until: at(1060) }, 970, Some((ReasonCode::BreakerOpen, 970, Some(at(1060))))),
        (BreakerState::Probing(probe(other)), 985, Some((ReasonCode::BreakerOpen, 985, Some(at(1285))))),
        (closed(1), 990, Some((ReasonCode::TargetFailing, 940, None))),
        (closed(1), 600, None),
        (closed(0), 990, None),
    ] {
        let seen = Seen { breaker: Some(breaker(state.clone(), changed)), ..seen(&job, &counters) };
        let first = reasons(&seen).into_iter().find(|reason| reason.code != ReasonCode::Running);
        let expected = expected.map(|(code, since, next)| (code.into(), Some(at(since)), next));
        assert_eq!(first.map(|reason| (reason.code, reason.since, reason.next_look_at)), expected, "{state:?}");
    }
    let state = BreakerState::Probing(probe(other));
    let text = |job: &Job| reasons(&Seen { breaker: Some(breaker(state.clone(), 985)), ..seen(job, &counters) });
    assert!(text(&job)[0].message.contains("Another job tries"), "it does not name a job of others");
    assert!(text(&Job { job_guid: other, ..job.clone() })[0].message.contains("This job tries"));
}

#[test]
fn checkpoints_tell_chunks_that_run_item_by_item_from_slow_ones() {
    let (job, counters) = (running(), half_done());
    let checkpoint = |index, isolated, done, second, note: Option<InFlight>| Checkpoint {
        isolated,
        done,
        in_flight: note,
        at: at(second),
        ..Checkpoint::blank(ChunkAddress { attempt: 1, tally: 0, index }, at(second))
    };
    let note = |until| Some(InFlight::of_run(at(until), 0, 1));
    let checkpoints = vec![
        checkpoint(1, true, 3, 930, note(NOW + 60)),
        checkpoint(2, false, 6, 920, None),
        checkpoint(3, true, 4, 950, note(NOW - 1)),
    ];
    let all = reasons(&Seen { checkpoints, ..seen(&job, &counters) });
    let [one_by_one, slow, _] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&one_by_one.code, one_by_one.since), (&ReasonCode::OneByOne.into(), Some(at(930))));
    let figures = ["chunks", "itemsDone", "itemsInFlight"].map(|name| one_by_one.numbers[name]);
    assert_eq!(figures, [2, 7, 1], "the note of a run that is over is no item at work");
    assert_eq!((&slow.code, slow.since), (&ReasonCode::SlowRows.into(), Some(at(920))));
    assert_eq!((slow.numbers["chunks"], slow.numbers["itemsDone"]), (1, 6));
}

#[test]
fn the_checkpoints_of_the_first_chunks_in_flight_are_read() {
    let numbers = |job: &Job, counters: &Counters| {
        looked_at(job, counters).iter().map(|chunk| chunk.number()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&running(), &half_done()), [1, 2, 3]);
    assert_eq!(numbers(&Job { max_concurrency: Some(2), ..running() }, &half_done()), [1, 2]);
    assert_eq!(numbers(&running(), &counters(vec![tally(64, 0)])), (0..16).collect::<Vec<_>>());
}

#[test]
fn limits_have_their_figures() {
    let (job, counters) = (Job { max_concurrency: Some(2), ..running() }, half_done());
    let all = reasons(&Seen { lanes: Some(5), ..seen(&job, &counters) });
    let [of_type, of_job, _] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&of_type.code, of_type.numbers["limit"]), (&ReasonCode::TypeConcurrency.into(), 5));
    let figures = ["limit", "chunksInFlight", "chunksWaiting"].map(|name| of_job.numbers[name]);
    assert_eq!((&of_job.code, figures), (&ReasonCode::MaxConcurrency.into(), [2, 2, 1]));
}

#[test]
fn silence_is_measured_from_the_last_sign_of_life_of_the_row_or_a_tally() {
    let quiet = |now| {
        let job = Job { recoveries: 2, ..running() };
        let counters = half_done();
        let all = reasons(&Seen { now: at(now), ..seen(&job, &counters) });
        all.into_iter().find(|reason| reason.code == ReasonCode::Silent)
    };
    assert_eq!(quiet(1049), None, "its tally moved at 990");
    let reason = quiet(1050).expect("silent");
    assert_eq!((reason.since, reason.next_look_at), (Some(at(990)), Some(at(1800))));
    assert_eq!(reason.numbers["recoveries"], 2);
}

#[test]
fn there_is_always_a_reason() {
    let whole = [Vec::new(), vec![tally(4, 0)], vec![tally(4, 2)], vec![tally(4, 4)]];
    let splits = [SplitState::from(0), running().split, SplitState { done: false, ..running().split }];
    for status in Status::ALL {
        for (tallies, split) in whole.iter().flat_map(|tallies| splits.map(|split| (tallies.clone(), split))) {
            for first_chunk_at in [None, Some(at(900))] {
                let job = Job { split, first_chunk_at, ..fixtures::job_in(status) };
                let counters = counters(tallies.clone());
                assert!(!reasons(&seen(&job, &counters)).is_empty(), "{job:?}");
            }
        }
    }
}

/// A task in this state, offered at 700, leased by a worker at 800 whose last beat was at 950.
fn task(state: TaskState) -> AtWork {
    let holder = Some(Holder { worker: "w1".to_owned(), since: at(800) });
    let task = Task {
        job_type: "import".to_owned(),
        message: fixtures::chunk_message(0, 0),
        due_at: at(700),
        called: false,
        holder,
    };
    AtWork { task, state, done: 2, last_beat_at: Some(at(950)), until: None }
}

#[test]
fn a_job_of_workers_tells_who_works_and_who_is_missing() {
    use ReasonCode::*;
    use TaskState::*;
    let (fresh, half) = (Job { first_chunk_at: None, moved_at: at(700), ..running() }, half_done());
    let of = |states: &[TaskState], last_ask: Option<i64>| {
        let tasks = states.iter().copied().map(task).collect();
        Seen { tasks: Some(TasksSeen { tasks, last_ask: last_ask.map(at) }), ..seen(&fresh, &half) }
    };
    let cases: [(&[TaskState], Option<i64>, &[ReasonCode]); 7] = [
        (&[Offered], None, &[NoWorker]),
        (&[Offered], Some(800), &[NoWorker]),
        (&[Offered], Some(900), &[TasksOffered]),
        (&[Held], None, &[TasksHeld]),
        (&[Held, Dead, Offered], Some(800), &[NoWorker, WorkerDied, TasksHeld]),
        (&[Held, Dead, Offered], Some(900), &[WorkerDied, TasksHeld, TasksOffered]),
        (&[Dead], Some(800), &[WorkerDied]),
    ];
    for (states, last_ask, expected) in cases {
        assert_eq!(codes(&of(states, last_ask)), expected, "{states:?}, asked at {last_ask:?}");
    }
    let since = |states: &[TaskState], last_ask| only(&of(states, last_ask)).since;
    assert_eq!(since(&[Offered], None), Some(at(700)), "since the first was offered");
    assert_eq!(since(&[Offered], Some(800)), Some(at(800)), "since a worker asked");
    assert_eq!(since(&[Held], None), Some(at(800)), "since the lease");
    assert_eq!(since(&[Dead], None), Some(at(950)), "since the last beat");
    let held = only(&of(&[Held, Held], None)).numbers;
    let items = 2 * u64::from(fixtures::chunk_message(0, 0).chunk.items);
    assert_eq!((held["tasksHeld"], held["items"], held["itemsDone"]), (2, items, 4));
}
