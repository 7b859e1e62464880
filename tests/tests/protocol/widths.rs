//! `maxConcurrency`: a limit on the distinct chunks of a job in flight, and every chunk is processed in the end.

use std::collections::BTreeSet;
use std::time::Duration;

use acceptance::faults::Death;
use acceptance::files;
use acceptance::world::World;
use rowmill_core::model::states::Status;
use rowmill_core::ports::Jobs;
use serde_json::json;

use crate::chunks_of;

#[tokio::test]
async fn no_more_chunks_are_in_flight_than_max_concurrency() {
    for width in [1, 3, 64, 70, 100] {
        let world = World::new(chunks_of(1));
        let file = world.store_csv(files::plain_csv(150)).await;
        let job = world.create_with(file, json!({ "maxConcurrency": width })).await.job_guid;
        world.split().await;
        let mut in_flight = world.chunks.take();
        let mut most = 0;
        while let Some(message) = in_flight.pop() {
            let distinct: BTreeSet<_> = in_flight.iter().chain([&message]).map(|message| message.address).collect();
            most = most.max(distinct.len());
            assert_eq!(world.show(job).await.chunks_in_flight, distinct.len() as u64);
            world.process(&message, false).await;
            in_flight.extend(world.chunks.take());
        }
        world.run().await;
        let shown = world.show(job).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 150), "width {width}");
        assert_eq!(shown.chunks_in_flight, 0);
        assert_eq!(most, width, "exactly the limit");
    }
}

#[tokio::test]
async fn a_crash_at_any_call_does_not_stall_a_job_with_max_concurrency() {
    for death in [Death::Before, Death::After] {
        for call in 0.. {
            let world = World::new(chunks_of(1));
            let file = world.store_csv(files::plain_csv(70)).await;
            let job = world.create_with(file, json!({ "maxConcurrency": 2 })).await.job_guid;
            world.faults.plan(call, death);
            world.run_through_crashes(Duration::from_secs(300)).await;
            let shown = world.show(job).await;
            assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 70), "{death:?} call {call}");
            assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
            if world.faults.is_pending() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_cancelled_job_whose_last_chunks_were_never_sent_ends() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv(files::plain_csv(150)).await;
    let job = world.create_with(file, json!({ "maxConcurrency": 2 })).await.job_guid;
    world.split().await;
    world.cancel(job).await;
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_skipped, shown.item_progress), (Status::Cancelled, 150, 150));
}
