//! Each thing that an audit reads is damaged in turn, and the audit names it.

use acceptance::world::World;
use bytes::Bytes;
use rowmill_core::model::audit::{AuditCode, AuditVerdict};
use rowmill_core::model::chunk_index::ChunkIndex;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Phase;
use rowmill_core::model::job::{End, Job};
use rowmill_core::model::keys;
use rowmill_core::model::results::Manifest;
use rowmill_core::model::run_output::RunOutput;
use rowmill_core::model::tally::{ChunkAddress, MarkKind, Tally, Totals};
use rowmill_core::ports::{Jobs, Objects, Tallies};
use serde_json::json;

use super::{created, ended, redriven};
use crate::chunks_of;

/// Damages a row.
type Edit<T> = fn(&mut T);

/// The damaged object, its place, the damage, and the answer of the audit.
type Damage<P, T> = (&'static str, P, Edit<T>, AuditCode);

fn end(job: &mut Job) -> &mut End {
    let Phase::Ended(end) = &mut job.phase else { panic!("it has not ended") };
    end
}

/// An ended job that can be damaged.
struct Damaged {
    world: World,
    job: JobGuid,
}

impl Damaged {
    async fn new() -> Self {
        let world = World::new(chunks_of(1));
        let job = redriven(&world).await;
        Self { world, job }
    }

    async fn row(&self) -> Job {
        self.world.jobs.job(self.job).await.unwrap()
    }

    fn tally(&self, attempt: u32, number: u32, edit: impl FnOnce(&mut Tally)) {
        self.world.jobs.edit_tally(self.job, attempt, number, edit);
    }

    async fn index(&self, attempt: u32, number: u32, edit: impl FnOnce(&mut ChunkIndex)) {
        self.json(&keys::chunk_index(self.job, attempt, number, None), edit).await;
    }

    async fn manifest(&self, edit: impl FnOnce(&mut Manifest)) {
        let results = self.row().await.end().unwrap().results.clone().unwrap();
        self.json(&results.manifest_key(self.job), edit).await;
    }

    async fn json<T: serde::de::DeserializeOwned + serde::Serialize>(&self, key: &str, edit: impl FnOnce(&mut T)) {
        let mut value = serde_json::from_slice(&self.world.objects.read(key).await.unwrap()).unwrap();
        edit(&mut value);
        self.put(key, serde_json::to_vec(&value).unwrap()).await;
    }

    async fn put(&self, key: &str, bytes: impl Into<Bytes>) {
        self.world.objects.put(key, "application/json", bytes.into(), None).await.unwrap();
    }

    /// The key of the run output that won this chunk.
    async fn output_key(&self, attempt: u32, tally: u32, index: u8) -> String {
        let mark = self.world.jobs.tally(self.job, attempt, tally).await.unwrap().mark(index).unwrap();
        keys::run_output(self.job, ChunkAddress { attempt, tally, index }, mark.run)
    }

    async fn output(&self, place: (u32, u32, u8), edit: impl FnOnce(&mut RunOutput)) {
        let key = self.output_key(place.0, place.1, place.2).await;
        let mut output = RunOutput::from_bytes(&self.world.objects.read(&key).await.unwrap()).unwrap();
        edit(&mut output);
        self.put(&key, output.to_bytes().unwrap()).await;
    }

    /// Fails unless the audit names this, with attempt, tally and chunk.
    async fn names(&self, what: &str, code: AuditCode, attempt: u32, tally: Option<u32>, chunk: Option<u8>) {
        let audit = self.world.audit(self.job).await;
        assert_eq!(audit.verdict, AuditVerdict::Refuted, "{what}");
        let finding = audit.finding.unwrap();
        let place = (finding.attempt, finding.tally, finding.chunk);
        assert_eq!((&finding.code, place), (&code.into(), (attempt, tally, chunk)), "{what}: {}", finding.message);
        assert!(finding.message.ends_with('.') && audit.next.is_none(), "{what}");
    }
}

#[tokio::test]
async fn damage_to_a_tally_is_named() {
    use AuditCode::{ChunkIndexDiffers, MarkMissing, MarkSurplus, TallyDiffers, TallyOpen};
    let edits: [Damage<(u32, u32), Tally>; 9] = [
        (
            "a count",
            (1, 1),
            |tally| {
                tally.counts.succeeded -= 1;
                tally.counts.failed += 1;
            },
            TallyDiffers,
        ),
        ("a count that is too low", (1, 1), |tally| tally.counts.succeeded -= 1, TallyDiffers),
        ("the bytes", (1, 1), |tally| tally.bytes += 1, TallyDiffers),
        ("a mark", (2, 0), |tally| tally.marks[1] = None, MarkMissing),
        ("a mark of an earlier attempt", (1, 0), |tally| tally.marks[0] = None, TallyDiffers),
        ("a mark without a chunk", (1, 1), |tally| tally.marks[60] = tally.marks[0], MarkSurplus),
        ("the number of commits", (1, 1), |tally| tally.done -= 1, TallyOpen),
        (
            "a chunk too many",
            (1, 1),
            |tally| (tally.expected, tally.done) = (tally.expected + 1, tally.done + 1),
            ChunkIndexDiffers,
        ),
        ("the kind of a mark", (1, 0), |tally| tally.marks[1].as_mut().unwrap().kind = MarkKind::Clean, TallyDiffers),
    ];
    for (what, (attempt, number), edit, code) in edits {
        let wrong = Damaged::new().await;
        wrong.tally(attempt, number, edit);
        let chunk = (code == MarkMissing).then_some(1);
        wrong.names(what, code, attempt, Some(number), chunk).await;
    }

    let wrong = Damaged::new().await;
    wrong.world.objects.expire(&format!("results/{}/1/", wrong.job));
    wrong.world.clock.advance(wrong.world.limits.jobs.retention);
    wrong.tally(1, 0, |tally| tally.counts.failed -= 1);
    wrong.names("a count of an expired attempt", AuditCode::TallyDiffers, 1, Some(0), None).await;

    let wrong = Damaged::new().await;
    wrong.world.jobs.lose_tally(wrong.job, 1, 0);
    wrong.names("a tally", AuditCode::TallyMissing, 1, Some(0), None).await;
}

#[tokio::test]
async fn a_chunk_that_is_lost_or_is_there_twice_is_named() {
    let wrong = Damaged::new().await;
    let key = keys::chunk_index(wrong.job, 1, 1, None);
    wrong.world.objects.delete(&key);
    wrong.names("a chunk index", AuditCode::ChunkIndexMissing, 1, Some(1), None).await;
    wrong.put(&key, "{").await;
    wrong.names("half a chunk index", AuditCode::ChunkIndexInvalid, 1, Some(1), None).await;

    let wrong = Damaged::new().await;
    wrong.index(1, 1, |index| index.chunks.truncate(5)).await;
    wrong.names("a chunk", AuditCode::ChunkIndexDiffers, 1, Some(1), None).await;

    let wrong = Damaged::new().await;
    wrong.index(1, 1, |index| index.end.offset += 1).await;
    wrong.names("the end of a chunk index", AuditCode::ChunkIndexDiffers, 1, Some(1), None).await;

    // The second tally holds the last chunk of the first one instead of its own first chunk.
    let wrong = Damaged::new().await;
    let mut last = None;
    wrong.index(1, 0, |index| last = index.chunks.last().copied()).await;
    wrong.index(1, 1, |index| index.chunks[0] = last.unwrap()).await;
    wrong.names("a chunk in two tallies", AuditCode::ChunkRepeated, 1, Some(1), Some(0)).await;

    // The second tally begins one chunk early.
    let wrong = Damaged::new().await;
    let start = last.unwrap().start();
    wrong.index(1, 1, |index| index.start = start).await;
    wrong.tally(1, 1, |tally| tally.start = start);
    wrong.names("a tally that begins early", AuditCode::ChunkRepeated, 1, Some(1), Some(0)).await;

    let wrong = Damaged::new().await;
    wrong.index(1, 0, |index| index.chunks[5] = index.chunks[4]).await;
    wrong.names("a chunk twice in a tally", AuditCode::ChunkRepeated, 1, Some(0), Some(5)).await;
    wrong.index(1, 0, |index| index.chunks[5] = index.chunks[6]).await;
    wrong.names("rows between two chunks", AuditCode::ChunkGap, 1, Some(0), Some(5)).await;

    let wrong = Damaged::new().await;
    wrong.index(2, 0, |index| index.chunks[2] = index.chunks[1]).await;
    wrong.names("a chunk twice in a redrive", AuditCode::ChunkRepeated, 2, Some(0), Some(2)).await;
}

#[tokio::test]
async fn damage_to_a_run_output_is_named() {
    use AuditCode::{RunOutputDiffers, TallyDiffers};
    // Row 2 failed in chunk 1, row 66 in chunk 1 of the second tally; rows 4 and 70 failed again in the redrive.
    let edits: [Damage<(u32, u32, u8), RunOutput>; 5] = [
        ("a failed row", (1, 1, 1), |output| output.failed.clear(), TallyDiffers),
        ("a failed row twice", (1, 0, 1), |output| output.failed.push(output.failed[0].clone()), RunOutputDiffers),
        ("a row of another chunk", (1, 0, 1), |output| output.failed[0].row = 9, RunOutputDiffers),
        ("an output twice", (1, 0, 2), |output| output.outputs.push(output.outputs[0].clone()), RunOutputDiffers),
        ("a failed row of a redrive", (2, 0, 3), |output| output.failed.clear(), TallyDiffers),
    ];
    for (what, place @ (attempt, tally, chunk), edit, code) in edits {
        let wrong = Damaged::new().await;
        wrong.output(place, edit).await;
        let chunk = (code == RunOutputDiffers).then_some(chunk);
        wrong.names(what, code, attempt, Some(tally), chunk).await;
    }

    let wrong = Damaged::new().await;
    let key = wrong.output_key(1, 0, 3).await;
    wrong.put(&key, "{").await;
    wrong.names("half a run output", AuditCode::RunOutputInvalid, 1, Some(0), Some(3)).await;
    wrong.world.objects.delete(&key);
    wrong.names("a run output", AuditCode::RunOutputMissing, 1, Some(0), Some(3)).await;
}

#[tokio::test]
async fn damage_to_the_totals_and_to_the_job_is_named() {
    let edits: [(&str, Edit<Totals>); 4] = [
        ("a count of the totals", |totals| totals.counts.failed += 1),
        ("the items of the totals", |totals| totals.items -= 1),
        ("a tally that is not folded", |totals| totals.closed.retain(|number| *number > 0)),
        ("another tally instead", |totals| {
            totals.closed.pop_first();
            totals.closed.insert(9);
        }),
    ];
    for (what, edit) in edits {
        for attempt in [1, 2] {
            let wrong = Damaged::new().await;
            wrong.world.jobs.edit_totals(wrong.job, attempt, edit);
            wrong.names(what, AuditCode::TotalsDiffer, attempt, None, None).await;
        }
    }
    let wrong = Damaged::new().await;
    wrong.world.jobs.edit_totals(wrong.job, 1, |totals| totals.final_tallies = None);
    wrong.names("the number of tallies", AuditCode::TotalsMissing, 1, None, None).await;

    let edits: [(&str, AuditCode, Edit<Job>); 4] = [
        ("a count of the job", AuditCode::CountsDiffer, |job| end(job).counts.failed -= 1),
        ("the counts before a redrive", AuditCode::CountsDiffer, |job| {
            job.redrive.as_mut().unwrap().before.failed += 1
        }),
        ("the dispatched items", AuditCode::DispatchedDiffers, |job| job.split.cursor.row += 1),
        ("the end of the split", AuditCode::DispatchedDiffers, |job| job.split.cursor.offset += 1),
    ];
    for (what, code, edit) in edits {
        let wrong = Damaged::new().await;
        wrong.world.jobs.edit_job(wrong.job, edit);
        wrong.names(what, code, 2, None, None).await;
    }
}

#[tokio::test]
async fn damage_to_the_results_is_named() {
    use AuditCode::{ManifestDiffers, ResultFileDiffers};
    let edits: [(&str, Edit<Manifest>, AuditCode); 4] = [
        ("a count of the manifest", |manifest| manifest.job["itemsFailed"] = json!(3), ManifestDiffers),
        ("the failed rows of a file", |manifest| manifest.files[0].file.items = Some(1), ManifestDiffers),
        ("the file of failed rows", |manifest| drop(manifest.files.remove(0)), ManifestDiffers),
        ("the length of a file", |manifest| manifest.files[1].file.bytes += 1, ResultFileDiffers),
    ];
    for (what, edit, code) in edits {
        let wrong = Damaged::new().await;
        wrong.manifest(edit).await;
        wrong.names(what, code, 2, None, None).await;
    }

    let wrong = Damaged::new().await;
    let results = wrong.row().await.end().unwrap().results.clone().unwrap();
    let file = wrong.world.manifest(&wrong.row().await).await.files.remove(0);
    assert_eq!(file.file.name, "failed-rows.csv");
    wrong.world.objects.delete(&results.file_key(wrong.job, &file));
    wrong.names("a file", AuditCode::ResultFileMissing, 2, None, None).await;
    wrong.put(&results.manifest_key(wrong.job), "{}").await;
    wrong.names("an empty manifest", AuditCode::ManifestInvalid, 2, None, None).await;
    wrong.world.objects.delete(&results.manifest_key(wrong.job));
    wrong.names("the manifest", AuditCode::ManifestMissing, 2, None, None).await;
}

#[tokio::test]
async fn damage_to_a_running_job_is_named() {
    let world = World::new(chunks_of(1));
    let wrong = Damaged { job: created(&world).await, world };
    wrong.world.split().await;
    wrong.world.process_all(&wrong.world.chunks.take()[..10]).await;
    assert_eq!(wrong.world.audit(wrong.job).await.verdict, AuditVerdict::Active);
    wrong.tally(1, 0, |tally| tally.done += 1);
    wrong.names("a commit without a mark", AuditCode::MarkMissing, 1, Some(0), None).await;
    wrong.tally(1, 0, |tally| tally.done -= 2);
    wrong.names("a mark without a commit", AuditCode::MarkSurplus, 1, Some(0), None).await;
    wrong.tally(1, 0, |tally| tally.done += 1);
    wrong.tally(1, 0, |tally| tally.counts.succeeded += 1);
    wrong.names("a count", AuditCode::TallyDiffers, 1, Some(0), None).await;
}

#[tokio::test]
async fn a_redrive_that_lost_failed_items_is_named() {
    let world = World::new(chunks_of(1));
    let wrong = Damaged { job: ended(&world).await, world };
    wrong.world.redrive(wrong.job, None).await.unwrap();
    wrong.world.cancel(wrong.job).await;
    wrong.world.run().await;
    let audit = wrong.world.audit(wrong.job).await;
    assert_eq!(audit.verdict, AuditVerdict::Proved, "it was stopped before it dispatched them");
    wrong.world.jobs.edit_job(wrong.job, |job| job.split.at_end = true);
    wrong.names("the items of a redrive", AuditCode::DispatchedDiffers, 2, None, None).await;
}

#[tokio::test]
async fn the_first_of_several_findings_is_named() {
    let world = World::new(chunks_of(1));
    let wrong = Damaged { job: ended(&world).await, world };
    wrong.world.jobs.edit_job(wrong.job, |job| end(job).counts.failed -= 1);
    wrong.tally(1, 1, |tally| tally.marks[3] = None);
    wrong.names("the later tally", AuditCode::MarkMissing, 1, Some(1), Some(3)).await;
    wrong.tally(1, 0, |tally| tally.marks[7] = None);
    wrong.names("the earlier tally", AuditCode::MarkMissing, 1, Some(0), Some(7)).await;
}
