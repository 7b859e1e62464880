use futures::future::join_all;

use super::fixtures::{guid, run};
use crate::contract::at;
use rowmill_core::model::checkpoint::{Checkpoint, InFlight};
use rowmill_core::model::tally::{ChunkAddress, Counts};
use rowmill_core::ports::{CheckpointMoved, JobStore};

const CHUNK: ChunkAddress = ChunkAddress { attempt: 1, tally: 3, index: 7 };

fn blank() -> Checkpoint {
    Checkpoint::blank(CHUNK, at(1))
}

/// A checkpoint with all fields set.
fn full() -> Checkpoint {
    Checkpoint {
        done: 5,
        counts: Counts { succeeded: 3, failed: 2, skipped: 0 },
        run_output: Some(run(9)),
        isolated: true,
        in_flight: Some(InFlight::of_run(at(60), 1, 1)),
        passed_over: 1,
        begun: Some(2),
        ..blank()
    }
}

pub async fn a_chunk_has_no_checkpoint_before_its_first_move(store: &impl JobStore) {
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), None);
    let first = blank().moved(run(1), at(2));
    assert_eq!(store.move_checkpoint(guid(1), &first).await.unwrap(), CheckpointMoved::Won);
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(first));
}

pub async fn a_checkpoint_reads_back_as_it_was_written(store: &impl JobStore) {
    let first = full().moved(run(1), at(2));
    assert_eq!(store.move_checkpoint(guid(1), &first).await.unwrap(), CheckpointMoved::Won);
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(first.clone()));
    // A move also removes fields.
    let second = Checkpoint { in_flight: None, run_output: None, ..first.moved(run(2), at(3)) };
    assert_eq!(store.move_checkpoint(guid(1), &second).await.unwrap(), CheckpointMoved::Won);
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(second));
}

pub async fn a_checkpoint_moves_only_from_its_current_revision(store: &impl JobStore) {
    let first = blank().moved(run(1), at(2));
    let second = first.moved(run(1), at(3));
    for checkpoint in [&first, &second] {
        assert_eq!(store.move_checkpoint(guid(1), checkpoint).await.unwrap(), CheckpointMoved::Won);
    }
    let behind = [blank().moved(run(2), at(4)), first.moved(run(2), at(4))];
    let ahead = second.moved(run(2), at(4)).moved(run(2), at(4));
    for other in behind.iter().chain([&ahead]) {
        assert_eq!(store.move_checkpoint(guid(1), other).await.unwrap(), CheckpointMoved::Lost(second.clone()));
    }
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(second));
}

pub async fn a_missing_checkpoint_is_created_by_its_first_move(store: &impl JobStore) {
    let second = blank().moved(run(1), at(2)).moved(run(1), at(3));
    let moved = store.move_checkpoint(guid(1), &second).await.unwrap();
    assert_eq!(moved, CheckpointMoved::Lost(Checkpoint::blank(CHUNK, at(3))));
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), None);
}

pub async fn a_move_whose_reply_was_lost_is_recognised(store: &impl JobStore) {
    let first = full().moved(run(1), at(2));
    let second = first.moved(run(1), at(3));
    for checkpoint in [&first, &first, &second, &second] {
        assert_eq!(store.move_checkpoint(guid(1), checkpoint).await.unwrap(), CheckpointMoved::Won);
    }
    assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap(), Some(second.clone()));
    let other = Checkpoint { done: second.done + 1, ..second.clone() };
    assert_eq!(store.move_checkpoint(guid(1), &other).await.unwrap(), CheckpointMoved::Lost(second.clone()));
    // After the checkpoint has moved on, an old move is lost, also one of its own run.
    assert_eq!(store.move_checkpoint(guid(1), &first).await.unwrap(), CheckpointMoved::Lost(second));
}

pub async fn one_of_ten_concurrent_moves_wins(store: &impl JobStore) {
    let mut checkpoint = blank();
    // The first round begins the checkpoint, the others move it.
    for _ in 0..3 {
        let moves: Vec<Checkpoint> = (1..=10).map(|by| checkpoint.moved(run(by), at(2))).collect();
        let results = join_all(moves.iter().map(|moved| store.move_checkpoint(guid(1), moved))).await;
        let mut won = moves.iter().zip(&results).filter(|(_, result)| matches!(result, Ok(CheckpointMoved::Won)));
        let (winner, _) = won.next().expect("one is made");
        assert!(won.next().is_none(), "and only one");
        let lost = CheckpointMoved::Lost(winner.clone());
        assert_eq!(results.iter().flatten().filter(|result| **result == lost).count(), 9);
        assert_eq!(store.checkpoint(guid(1), CHUNK).await.unwrap().as_ref(), Some(winner));
        checkpoint = winner.clone();
    }
}

pub async fn every_chunk_has_a_checkpoint_of_its_own(store: &impl JobStore) {
    let chunks = [
        CHUNK,
        ChunkAddress { attempt: 2, ..CHUNK },
        ChunkAddress { tally: 30, ..CHUNK },
        ChunkAddress { index: 63, ..CHUNK },
    ];
    for (by, chunk) in (1..).zip(chunks) {
        let first = Checkpoint::blank(chunk, at(1)).moved(run(by), at(2));
        assert_eq!(store.move_checkpoint(guid(1), &first).await.unwrap(), CheckpointMoved::Won);
    }
    for (by, chunk) in (1..).zip(chunks) {
        let checkpoint = store.checkpoint(guid(1), chunk).await.unwrap().expect("a checkpoint");
        assert_eq!((checkpoint.chunk, checkpoint.by), (chunk, Some(run(by))));
    }
    assert_eq!(store.checkpoint(guid(2), CHUNK).await.unwrap(), None);
}
