use super::job_tests::{at, breaker, ended, running, stop, waiting};
use super::{Job, Priority, Stop, StopCode, Tuning};
use crate::model::spec::Tolerance;
use crate::model::tally::Counts;

fn tolerated(count: u64) -> Tolerance {
    Tolerance { percent: None, count: Some(count), minimum_items: None }
}

#[test]
fn an_active_job_gets_the_limits_that_are_named() {
    let tuning = Tuning {
        tolerance: Some(tolerated(3)),
        max_concurrency: None,
        priority: Some(Priority::High),
        deadline_at: Some(at(600)),
    };
    // The sweep has a paused job in hand at once.
    for (job, wake_at) in [(waiting(), at(600)), (running(), at(600)), (running().pause(at(2)).unwrap(), at(2))] {
        let tuned = job.retune(&tuning, at(3)).unwrap();
        let expected =
            Job { tolerance: Some(tolerated(3)), priority: Priority::High, deadline_at: at(600), ..job.clone() };
        assert_eq!(tuned, Job { wake_at: Some(wake_at), ..expected }, "and nothing else");
        assert_eq!(tuned.retune(&tuning, at(3)), Some(tuned.clone()), "the same again");
        assert_eq!(job.retune(&Tuning::default(), at(3)), Some(job.clone()), "nothing is named");
        let one = tuned.retune(&Tuning { tolerance: Some(tolerated(9)), ..Tuning::default() }, at(3)).unwrap();
        assert_eq!(one, Job { tolerance: Some(tolerated(9)), ..tuned });
    }
    let stopped = running().stop(&stop(StopCode::SourceChanged)).unwrap();
    assert_eq!((stopped.retune(&tuning, at(3)), ended().retune(&tuning, at(3))), (None, None));
}

#[test]
fn the_sweep_looks_at_a_job_by_its_deadline() {
    let deadline = |second| Tuning { deadline_at: Some(at(second)), ..Tuning::default() };
    assert_eq!(waiting().retune(&deadline(20_000), at(3)).unwrap().wake_at, Some(at(900)), "the sweep looks earlier");
    let late = Job { wake_at: Some(at(15_000)), ..waiting() };
    assert_eq!(late.retune(&deadline(14_400), at(3)), Some(late.clone()), "it has this deadline");
    let paused = waiting().pause_by_breaker(&breaker(), at(99_999), at(2)).unwrap();
    assert_eq!(paused.wake_at, Some(at(14_400)));
    assert_eq!(waiting().before_deadline(at(99_999), at(14_400)), at(99_999), "it has passed");
}

#[test]
fn a_stop_for_a_limit_asks_the_limit_of_the_row() {
    let later = running().retune(&Tuning { deadline_at: Some(at(20_000)), ..Tuning::default() }, at(3)).unwrap();
    assert_eq!(later.stop_overdue(at(14_400)), None);
    assert!(running().stop_overdue(at(14_400)).unwrap().is_stopped());
    let failed = Counts { failed: 3, ..Counts::default() };
    let tolerates = |count| Job { tolerance: Some(tolerated(count)), ..running() }.stop_exceeded(failed, at(7));
    assert_eq!((running().stop_exceeded(failed, at(7)), tolerates(3)), (None, None));
    assert_eq!(tolerates(2).unwrap().stopped_by(), Some(&Stop::tolerance_exceeded(failed, at(7))));
    let redriven = Job { attempt: 2, tolerance: Some(tolerated(2)), ..running() };
    assert_eq!(redriven.stop_exceeded(failed, at(7)), None, "its items had failed before");
}
