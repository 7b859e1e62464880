//! Items that are fast run a batch at a time, also isolated: one that fails or kills takes no other with it.

use super::*;

/// A world with chunks of so many fast items, and a job over these rows whose only chunk became a dead letter.
async fn isolated_fast(max_items: u32, rows: &str) -> (World, JobGuid, ChunkMessage) {
    let limits = chunks_of(max_items).but(|limits| limits.create.chunks.max_bytes = 1 << 20);
    let world = scripted_of(CostClass::Fast, limits);
    let job = create(&world, rows).await;
    world.split().await;
    let message = world.chunks.take().remove(0);
    world.dead_letters.settle("letter", &DeadMessage::Chunk(message.clone())).await.unwrap();
    (world, job, message)
}

#[tokio::test]
async fn a_poison_item_among_many_fast_ones_costs_few_checkpoints() {
    const ITEMS: u64 = 1000;
    let rows: Vec<_> = (1..=ITEMS).map(|row| if row == 700 { "hang" } else { "good" }).collect();
    let (world, job, message) = isolated_fast(1000, &rows.join(" ")).await;
    world.run_with_dead_letters().await;
    assert_eq!(failed(&world, job).await, [(700, "poison".to_owned())]);
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, ITEMS - 1, 1));
    assert_eq!(world.jobs.dead_letters(job, 10).await.unwrap().len(), 1, "the chunk went to the isolate queue once");
    // 3 batches, then parts of 16, and the items of one of those alone.
    let moved = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap().rev;
    assert!(moved < 100, "{moved} moves for {ITEMS} items");
}

#[tokio::test]
async fn poison_items_beside_each_other_fail_alone() {
    let rows: Vec<_> = (1..=100).map(|row| if [40, 41].contains(&row) { "hang" } else { "good" }).collect();
    let (world, job, _) = isolated_fast(100, &rows.join(" ")).await;
    world.run_with_dead_letters().await;
    assert_eq!(failed(&world, job).await, [40, 41].map(|row| (row, "poison".to_owned())));
    assert_eq!(world.show(job).await.items_succeeded, 98);
}

#[tokio::test]
async fn a_transient_failure_takes_no_fast_item_with_it() {
    let (world, job, _) = isolated_fast(20, "good bad good good busy good good good good good").await;
    world.run_with_dead_letters().await;
    assert_eq!(failed(&world, job).await, [(2, "bad"), (5, "busy")].map(|(row, code)| (row, code.to_owned())));
    assert_eq!(world.show(job).await.items_succeeded, 8);
}

#[tokio::test]
async fn fast_items_that_take_too_long_are_narrowed_without_another_delivery() {
    let (world, job, message) = isolated_fast(40, &format!("{}hang", "good ".repeat(39))).await;
    let mut messages = world.isolated.take();
    let mut invocations = 0;
    let end = loop {
        let next = messages.remove(0);
        invocations += 1;
        match world.try_process(&next, false).await {
            Ok(ChunkEnd::Continued) => messages = world.isolated.take(),
            end => break end,
        }
    };
    assert!(end.is_err() && invocations < 7, "{end:?} after {invocations} invocations");
    let checkpoint = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap();
    let note = checkpoint.in_flight.unwrap();
    assert_eq!((checkpoint.done, note.items), (39, 1), "only the one that hangs is left");
    let ahead = world.deadline_in(world.limits.run.margin);
    assert!(note.until >= ahead, "the clock of another process may be ahead");
}

/// A process that dies while several items run.
#[tokio::test]
async fn a_death_of_fast_items_is_answered_with_one_fresh_message() {
    let mut deaths = 0;
    for call in 0.. {
        let (world, job, message) = isolated_fast(40, &["good"; 40].join(" ")).await;
        let isolated = world.isolated.take().remove(0);
        world.faults.plan(call, Death::After);
        let end = world.try_process(&isolated, false).await;
        if world.faults.is_pending() {
            assert!(matches!(end, Ok(ChunkEnd::Committed(_))), "{end:?}");
            break;
        }
        world.faults.revive();
        world.isolated.take();
        world.outlast_runs();
        let checkpoint = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap();
        let note = checkpoint.in_flight.filter(|note| note.items > 1);
        let end = world.process(&isolated, true).await;
        let (fresh, repeated) = (world.isolated.take(), matches!(end, ChunkEnd::Repeated));
        if note.is_none() || repeated {
            continue;
        }
        deaths += 1;
        assert_eq!((end, fresh.len()), (ChunkEnd::Continued, 1), "call {call}");
        let checkpoint = world.jobs.checkpoint(job, message.address).await.unwrap().unwrap();
        assert_eq!((checkpoint.in_flight, checkpoint.suspects.unwrap().part), (None, 2), "call {call}");
        let end = world.process(&fresh[0], false).await;
        assert!(matches!(end, ChunkEnd::Committed(_)), "call {call}: {end:?}");
    }
    assert!(deaths > 0, "no process died while its items ran");
}
