//! The contract of [`Breakers`].

use futures::future::join_all;
use uuid::Uuid;

use super::{at, run_checks};
use rowmill_core::model::breaker::{Breaker, BreakerState, Probe};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{BreakerMoved, Breakers};

/// Checks a [`Breakers`].
///
/// # Panics
/// If the adapter breaks a promise of the port.
pub async fn breakers<S: Breakers>(make: impl AsyncFn() -> S) {
    run_checks!(
        make,
        a_breaker_reads_back_as_it_was_written,
        a_breaker_moves_only_from_its_current_revision,
        a_move_whose_reply_was_lost_is_recognised,
        one_of_ten_concurrent_moves_wins,
        every_job_type_has_a_breaker_of_its_own,
    );
}

/// A breaker of this revision. `by` distinguishes those who write it.
fn breaker(rev: u64, by: u32) -> Breaker {
    Breaker {
        rev,
        at: at(1),
        state: BreakerState::Closed { since: at(1), failed: 1, good: by },
        openings: 0,
        code: "unavailable".into(),
        failed_probe: None,
    }
}

async fn a_breaker_reads_back_as_it_was_written(breakers: &impl Breakers) {
    assert_eq!(breakers.breaker("mail").await.unwrap(), None);
    let job = JobGuid(Uuid::from_u128(7));
    let probe = Probe { job, attempt: 2, began: at(3), accounted: 4, until: at(5) };
    let states = [breaker(1, 0).state, BreakerState::Open { until: at(9) }, BreakerState::Probing(probe)];
    for (rev, state) in (1..).zip(states) {
        let next = Breaker { rev, state, openings: 2, failed_probe: Some(job), ..breaker(1, 0) };
        assert_eq!(breakers.move_breaker("mail", &next).await.unwrap(), BreakerMoved::Won);
        assert_eq!(breakers.breaker("mail").await.unwrap(), Some(next));
    }
}

async fn a_breaker_moves_only_from_its_current_revision(breakers: &impl Breakers) {
    assert_eq!(breakers.move_breaker("mail", &breaker(2, 0)).await.unwrap(), BreakerMoved::Lost(None));
    for rev in [1, 2] {
        assert_eq!(breakers.move_breaker("mail", &breaker(rev, 0)).await.unwrap(), BreakerMoved::Won);
    }
    for rev in [1, 2, 4] {
        let lost = breakers.move_breaker("mail", &breaker(rev, 1)).await.unwrap();
        assert_eq!(lost, BreakerMoved::Lost(Some(breaker(2, 0))), "{rev}");
    }
    assert_eq!(breakers.breaker("mail").await.unwrap(), Some(breaker(2, 0)));
}

async fn a_move_whose_reply_was_lost_is_recognised(breakers: &impl Breakers) {
    for _ in 0..2 {
        assert_eq!(breakers.move_breaker("mail", &breaker(1, 0)).await.unwrap(), BreakerMoved::Won);
    }
}

async fn one_of_ten_concurrent_moves_wins(breakers: &impl Breakers) {
    breakers.move_breaker("mail", &breaker(1, 0)).await.unwrap();
    let next: Vec<Breaker> = (0..10).map(|by| breaker(2, by)).collect();
    let moved = join_all(next.iter().map(|next| breakers.move_breaker("mail", next))).await;
    let won: Vec<&Breaker> = (next.iter().zip(&moved))
        .filter_map(|(next, moved)| (*moved.as_ref().unwrap() == BreakerMoved::Won).then_some(next))
        .collect();
    assert_eq!(won.len(), 1);
    assert_eq!(breakers.breaker("mail").await.unwrap().as_ref(), Some(won[0]));
}

async fn every_job_type_has_a_breaker_of_its_own(breakers: &impl Breakers) {
    breakers.move_breaker("mail", &breaker(1, 0)).await.unwrap();
    assert_eq!(breakers.breaker("import").await.unwrap(), None);
    assert_eq!(breakers.move_breaker("import", &breaker(1, 1)).await.unwrap(), BreakerMoved::Won);
    assert_eq!(breakers.breaker("mail").await.unwrap(), Some(breaker(1, 0)));
}
