//! The whole pipeline in one process: the real use cases of all functions over in-memory ports. In many tests a process
//! crashes before and after every port call.

mod admission;
mod archives;
mod at_work;
mod audits;
mod awaits;
mod breakers;
mod cancels;
mod copies;
mod dead_letters;
mod dedupes;
mod deletions;
mod estimates;
mod expiries;
mod fetches;
mod files;
mod holds;
mod hostile_workers;
mod input_files;
mod inputs;
mod isolation;
mod joint_commits;
mod lanes;
mod manifests;
mod many_files;
mod neighbours;
mod owner_priorities;
mod pauses;
mod permits;
mod pipeline;
mod previews;
mod products;
mod prunes;
mod redrives;
mod repeated_updates;
mod resends;
mod results;
mod retunes;
mod services;
mod slots;
mod slow_items;
mod stops;
mod sweeps;
mod tables;
mod tasks;
mod undos;
mod uploads;
mod why;
mod widths;

use acceptance::files::plain_csv;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::text::ChunkLimits;
use serde_json::{Value, json};

/// Limits with this many items per chunk, and with results in several parts.
fn chunks_of(max_items: u32) -> Limits {
    Limits::default().but(|limits| {
        limits.create.chunks = ChunkLimits { max_items, max_bytes: 200, max_record_bytes: 300 };
        limits.split.range_bytes = 97;
        limits.complete.part_bytes = 500;
    })
}

/// A world with this many items per chunk, and a job over this many good rows that is split.
async fn split(max_items: u32, rows: u64) -> (World, JobGuid) {
    split_with(max_items, rows, json!({})).await
}

/// The same, of a request with these further fields.
async fn split_with(max_items: u32, rows: u64, fields: Value) -> (World, JobGuid) {
    let world = World::new(chunks_of(max_items));
    let file = world.store_csv(plain_csv(rows)).await;
    let job = world.create_with(file, fields).await.job_guid;
    world.split().await;
    (world, job)
}
