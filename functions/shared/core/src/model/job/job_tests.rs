use std::iter;

use jiff::Timestamp;
use proptest::prelude::*;

use super::states::{JobOutcome, Phase, Status};
use super::*;
use crate::fixtures;
use crate::model::breaker::BreakerPause;
use crate::model::messages::ChunkMessage;
use crate::model::tally::{ChunkAddress, Counts};
use crate::text::{Chunk, ChunkMode};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

const fn run(number: u8) -> RunId {
    RunId::from_bytes([number; RunId::BYTES])
}

fn lease(holder: u8, until: i64) -> Lease {
    Lease { holder: run(holder), until: at(until) }
}

pub(super) fn stop(code: StopCode) -> Stop {
    Stop::because(code, "because", at(7))
}

pub(super) fn waiting() -> Job {
    Job::waiting(&fixtures::spec(), at(14_400), at(900))
}

/// Run 1 holds the lease until second 100.
pub(super) fn running() -> Job {
    waiting().take(lease(1, 100), at(1)).unwrap()
}

pub(super) fn ended() -> Job {
    let end = running().end_of(Counts::default(), None, at(20), at(2000)).unwrap();
    running().ended(&end, Usage::NONE)
}

pub(super) fn breaker() -> BreakerPause {
    BreakerPause::after("unavailable", "it answered 503", at(2))
}

#[test]
fn the_outcome_follows_from_the_counts() {
    let counts = |succeeded, failed, skipped| Counts { succeeded, failed, skipped };
    assert_eq!(outcome(counts(0, 0, 0)), JobOutcome::Empty);
    assert_eq!(outcome(counts(3, 0, 0)), JobOutcome::Succeeded);
    assert_eq!(outcome(counts(3, 1, 0)), JobOutcome::Partial);
    assert_eq!(outcome(counts(0, 1, 0)), JobOutcome::Failed);
}

#[test]
fn the_first_lease_makes_a_waiting_job_run() {
    let job = running();
    assert_eq!((job.status(), job.started_at, job.moved_at), (Status::Running, Some(at(1)), at(1)));
    let again = job.take(lease(1, 200), at(5)).unwrap();
    assert_eq!((again.lease, again.started_at), (Some(lease(1, 200)), Some(at(1))), "its holder extends it");
}

#[test]
fn a_held_lease_is_refused_until_it_expires_or_its_holder_gives_it_back() {
    assert_eq!(running().take(lease(2, 200), at(99)), None);
    assert_eq!(running().take(lease(2, 200), at(100)).unwrap().lease, Some(lease(2, 200)));
    assert_eq!(running().release(run(2)), running(), "another run");
    assert_eq!(running().release(run(1)).take(lease(2, 200), at(9)).unwrap().lease, Some(lease(2, 200)));
    assert_eq!(ended().take(lease(2, 200), at(100)), None);
}

#[test]
fn a_paused_job_is_only_leased_once_its_split_has_ended_and_a_cancelled_one_stays_cancelling() {
    let paused = running().release(run(1)).pause(at(2)).unwrap();
    assert_eq!(paused.take(lease(2, 200), at(3)), None);
    let split = Job { split: SplitState { done: true, ..paused.split }, ..paused };
    assert_eq!(split.take(lease(2, 200), at(3)).unwrap().status(), Status::Paused);
    let cancelled = waiting().stop(&stop(StopCode::Cancelled)).unwrap();
    let taken = cancelled.take(lease(2, 200), at(8)).unwrap();
    assert_eq!((taken.status(), taken.started_at), (Status::Cancelling, Some(at(8))));
}

#[test]
fn tallies_are_counted_in_order_under_the_lease() {
    let end = |row| Position { offset: row * 10, row };
    let job = running();
    assert_eq!(job.count_tally(run(2), 0, end(5), at(2)), None, "another run");
    assert_eq!(job.count_tally(run(1), 1, end(5), at(2)), None, "not the next one");
    let counted = job.count_tally(run(1), 0, end(5), at(2)).unwrap();
    assert_eq!((counted.split.tallies, counted.split.dispatched, counted.split.cursor), (1, 0, end(5)));
    assert_eq!(counted.count_tally(run(1), 0, end(5), at(3)), Some(counted.clone()), "its own write");
    assert_eq!(counted.count_tally(run(1), 0, end(6), at(3)), None, "another border");
    let second = counted.count_tally(run(1), 1, end(9), at(3)).unwrap();
    assert_eq!((second.split.tallies, second.split.dispatched), (2, 1));
}

#[test]
fn no_tally_is_counted_after_a_stop_in_a_pause_or_after_the_end_of_the_split() {
    let border = Position { offset: 50, row: 5 };
    let job = running();
    let stopped = job.stop(&stop(StopCode::SourceChanged)).unwrap();
    let finished = Job { lease: job.lease, ..job.finish_split(run(1), true, at(2)).unwrap() };
    for job in [stopped, finished, job.pause(at(2)).unwrap()] {
        assert_eq!(job.count_tally(run(1), 0, border, at(3)), None);
    }
}

#[test]
fn what_a_splitter_or_completer_notes_needs_the_lease_and_may_free_it() {
    let counted = running().count_tally(run(1), 0, Position { offset: 50, row: 5 }, at(2)).unwrap();
    let over = counted.hand_split_over(run(1), at(3)).unwrap();
    assert_eq!((over.split.dispatched, over.lease, over.split.done), (1, None, false));
    let finished = counted.finish_split(run(1), false, at(3)).unwrap();
    assert_eq!((finished.split.dispatched, finished.lease), (1, None));
    assert_eq!((finished.split.done, finished.split.at_end), (true, false));
    let composing = counted.hand_composition_over(run(1), run(9), at(3)).unwrap();
    assert_eq!((composing.composing, composing.lease), (Some(run(9)), None));
    assert_eq!(composing.hand_composition_over(run(1), run(9), at(4)), Some(composing.clone()), "its own write");
    assert_eq!(composing.hand_composition_over(run(1), run(8), at(4)), None);
    let warnings = [warnings::trailing_bytes(7)];
    assert_eq!(counted.warn(run(1), &warnings, at(3)).unwrap().warnings, warnings);
    let by_others = [
        counted.hand_split_over(run(2), at(3)),
        counted.finish_split(run(2), true, at(3)),
        counted.hand_composition_over(run(2), run(9), at(3)),
        counted.warn(run(2), &warnings, at(3)),
    ];
    assert_eq!(by_others, [None, None, None, None]);
}

#[test]
fn a_job_is_stopped_once() {
    let stopped = Job { recoveries: 4, ..running() }.stop(&stop(StopCode::UnterminatedQuote)).unwrap();
    assert_eq!(stopped.recoveries, 0, "the looks after the stop are counted from here");
    assert_eq!((stopped.status(), stopped.moved_at, stopped.wake_at), (Status::Running, at(7), Some(at(7))));
    assert_eq!(stopped.stop(&stop(StopCode::UnterminatedQuote)), Some(stopped.clone()), "the same stop");
    assert_eq!(stopped.stop(&stop(StopCode::Cancelled)), None);
    assert_eq!(ended().stop(&stop(StopCode::Cancelled)), None);
    assert_eq!(running().stop(&stop(StopCode::Cancelled)).unwrap().status(), Status::Cancelling);
}

#[test]
fn a_job_does_not_stop_for_lack_of_capacity_once_a_chunk_has_begun() {
    let lack = stop(StopCode::CapacityExceeded);
    let begun = running().begin(at(2)).unwrap();
    for (job, may) in [(running(), true), (begun.clone(), false)] {
        assert_eq!(job.stop(&lack).is_some(), may);
        assert_eq!(job.pause(at(3)).unwrap().stop(&lack).is_some(), may, "paused");
    }
    assert_eq!(begun.begin(at(4)), Some(begun.clone()), "only the first chunk is noted");
}

#[test]
fn no_chunk_of_a_waiting_paused_or_stopped_job_begins() {
    let stopped = running().stop(&stop(StopCode::SourceChanged)).unwrap();
    for job in [waiting(), running().pause(at(2)).unwrap(), stopped, ended()] {
        assert_eq!(job.begin(at(8)), None);
    }
}

#[test]
fn a_paused_job_resumes_in_the_status_that_it_had() {
    for job in [waiting(), running()] {
        let paused = job.pause(at(2)).unwrap();
        assert_eq!((paused.status(), paused.is_paused_by_owner()), (Status::Paused, true));
        assert_eq!(paused.pause(at(3)), Some(paused.clone()), "paused again");
        let resumed = Job { recoveries: 4, ..paused }.resume(at(5)).unwrap();
        assert_eq!((resumed.status(), resumed.epoch), (job.status(), 2));
        assert_eq!((resumed.resend_from, resumed.wake_at, resumed.recoveries), (Some(0), Some(at(5)), 0));
        assert_eq!(resumed.paused_at, Some(at(2)), "until the resend begins");
        assert_eq!(resumed.resume(at(6)), None, "it is not paused");
    }
    let stopped = running().stop(&stop(StopCode::SourceChanged)).unwrap();
    assert_eq!((stopped.pause(at(8)), ended().pause(at(8))), (None, None));
}

#[test]
fn a_stop_ends_a_pause() {
    for paused in [running().pause(at(2)).unwrap(), running().pause_by_breaker(&breaker(), at(60), at(2)).unwrap()] {
        let stopped = paused.stop(&stop(StopCode::SourceChanged)).unwrap();
        let cancelled = paused.stop(&stop(StopCode::Cancelled)).unwrap();
        assert_eq!((stopped.status(), cancelled.status()), (Status::Running, Status::Cancelling));
        assert_eq!((stopped.wake_at, cancelled.wake_at), (Some(at(7)), Some(at(7))));
    }
}

#[test]
fn a_pause_of_the_breaker_names_a_time_that_a_request_could_name() {
    let limit = i64::try_from(REQUEST_LIMIT.as_secs()).unwrap();
    for (deadline, paused_at) in [(limit, 2), (limit + 2, 2), (limit + 60, 60)] {
        let paused = running().pause_by_breaker(&breaker(), at(70), at(deadline)).unwrap();
        assert_eq!((paused.paused_at, paused.moved_at), (Some(at(paused_at)), at(2)), "its run ends by {deadline}");
    }
}

#[test]
fn the_pause_of_an_owner_goes_before_that_of_the_breaker() {
    let by_breaker = running().pause_by_breaker(&breaker(), at(60), at(2)).unwrap();
    assert_eq!((by_breaker.breaker_pause(), by_breaker.wake_at), (Some(&breaker()), Some(at(60))));
    assert_eq!(by_breaker.pause_by_breaker(&breaker(), at(70), at(2)), Some(by_breaker.clone()));
    let by_owner = by_breaker.pause(at(9)).unwrap();
    assert_eq!((&by_owner.phase, by_owner.epoch), (&Phase::Paused(None), 2));
    assert_eq!(by_owner.paused_at, Some(at(9)), "the pause of its owner begins");
    assert_eq!(by_breaker.pause(at(1)).unwrap().paused_at, by_breaker.paused_at, "by a clock that was read before");
    assert_eq!(by_owner.pause_by_breaker(&breaker(), at(70), at(2)), Some(by_owner.clone()));
    assert_eq!(by_owner.resume_by_breaker(2, at(70)), None);
    assert_eq!(by_breaker.resume_by_breaker(0, at(70)), None, "paused or resumed since");
    assert_eq!(by_breaker.resume_by_breaker(1, at(70)), by_breaker.resume(at(70)));
    let stopped = running().stop(&stop(StopCode::SourceChanged)).unwrap();
    assert_eq!(stopped.pause_by_breaker(&breaker(), at(60), at(2)), None);
}

#[test]
fn what_is_sent_again_is_noted_for_one_resume() {
    let resumed = running().pause(at(2)).unwrap().resume(at(3)).unwrap();
    let note = |epoch, from, next| Resent { epoch, from, next };
    assert_eq!(resumed.note_resent(note(2, Some(0), Some(4)), at(4)), None, "it has not begun");
    let begun = resumed.note_resent(note(2, None, Some(0)), at(4)).unwrap();
    assert_eq!((begun.paused_at, begun.resend_from), (None, Some(0)));
    assert_eq!(begun.note_resent(note(2, None, Some(0)), at(4)), None, "another run has begun");
    let noted = begun.note_resent(note(2, Some(0), Some(4)), at(4)).unwrap();
    assert_eq!(noted.resend_from, Some(4));
    for next in [Some(2), Some(4), None] {
        assert_eq!(noted.note_resent(note(2, Some(0), next), at(5)), None, "another run has gone further");
    }
    assert_eq!(noted.note_resent(note(2, Some(4), None), at(5)).unwrap().resend_from, None);
    let again = noted.pause(at(6)).unwrap().resume(at(7)).unwrap();
    let begun = again.note_resent(note(4, None, Some(0)), at(8)).unwrap();
    let earlier = [again.note_resent(note(2, None, Some(0)), at(8)), begun.note_resent(note(2, Some(0), None), at(8))];
    assert_eq!(earlier, [None, None], "an earlier resume");
}

#[test]
fn a_commit_leaves_to_the_resend_what_that_has_not_come_to() {
    let sends = |job: &Job| [0, 3, 4].map(|tally| job.sends_on_commit(tally));
    let resumed = running().pause(at(2)).unwrap().resume(at(3)).unwrap();
    assert_eq!(sends(&running()), [true; 3]);
    assert_eq!((sends(&running().pause(at(2)).unwrap()), sends(&resumed)), ([false; 3], [false; 3]));
    let begun = resumed.note_resent(Resent { epoch: 2, from: None, next: Some(3) }, at(4)).unwrap();
    assert_eq!(sends(&begun), [true, true, false]);
    let sent = begun.note_resent(Resent { epoch: 2, from: Some(3), next: None }, at(5)).unwrap();
    assert_eq!(sends(&sent), [true; 3]);
}

#[test]
fn another_width_is_a_pause_and_a_resume_in_one_write() {
    let holder = running().lease.unwrap().holder;
    let counted = Job { max_concurrency: Some(3), ..running() };
    let counted = counted.count_tally(holder, 0, Position { offset: 99, row: 9 }, at(1)).unwrap();
    assert_eq!(counted.with_width(3, at(2)), Some(counted.clone()), "the same width");
    let again = counted.pause(at(2)).unwrap().resume(at(2));
    assert_eq!(counted.with_width(5, at(2)), again.map(|job| Job { max_concurrency: Some(5), ..job }));

    let resumed = counted.pause(at(2)).unwrap().resume(at(3)).unwrap();
    for held in [counted.pause(at(2)).unwrap(), resumed] {
        let only_wider = Job { max_concurrency: Some(5), ..held.clone() };
        assert_eq!(held.with_width(5, at(4)), Some(only_wider), "nothing is sent before the resend begins");
    }
    let ahead = Job { max_concurrency: None, tallies_ahead: Some(2), ..counted.clone() }.with_width(5, at(4)).unwrap();
    assert_eq!((ahead.tallies_ahead, ahead.resend_from), (None, Some(0)));
    assert_eq!(counted.stop(&stop(StopCode::Cancelled)).unwrap().with_width(5, at(4)), None);
}

#[test]
fn messages_from_before_a_pause_are_dropped() {
    let paused = running().pause(at(2)).unwrap();
    let resumed = paused.resume(at(3)).unwrap();
    let chunk = Chunk { offset: 0, length: 1, first_row: 1, items: 1, mode: ChunkMode::Items };
    let sent = |job: &Job| ChunkMessage::of(job, ChunkAddress::of_number(1, 0), chunk);
    assert_eq!([&running(), &paused, &resumed].map(|job| job.drops(&sent(&running()))), [false, true, true]);
    assert!(!resumed.drops(&sent(&resumed)));
}

#[test]
fn no_tally_is_counted_before_the_end_of_a_resend() {
    let count = |job: &Job| job.count_tally(run(1), 0, Position { offset: 9, row: 9 }, at(9)).is_some();
    let held = running().take(Lease { holder: run(1), until: at(99) }, at(1)).unwrap();
    let paused = held.pause(at(2)).unwrap();
    let resumed = paused.resume(at(3)).unwrap();
    let sent = resumed.note_resent(Resent { epoch: 2, from: None, next: None }, at(4)).unwrap();
    assert_eq!([&held, &paused, &resumed, &sent].map(count), [true, false, false, true]);
}

#[test]
fn a_job_is_claimed_only_if_its_wake_time_is_unchanged() {
    let claimed = waiting().claim(at(900), at(1_000), 3).unwrap();
    assert_eq!((claimed.wake_at, claimed.recoveries), (Some(at(1_000)), 3));
    assert_eq!(claimed.claim(at(900), at(1_100), 4), None);
    assert_eq!(ended().claim(at(900), at(1_000), 1), None);
}

#[test]
fn an_attempt_ends_completed_or_as_its_stop_says() {
    let end = |job: &Job, counts| job.end_of(counts, None, at(20), at(2000)).map(|end| end.outcome);
    let (none, one) = (Counts::default(), Counts { succeeded: 1, ..Counts::default() });
    assert_eq!(end(&running(), one), Some(Ok(JobOutcome::Succeeded)));
    assert_eq!(end(&running().pause(at(2)).unwrap(), none), Some(Ok(JobOutcome::Empty)));
    for code in [StopCode::Cancelled, StopCode::SourceChanged] {
        let stopped = running().stop(&stop(code)).unwrap();
        assert_eq!(end(&stopped, one), Some(Err(stop(code))));
        assert_eq!(stopped.end_of_untaken(&stop(code), at(2000)), None);
        let untaken = waiting().end_of_untaken(&stop(code), at(2000)).unwrap();
        assert_eq!((untaken.outcome, untaken.finished_at), (Err(stop(code)), at(7)));
    }
    assert_eq!(
        (end(&waiting(), none), end(&waiting().pause(at(2)).unwrap(), none), end(&ended(), none)),
        (None, None, None)
    );
    assert_eq!((ended().wake_at, ended().lease, ended().completions, ended().split.done), (None, None, 1, true));
}

#[test]
fn only_an_ended_job_is_redriven() {
    let before = Counts { failed: 2, ..Counts::default() };
    let redrive = Redrive { by: run(8), before, base: 1, unprocessed_from: None, corrected: None, selection: None };
    let redriven = |job: &Job| job.redrive(redrive.clone(), at(30), at(14_430), at(930));
    let stopped = running().stop(&stop(StopCode::Cancelled)).unwrap();
    for job in [waiting(), running(), running().pause(at(2)).unwrap(), stopped] {
        assert_eq!(redriven(&job), None);
    }
    let job = redriven(&ended()).unwrap();
    assert_eq!(
        (job.status(), job.attempt, job.started_at, job.wake_at),
        (Status::Running, 2, Some(at(1)), Some(at(930)))
    );
    assert_eq!((job.split, job.merged(Counts::default())), (SplitState::from(0), before));
    assert_eq!((job.attempt_at, ended().attempt_at), (at(30), at(0)));
    let waited = Job { start_by: Some(at(20)), ..ended() };
    assert_eq!(redriven(&waited).unwrap().stops_at(), at(14_430), "it may wait until its deadline");
}

/// Transitions of a job, by number.
fn after(job: &Job, step: u8, now: Timestamp) -> Option<Job> {
    let by = run(step % 2);
    match step / 2 {
        0 => job.take(Lease { holder: by, until: now }, now),
        1 => Some(job.release(by)),
        2 => job.count_tally(by, job.split.tallies, Position { offset: 9, row: 9 }, now),
        3 => job.hand_split_over(by, now),
        4 => job.finish_split(by, true, now),
        5 => job.pause(now),
        6 => job.pause_by_breaker(&breaker(), now, now),
        7 => job.resume(now),
        8 => job.resume_by_breaker(job.epoch, now),
        9 => job.stop(&Stop { at: now, ..stop(StopCode::SourceChanged) }),
        10 => job.stop(&Stop { at: now, ..stop(StopCode::Cancelled) }),
        11 => job.begin(now),
        _ => {
            let from = job.resend_from.filter(|_| job.paused_at.is_none());
            job.note_resent(Resent { epoch: job.epoch, from, next: None }, now)
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_fields_of_a_job_fit_together(steps in prop::collection::vec(0..26_u8, 0..60)) {
        let mut job = waiting();
        for (step, second) in iter::zip(steps, 10..) {
            let next = after(&job, step, at(second)).unwrap_or_else(|| job.clone());
            prop_assert!(!job.is_stopped() || job.phase == next.phase, "the first stop stays");
            prop_assert!(job.started_at.is_none() || job.started_at == next.started_at);
            prop_assert!(next.lease.is_none() || next.started_at.is_some());
            prop_assert!(!next.is_paused() || (next.paused_at.is_some() && next.resend_from.is_none()));
            prop_assert!(next.paused_at.is_none() || next.is_held_back());
            prop_assert!(!next.is_stopped() || !next.is_held_back(), "a stop ends a resend");
            prop_assert!(!next.is_ended(), "only a completion ends it");
            job = next;
        }
    }
}
