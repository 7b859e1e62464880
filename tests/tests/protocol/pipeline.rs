//! A job from its file to its end: what is counted, what fails, and who may see it.

use std::collections::BTreeSet;
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::use_cases::Limits;
use acceptance::world::{World, change};
use acceptance::{files, oracle};
use create_job::create::CreateJobError;
use job_status::items::CauseFilter;
use process_items::end::ChunkEnd;
use proptest::prelude::*;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::job::{Stop, StopCode};
use rowmill_core::ports::{Admission, Ceilings, Clock, JobFilter, Jobs, PortError, Tallies};
use rowmill_core::text::ChunkLimits;
use serde_json::json;
use split_job::plan::SplitEnd;
use upload::upload::UploadError;

use crate::chunks_of;

#[tokio::test]
async fn every_character_of_the_real_file_becomes_a_record() {
    let world = World::new(Limits::default());
    let file = world.store_csv(files::unicode_csv()).await;
    let job = world.create("import", file, json!({ "dataset": "unicode", "key": "codepoint" })).await.unwrap();
    assert_eq!(world.show(job.job_guid).await.message, "Waiting for job to start...");
    let shown = world.run_and_show(job.job_guid).await;
    assert_eq!((shown.status, shown.outcome, shown.percent), (Status::Completed, Some(JobOutcome::Succeeded), 100));
    assert_eq!((shown.item_count, shown.items_succeeded, shown.items_failed), (11_231, 11_231, 0));
    let records = world.records.dataset("local/unicode");
    assert_eq!(records.len(), 11_231);
    assert_eq!(world.jobs.active("system"), 0);
}

#[tokio::test]
async fn a_dry_run_reports_what_an_import_would_and_writes_nothing() {
    let world = World::new(chunks_of(3));
    let file = world.store_csv("id,n\n1,1\n,2\n3,x\nragged\n").await;
    let params = |dry_run: bool| {
        let schema = json!({ "properties": { "n": { "type": "integer" } } });
        json!({ "dataset": "d", "key": "id", "schema": schema, "dryRun": dry_run })
    };
    let mut failed = Vec::new();
    for dry_run in [true, false] {
        let job = world.create("import", file, params(dry_run)).await.unwrap().job_guid;
        assert_eq!(world.run_and_show(job).await.items_succeeded, 1);
        let codes = world.all_failed(job).await.into_iter().map(|item| (item.row, item.code));
        failed.push(codes.collect::<Vec<_>>());
        assert_eq!(world.records.dataset("local/d").len(), usize::from(!dry_run));
    }
    assert_eq!(failed[0], failed[1]);
    let wrong = world.create("import", file, json!({ "dataset": "d", "dryRun": "yes" })).await;
    assert!(matches!(wrong, Err(CreateJobError::Params(_))));
}

#[tokio::test]
async fn each_malformed_row_fails_by_its_number_and_code() {
    let world = World::new(chunks_of(3));
    let long = "x".repeat(400);
    let csv = format!("a,b\n1,2\n\n3\n4,5,6\n\"q\"\"\n\",7\n8,{long}\n9,10\n");
    let mut bytes = csv.into_bytes();
    bytes.extend_from_slice(b"11,\xff\xfe\n12,13\n");
    let job = world.validate_csv(bytes.clone()).await;
    world.run().await;
    let failed = world.all_failed(job).await;
    let found: Vec<_> = failed.iter().map(|item| (item.row, item.code.as_str())).collect();
    assert_eq!(found, [(2, "ragged_row"), (3, "ragged_row"), (5, "row_too_long"), (7, "invalid_utf8")]);
    assert_eq!(oracle::ragged_rows(&bytes), [2, 3]);
    assert_eq!(failed[0].raw.as_deref(), Some("3"));
    assert!(failed[3].raw.is_none() && failed[3].raw_base64.is_some());
    let shown = world.show(job).await;
    assert_eq!((shown.item_count, shown.items_succeeded, shown.items_failed), (8, 4, 4));
    assert_eq!(shown.outcome, Some(JobOutcome::Partial));
}

#[tokio::test]
async fn an_unterminated_quote_fails_the_job_and_earlier_items_count() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv("a,b\n1,2\n3,4\n5,6\n7,\"8\n9,10\n").await;
    let shown = world.run_and_show(job).await;
    let error = shown.error.expect("an error");
    assert_eq!((shown.status, error.code, error.row), (Status::Failed, StopCode::UnterminatedQuote.into(), Some(4)));
    assert_eq!((shown.item_count, shown.item_progress), (3, 3));
    assert_eq!(world.jobs.active("owner#local"), 0, "the slots are released");
}

#[tokio::test]
async fn an_empty_file_and_a_header_alone_complete_with_no_items() {
    for bytes in ["", "a,b\n", "\u{feff}a,b", "a,b\r\n\r\n"] {
        let world = World::new(Limits::default());
        let file = world.store_csv(bytes).await;
        let job = world.create("import", file, json!({ "dataset": "d", "key": "a" })).await.unwrap();
        let shown = world.run_and_show(job.job_guid).await;
        assert_eq!((shown.status, shown.item_count, shown.percent), (Status::Completed, 0, 100), "{bytes:?}");
    }
}

#[tokio::test]
async fn a_missing_or_replaced_file_stops_the_job() {
    for replace in [false, true] {
        let world = World::new(chunks_of(2));
        let file = world.store_csv(files::plain_csv(50)).await;
        let job = world.create("validate", file, json!({})).await.unwrap();
        let split = world.splits.take().remove(0);
        assert_eq!(world.splitter.split(&split, world.deadline()).await.unwrap(), SplitEnd::Finished);
        let key = rowmill_core::model::keys::upload(file);
        match replace {
            true => drop(rowmill_core::ports::Objects::put(&*world.objects, &key, "", "x".into(), None).await.unwrap()),
            false => world.objects.delete(&key),
        }
        let shown = world.run_and_show(job.job_guid).await;
        assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::SourceChanged.into()));
        assert_eq!((shown.item_count, shown.items_skipped), (50, 50));
    }
}

/// A tally is counted, but its messages were never sent and no splitter will send them: the job must still end.
#[tokio::test]
async fn a_job_that_is_stopped_after_its_splitter_died_still_ends() {
    let cases = [(false, Death::Before), (false, Death::After), (true, Death::Before), (true, Death::After)];
    for (source_is_gone, death) in cases {
        for call in 0..40 {
            let world = World::new(chunks_of(1));
            let file = world.store_csv(files::plain_csv(100)).await;
            let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
            let message = world.splits.take().remove(0);
            world.faults.plan(call, death);
            if world.splitter.split(&message, world.deadline()).await.is_ok() {
                break;
            }
            world.faults.revive();
            world.clock.advance(Duration::from_secs(600));
            if source_is_gone {
                world.objects.delete(&rowmill_core::model::keys::upload(file));
            } else {
                let stop = Stop::source_changed("was replaced", None, world.clock.now());
                change(&*world.jobs, job, |job| job.stop(&stop)).await;
            }
            // Messages whose send lost its reply are delivered after the splitter has ended the split.
            let early = world.chunks.take();
            world.splitter.split(&message, world.deadline()).await.unwrap();
            for chunk in &early {
                world.process(chunk, false).await;
            }
            world.run().await;
            // The grace is over: the sweep closes the tally whose messages may be missing.
            world.clock.advance(Duration::from_secs(600));
            world.sweep_and_run().await;
            let row = world.jobs.job(job).await.unwrap();
            let counts =
                row.end().map(|end| end.counts).unwrap_or_else(|| panic!("not ended after a crash at call {call}"));
            assert_eq!((row.status(), counts.sum()), (Status::Failed, row.items_dispatched()), "call {call}");
            assert_eq!((row.completions, world.jobs.active("system")), (1, 0), "call {call}");
            for tally in world.jobs.tallies(job, 1, 0..row.split.tallies).await.unwrap() {
                assert_eq!((tally.done, tally.counts.sum()), (tally.expected, tally.items), "call {call}");
            }
        }
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_found_within_an_invocation_stops_the_job() {
    let world = World::new(chunks_of(1));
    let job = world.validate_csv(format!("a\n1\n\"{}", "x".repeat(10_000))).await;
    let message = world.splits.take().remove(0);
    assert_eq!(world.splitter.split(&message, world.clock.now()).await.unwrap(), SplitEnd::Finished);
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::SplitTimeout.into()));
}

#[tokio::test]
async fn a_dataset_whose_table_is_slow_is_split_in_a_later_invocation() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv("id\n1\n2\n").await;
    let import = world.create("import", file, json!({ "dataset": "d", "key": "id" })).await.unwrap().job_guid;
    assert_eq!(world.run_and_show(import).await.items_succeeded, 2);
    let export = json!({ "jobType": "export", "params": { "dataset": "d" } });
    let export = world.request(export).await.unwrap().job_guid;
    let message = world.splits.take().remove(0);
    assert_eq!(world.splitter.split(&message, world.clock.now()).await.unwrap(), SplitEnd::Continued);
    let shown = world.run_and_show(export).await;
    assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 2));
}

#[tokio::test]
async fn a_page_of_failed_items_is_limited_in_bytes() {
    let chunks = ChunkLimits { max_items: 500, max_bytes: 8 << 20, max_record_bytes: 8 << 20 };
    let world = World::new(Limits::default().but(|limits| limits.create.chunks = chunks));
    let row = format!("{},ragged,row\n", "x".repeat(1 << 20));
    let giant = format!("{},ragged,row\n", "x".repeat(3 << 20));
    let job = world.validate_csv(format!("a,b\n{}{giant}", row.repeat(7))).await;
    world.run().await;
    let job = world.jobs.job(job).await.unwrap();
    let (mut rows, mut after) = (Vec::new(), 0);
    loop {
        let page = world.items.failed(&job, &CauseFilter::default(), after, 100).await.unwrap();
        assert!(serde_json::to_vec(&page.items).unwrap().len() < 3_000_000);
        rows.extend(page.items.iter().map(|item| (item.row, item.raw.is_some())));
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(rows, (1..=8).map(|row| (row, row < 8)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_split_that_runs_out_of_time_continues_in_the_next_invocation() {
    let world = World::new(chunks_of(1));
    let job = world.validate_csv(files::plain_csv(1000)).await;
    let mut continuations = 0;
    while let Some(message) = world.splits.take().pop() {
        // Less time than the margin is left: every invocation dispatches one tally and hands over.
        let deadline = world.deadline_in(Duration::from_secs(10));
        if world.splitter.split(&message, deadline).await.unwrap() == SplitEnd::Continued {
            continuations += 1;
        }
    }
    assert_eq!(continuations, 1000_u32.div_ceil(64));
    assert_eq!(world.run_and_show(job).await.items_succeeded, 1000);
}

#[tokio::test]
async fn the_later_of_two_rows_with_one_key_wins_regardless_of_the_order_of_chunks() {
    let world = World::new(chunks_of(1));
    let file = world.store_csv("key,value\na,1\nb,2\na,3\nc,4\na,5\n").await;
    let job = world.create("import", file, json!({ "dataset": "d", "key": ["key"] })).await.unwrap();
    let split = world.splits.take().remove(0);
    world.splitter.split(&split, world.deadline()).await.unwrap();
    for message in world.chunks.take().iter().rev() {
        world.process(message, false).await;
    }
    let shown = world.run_and_show(job.job_guid).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (5, 0), "a superseded row counts as succeeded");
    let values: Vec<_> = world.records.dataset("local/d").iter().map(|record| record.fields["value"].clone()).collect();
    assert_eq!(values, ["5", "2", "4"]);
}

#[tokio::test]
async fn another_owner_sees_nothing_of_a_job_or_an_upload() {
    let world = World::new(Limits::default());
    let (mine, theirs) = (World::owner(), Owner("somebody else".to_owned()));
    let file = world.store_csv("a,b\n1,2\n").await;
    let job = world.create("validate", file, json!({})).await.unwrap();
    world.run().await;
    assert!(world.status.owned(&mine, job.job_guid).await.is_ok());
    assert!(matches!(world.status.owned(&theirs, job.job_guid).await, Err(PortError::NotFound)));
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    assert_eq!(world.status.list(&mine, &filter).await.unwrap().jobs.len(), 1);
    assert_eq!(world.status.list(&theirs, &filter).await.unwrap().jobs.len(), 0);
    assert!(matches!(world.uploads.show(&theirs, file).await, Err(UploadError::Unknown(_))));
    assert!(matches!(world.uploads.complete(&theirs, file).await, Err(UploadError::Unknown(_))));
    let request = json!({ "jobType": "validate", "fileGuid": file });
    let stolen = world.creator.create(&theirs, &serde_json::from_value(request).unwrap(), None).await;
    assert!(matches!(stolen, Err(CreateJobError::UnknownUpload(_))));
}

#[tokio::test]
async fn expired_jobs_and_uploads_are_not_shown() {
    let world = World::new(Limits::default());
    let file = world.store_csv("a,b\n1,2\n").await;
    let job = world.create("validate", file, json!({})).await.unwrap();
    world.run().await;
    world.clock.advance(Duration::from_secs(7 * 86_400 + 1));
    assert!(matches!(world.uploads.show(&World::owner(), file).await, Err(UploadError::Unknown(_))));
    assert!(world.status.owned(&World::owner(), job.job_guid).await.is_ok());
    world.clock.advance(Duration::from_secs(23 * 86_400));
    assert!(matches!(world.status.owned(&World::owner(), job.job_guid).await, Err(PortError::NotFound)));
    let filter = JobFilter { limit: 10, ..JobFilter::default() };
    assert_eq!(world.status.list(&World::owner(), &filter).await.unwrap().jobs.len(), 0);
}

#[tokio::test]
async fn a_request_that_cannot_become_a_job_writes_nothing() {
    let ceilings = Ceilings { owner: 1, job_type: 5, system: 5 };
    let world = World::new(Limits::default().but(|limits| limits.create.ceilings = ceilings));
    let file = world.store_csv("a,b\n1,2\n").await;
    let error = async |job_type, file, params| world.create(job_type, file, params).await.unwrap_err();
    assert!(matches!(error("nope", file, json!({})).await, CreateJobError::UnknownJobType { .. }));
    assert!(matches!(error("import", file, json!({})).await, CreateJobError::Params(_)));
    assert!(matches!(error("import", file, json!({"dataset": "d", "key": "z"})).await, CreateJobError::Params(_)));
    assert!(matches!(error("validate", file, json!({"schema": 5})).await, CreateJobError::Params(_)));
    assert!(matches!(error("validate", file, json!({"delimiter": 5})).await, CreateJobError::Field(_)));
    let unknown = "00000000-0000-4000-8000-0000000000ff".parse().unwrap();
    assert!(matches!(error("validate", unknown, json!({})).await, CreateJobError::UnknownUpload(_)));
    assert_eq!(world.jobs.active("system"), 0);
    world.create("validate", file, json!({})).await.unwrap();
    let full = error("validate", file, json!({})).await;
    assert!(matches!(full, CreateJobError::Full(full) if full.admission == Admission::OwnerFull));
    assert_eq!((world.jobs.active("system"), world.splits.take().len()), (1, 1));
    world.run().await;
}

/// The process crashes at every port call, once before and once after the call takes effect. The job has 71 chunks in
/// two tallies, and one chunk has a bad row.
#[tokio::test]
async fn a_crash_before_or_after_any_call_changes_no_count_and_the_job_ends() {
    let mut csv = files::plain_csv(70);
    csv.extend_from_slice(b"ragged\n");
    let mut crashes = 0;
    // First with enough time for everything, then with so little that each splitter hands over after one tally.
    for split_time in [Duration::from_secs(300), Duration::from_secs(10)] {
        crashes += at_every_call(async |call, death| {
            let world = World::new(chunks_of(1));
            let job = world.validate_csv(csv.clone()).await;
            world.faults.plan(call, death);
            world.run_through_crashes(split_time).await;
            let row = world.jobs.job(job).await.unwrap();
            let counts = row.end().expect("it has ended").counts;
            assert_eq!((counts.succeeded, counts.failed, counts.skipped), (70, 1, 0));
            assert_eq!((row.status(), row.completions), (Status::Completed, 1));
            assert_eq!(world.jobs.active("system"), 0);
            assert_eq!(world.all_failed(job).await.len(), 1);
            !world.faults.is_pending()
        })
        .await;
    }
    assert!(crashes > 1000, "only {crashes} calls");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Hostile bytes and tiny chunks; every message is delivered one to three times, in any order.
    #[test]
    fn counts_are_exact_for_any_file_and_any_repeated_messages(
        body in prop::collection::vec(prop::sample::select(b"ab,\"\n\r1\xff\x00".to_vec()), 0..600),
        max_items in 1..6_u32,
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new(chunks_of(max_items));
            let mut file = b"a,b\n".to_vec();
            file.extend_from_slice(&body);
            let job = world.store_csv(file.clone()).await;
            let job = world.create("validate", job, json!({})).await.unwrap().job_guid;
            let mut chance = seed;
            let mut dice = |sides: u64| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (chance >> 33) % sides
            };
            let (mut splits, mut chunks, mut completions) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                splits.extend(world.splits.take());
                chunks.extend(world.chunks.take());
                completions.extend(world.completions.take());
                let queued = [splits.len(), chunks.len(), completions.len()];
                if queued.iter().sum::<usize>() == 0 {
                    break;
                }
                let repeats = dice(3) == 0;
                match dice(3) {
                    0 if queued[0] > 0 => {
                        let message = take(&mut splits, dice(queued[0] as u64), repeats);
                        world.splitter.split(&message, world.deadline()).await.unwrap();
                    }
                    1 if queued[1] > 0 => {
                        let message = take(&mut chunks, dice(queued[1] as u64), repeats);
                        let end = world.process(&message, dice(2) == 0).await;
                        assert!(!matches!(end, ChunkEnd::Committed(counts) if counts.sum() != u64::from(message.chunk.items)));
                    }
                    2 if queued[2] > 0 => {
                        let message = take(&mut completions, dice(queued[2] as u64), repeats);
                        world.completer.complete(&message, world.deadline()).await.unwrap();
                    }
                    _ => {}
                }
            }
            let row = world.jobs.job(job).await.unwrap();
            let shown = world.show(job).await;
            assert!(shown.status.is_terminal());
            assert_eq!(row.completions, 1);
            assert_eq!(world.jobs.active("system"), 0);
            assert_eq!(shown.item_progress, shown.item_count);
            let data = oracle::range(&file, 4..row.split.cursor.offset.max(4));
            assert_eq!(shown.item_count, oracle::csv_records(data));
            let failed = world.all_failed(job).await;
            let rows: BTreeSet<u64> = failed.iter().map(|item| item.row).collect();
            assert_eq!(rows.len() as u64, shown.items_failed, "each failed item is listed once");
            assert_eq!(failed.len(), rows.len());
        });
    }
}

/// Takes the message at this place; it stays in the queue if it is delivered again.
fn take<M: Clone>(queue: &mut Vec<M>, at: u64, repeats: bool) -> M {
    let message = queue.swap_remove(usize::try_from(at).unwrap());
    if repeats {
        queue.push(message.clone());
    }
    message
}
