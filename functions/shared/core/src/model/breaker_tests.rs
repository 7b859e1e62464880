use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::breaker::{
    AfterFailure, Breaker, BreakerLimits, BreakerState, FailedRun, LONGEST_OPENING, Look, PROBE_TIMES,
};
use super::ids::JobGuid;

const LIMITS: BreakerLimits =
    BreakerLimits { failures: 3, window: Duration::from_secs(600), probe: Duration::from_secs(60) };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn job(number: u128) -> JobGuid {
    JobGuid(Uuid::from_u128(number))
}

fn run(number: u128, began: i64) -> FailedRun<'static> {
    FailedRun { job: job(number), attempt: 1, began: at(began), code: "busy", good: 0, lanes: None, is_isolated: false }
}

fn after(seen: Option<&Breaker>, run: &FailedRun<'_>, now: i64) -> AfterFailure {
    Breaker::after_failure(seen, run, false, at(now), &LIMITS)
}

/// The breaker after a failed run that changed it.
fn moved(seen: Option<&Breaker>, run: &FailedRun<'_>, now: i64) -> Breaker {
    let next = after(seen, run, now).next.expect("it changes");
    assert_eq!(next.rev, seen.map_or(0, |seen| seen.rev) + 1);
    next
}

/// The breaker of which three jobs had a failed run, at second 12.
fn open() -> Breaker {
    let breaker = (1..=3).fold(None, |seen: Option<Breaker>, number| {
        Some(moved(seen.as_ref(), &run(number, 5), 9 + i64::try_from(number).unwrap()))
    });
    breaker.unwrap()
}

fn look(seen: &Breaker, number: u128, now: i64) -> Look {
    Breaker::look(Some(seen), job(number), 0.0, at(now), &LIMITS)
}

fn until(breaker: &Breaker) -> Option<Timestamp> {
    match breaker.state {
        BreakerState::Open { until } => Some(until),
        _ => None,
    }
}

#[test]
fn enough_failed_runs_in_a_window_open_it() {
    let first = moved(None, &run(1, 5), 10);
    assert_eq!(first.state, BreakerState::Closed { since: at(10), failed: 1, good: 0 });
    let second = after(Some(&first), &run(1, 5), 609);
    assert_eq!(second.probe_at, None);
    let third = after(second.next.as_ref(), &run(1, 5), 609);
    assert_eq!(third.probe_at, Some(at(669)), "the run that opens it pauses its job");
    assert_eq!(third.next.and_then(|breaker| until(&breaker)), Some(at(669)));
    let late = after(second.next.as_ref(), &run(1, 5), 610);
    assert_eq!(late.probe_at, None, "another window");
    assert_eq!(late.next.unwrap().state, BreakerState::Closed { since: at(610), failed: 1, good: 0 });
}

#[test]
fn it_opens_only_if_at_least_half_of_the_runs_failed() {
    let mixed = FailedRun { good: 1000, ..run(1, 5) };
    let mut breaker = None;
    for _ in 0..50 {
        let next = after(breaker.as_ref(), &mixed, 10);
        assert_eq!(next.probe_at, None, "one in many fails");
        breaker = next.next;
    }
    let mut breaker = None;
    let mut failed = 0;
    while breaker.as_ref().and_then(until).is_none() {
        failed += 1;
        let good = if failed == 1 { 1000 } else { 0 };
        breaker = Some(moved(breaker.as_ref(), &FailedRun { good, ..run(1, 5) }, 10));
    }
    assert_eq!(failed, 3, "a long good time does not hide a sudden outage");
}

#[test]
fn an_isolated_run_opens_no_closed_breaker_and_is_held_back_by_an_open_one() {
    let isolated = FailedRun { is_isolated: true, ..run(1, 5) };
    assert_eq!(after(None, &isolated, 10), AfterFailure { next: None, probe_at: None });
    assert_eq!(after(Some(&open()), &isolated, 20), AfterFailure { next: None, probe_at: Some(at(72)) });
    let probing = open().probing(job(1), 1, 0, at(80), &LIMITS);
    let again = moved(Some(&probing), &FailedRun { began: at(81), ..isolated }, 82);
    assert_eq!(until(&again), Some(at(82 + 120)));
}

#[test]
fn while_it_is_open_failed_runs_change_nothing_and_pause_their_jobs() {
    assert_eq!(until(&open()), Some(at(72)));
    assert_eq!(after(Some(&open()), &run(9, 5), 20), AfterFailure { next: None, probe_at: Some(at(72)) });
    assert_eq!(after(Some(&open()), &run(9, 5), 100), AfterFailure { next: None, probe_at: Some(at(100)) });
    let forgotten = moved(Some(&open()), &run(9, 5), 72 + 600);
    assert_eq!(
        forgotten.state,
        BreakerState::Closed { since: at(672), failed: 1, good: 0 },
        "no job was left to probe"
    );
    assert_eq!(forgotten.openings, 0);
}

#[test]
fn a_probe_begins_when_the_time_is_over_and_a_failed_run_of_it_doubles_the_time() {
    let mut breaker = open();
    assert_eq!(look(&breaker, 1, 71), Look::Wait(at(72)));
    let mut now = 72;
    for (number, doubled) in [(3, 2), (2, 4), (3, 8), (2, 16), (3, 16), (2, 16_u32)] {
        assert!(doubled <= LONGEST_OPENING);
        assert_eq!(look(&breaker, number, now), Look::TakeProbe);
        let probing = breaker.probing(job(number), 1, 7, at(now), &LIMITS);
        breaker = moved(Some(&probing), &run(number, now), now + 1);
        now = now + 1 + 60 * i64::from(doubled);
        assert_eq!(until(&breaker), Some(at(now)));
    }
    assert_eq!(look(&breaker, 2, now), Look::Wait(at(now + 60)), "other jobs go first");
    assert_eq!(look(&breaker, 3, now), Look::TakeProbe);
    assert_eq!(look(&breaker, 2, now + 60), Look::TakeProbe, "there is no other one");
}

#[test]
fn only_runs_that_began_with_the_probe_decide_it() {
    let probing = open().probing(job(2), 1, 7, at(80), &LIMITS);
    let late = after(Some(&probing), &run(2, 79), 90);
    assert_eq!(late, AfterFailure { next: None, probe_at: Some(at(90)) }, "it may be resumed again at once");
    assert_eq!(look(&probing, 2, 90), Look::TakeProbe);
    let other = after(Some(&probing), &run(3, 85), 90);
    assert_eq!(other, AfterFailure { next: None, probe_at: Some(at(150)) });
    let BreakerState::Probing(probe) = probing.state.clone() else { panic!("{probing:?}") };
    assert_eq!(look(&probing, 3, 90), Look::Judge(probe));
    assert_eq!(probe.until, at(80) + LIMITS.probe * PROBE_TIMES);
}

#[test]
fn a_failed_run_after_progress_of_the_probe_is_the_first_one_of_a_new_window() {
    let probing = open().probing(job(2), 1, 7, at(80), &LIMITS);
    for number in [2, 3] {
        let next = Breaker::after_failure(Some(&probing), &run(number, 85), true, at(90), &LIMITS);
        assert_eq!(next.probe_at, None, "no job is paused for one failure");
        let next = next.next.unwrap();
        assert_eq!((next.rev, next.openings), (probing.rev + 1, 0));
        assert_eq!(next.state, BreakerState::Closed { since: at(90), failed: 1, good: 0 });
    }
}

#[test]
fn on_lanes_one_failed_run_of_each_is_enough() {
    assert_eq!(LIMITS.on_lanes(Some(1)).failures, 1);
    assert_eq!(LIMITS.on_lanes(Some(2)).failures, 2);
    assert_eq!(LIMITS.on_lanes(Some(100)), LIMITS);
    assert_eq!(LIMITS.on_lanes(None), LIMITS);
}

#[test]
fn a_closed_or_missing_breaker_and_one_that_was_switched_off_resume_every_job() {
    let closed = open().closed(at(80));
    assert_eq!(look(&closed, 1, 81), Look::Resume);
    assert_eq!(Breaker::look(None, job(1), 0.0, at(81), &LIMITS), Look::Resume);
    let off = BreakerLimits { failures: 0, ..LIMITS };
    assert_eq!(Breaker::look(Some(&open()), job(1), 0.0, at(20), &off), Look::Resume);
}
