//! Invariants that hold at the end of a run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use csv::StringRecord;
use erase_job::erase::{EraseLimits, Eraser};
use rowmill_api::job::JobView;
use rowmill_core::items::audit::{AuditLimits, Auditor};
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::manifest::copy_state;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::audit::AuditVerdict;
use rowmill_core::model::dead_letter::DeadLetterKind;
use rowmill_core::model::files::FileCounts;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::{Job, StopCode};
use rowmill_core::model::keys;
use rowmill_core::model::results::{CopyState, MANIFEST, Manifest, Results};
use rowmill_core::model::spec::Tolerance;
use rowmill_core::ports::{Clock, DeadLetters, JobStore, ObjectErasures, Objects, PortError, Tallies};
use rowmill_core::progress::update::update_job;
use rowmill_testing::in_memory::ManualClock;

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;
use super::items::output_line;
use super::oracle::RowEnd;
use super::plan::KEPT;
use super::trace::job_name;

impl Invariants {
    /// Checks that every job has ended, and that its row, view, pages and results agree.
    pub fn at_the_end(&self) -> Checked {
        self.slots()?;
        for job in self.store.every_job() {
            self.ended(&job).map_err(|what| format!("{}: {what}", job_name(job.job_guid)))?;
        }
        Ok(())
    }

    /// Checks that nothing is left of jobs that are deleted, or expire by themselves, whatever their runs have written.
    pub fn nothing_is_left(&self) -> Checked {
        let store: Arc<dyn JobStore> = Arc::clone(&self.store) as Arc<dyn JobStore>;
        let clock = Arc::new(ManualClock::default());
        let jobs: Vec<JobGuid> = self.store.every_job().iter().map(|job| job.job_guid).collect();
        clock.advance(KEPT * 2);
        for job in self.store.every_job().into_iter().filter(|job| job.keep_seconds.is_none()) {
            let deleted = update_job(&*store, &job, |job| job.delete(clock.now(), Duration::ZERO));
            now(deleted).map_err(|error| error.to_string())?;
        }
        let objects = Arc::clone(&self.objects) as Arc<dyn ObjectErasures>;
        let eraser = Eraser { jobs: store, objects, clock, limits: EraseLimits::of(Duration::ZERO) };
        let (_, failure) = now(eraser.erase_due());
        ensure(failure.is_none(), || format!("not erased: {failure:?}"))?;
        // A request that failed may leave items under a name that is no job.
        let stored = self.objects.keys();
        for job in jobs {
            let rows = self.store.rows(job);
            ensure(rows == 0, || format!("{rows} rows of {} are left", job_name(job)))?;
            let of_job = keys::of_job(job);
            let left = stored.iter().find(|key| key.starts_with(&of_job));
            ensure(left.is_none(), || format!("the object {left:?} is left"))?;
        }
        Ok(())
    }

    /// A stop for lack of capacity comes at the deadline, or when the job has waited for as long as it may.
    fn waited_for_long(&self, job: &Job) -> Checked {
        let lacked = job.stopped_by().filter(|stop| stop.code == StopCode::CapacityExceeded);
        let Some(stop) = lacked.filter(|stop| stop.at < job.deadline_at) else { return Ok(()) };
        let may_wait = job.start_by.is_none_or(|by| stop.at < by);
        ensure(!may_wait, || "it was stopped for lack of capacity before its time".into())?;
        self.reach("stopped before its deadline for lack of capacity");
        Ok(())
    }

    fn ended(&self, job: &Job) -> Checked {
        let end = job.end().ok_or_else(|| format!("it has not ended: {:?}", job.status()))?;
        self.job_moved(job.job_guid)?;
        let store: Arc<dyn JobStore> = Arc::clone(&self.store) as Arc<dyn JobStore>;
        let view = now(JobView::read_for_list(&*store, job)).map_err(|error| error.to_string())?;
        self.waited_for_long(job)?;
        let known = self.known();
        let record = known.jobs.get(&job.job_guid).ok_or("an unknown job")?;
        let stop = job.stopped_by().map_or("nothing", |stop| stop.code.as_str());
        let how = format!("{} by {stop}", job.status().as_str());
        let (progress, items) = (view.item_progress, view.item_count);
        ensure(progress == items, || format!("{progress} of {items} items are accounted for"))?;
        if !job.is_stopped() && job.redrive.is_none() {
            let rows = record.file.rows.len() as u64;
            ensure(items == rows && !record.file.unterminated, || format!("{items} items, but the file has {rows}"))?;
            ensure(view.items_skipped == 0, || format!("{} items skipped without a stop", view.items_skipped))?;
        }
        let totals = now(self.store.totals(job.job_guid, job.attempt)).map_err(|error| error.to_string())?;
        let has_begun = known.begun.contains(&(job.job_guid, job.attempt));
        let lacked_capacity = job.stopped_by().is_some_and(|stop| stop.code == StopCode::CapacityExceeded);
        ensure(!(lacked_capacity && has_begun), || "it lacked capacity, but items have begun".into())?;
        let is_untaken = job.started_at.is_none();
        ensure(totals.is_complete() || is_untaken, || "its totals are not complete".into())?;
        if is_untaken {
            ensure(end.results.is_none() && items == 0, || "nobody has taken it up, and it has results".into())?;
            drop(known);
            self.reach(how);
            self.reach("ended before it was taken up");
            return Ok(());
        }
        let expected: Vec<(u64, String)> = record
            .ends
            .iter()
            .filter_map(|(row, end)| match end {
                RowEnd::Failed(code) => Some((*row, code.clone())),
                _ => None,
            })
            .collect();
        let objects: Arc<dyn Objects> = Arc::clone(&self.objects) as Arc<dyn Objects>;
        let listed =
            now(list_failed(store, objects, job)).map_err(|error| format!("listing its failed items: {error}"))?;
        ensure(listed.len() as u64 == view.items_failed, || {
            format!("{} failed items are listed, but {} are counted", listed.len(), view.items_failed)
        })?;
        ensure(listed == expected, || format!("{listed:?} are listed as failed, but {expected:?} failed"))?;
        let (ends, tolerances) = (record.ends.clone(), record.tolerances.clone());
        drop(known);
        self.audited(job)?;
        self.results_tell(job, &expected, &ends)?;
        let counts = end.counts;
        let exceeded = |tolerance: &Option<Tolerance>| tolerance.is_some_and(|tolerance| counts.exceed(&tolerance));
        let beyond = job.attempt == 1 && tolerances.iter().all(exceeded);
        ensure(!beyond || job.is_stopped(), || format!("it completed with {counts:?}, beyond its tolerance"))?;
        self.reach(if job.attempt > 1 { format!("redriven, {how}") } else { how });
        Ok(())
    }
}

impl Invariants {
    /// The audit proves the job's counts, over all of its attempts.
    fn audited(&self, job: &Job) -> Checked {
        let auditor = Auditor {
            jobs: Arc::clone(&self.store) as Arc<dyn JobStore>,
            objects: Arc::clone(&self.objects) as Arc<dyn Objects>,
            clock: Arc::new(ManualClock::default()),
            limits: AuditLimits { objects: u64::MAX, bytes: u64::MAX, time: Duration::from_secs(3600) },
        };
        let audit = now(auditor.page(job, None)).map_err(|error| error.to_string())?;
        ensure(audit.verdict == AuditVerdict::Proved, || format!("its audit is {}: {:?}", audit.verdict, audit.finding))
    }
}

impl Invariants {
    /// Checks that the result files list every failed row and every output of the winning runs once and in order.
    fn results_tell(&self, job: &Job, failed: &[(u64, String)], ends: &BTreeMap<u64, RowEnd>) -> Checked {
        let letters = now(self.store.dead_letters(job.job_guid, usize::MAX)).map_err(|error| error.to_string())?;
        let given_up = letters.iter().any(|letter| letter.about == DeadLetterKind::Completion);
        let Some(results) = job.end().and_then(|end| end.results.as_ref()) else {
            return ensure(given_up, || "it has no results".into());
        };
        let manifest =
            now(self.objects.read(&results.manifest_key(job.job_guid))).map_err(|error| error.to_string())?;
        let manifest: Manifest = serde_json::from_slice(&manifest).map_err(|error| error.to_string())?;
        let counted = manifest.causes.iter().take(10).map(|cause| (&cause.name, cause.items));
        ensure(counted.eq(results.causes.iter().map(|cause| (&cause.name, cause.items))), || {
            format!("its row has other causes than its results: {:?}", results.causes)
        })?;
        self.copied(job, results, &manifest, given_up)?;
        let rows = |name: &str| -> Result<Vec<StringRecord>, String> {
            let file = manifest.files.iter().find(|stored| stored.file.name == name);
            let file = file.ok_or_else(|| format!("the manifest does not list {name}"))?;
            let bytes =
                now(self.objects.read(&results.file_key(job.job_guid, file))).map_err(|error| error.to_string())?;
            let rows: Result<Vec<StringRecord>, _> = csv::Reader::from_reader(&*bytes).into_records().collect();
            rows.map_err(|error| format!("{name}: {error}"))
        };
        ensure(manifest.job["status"] == job.status().as_str(), || {
            format!("the manifest has the job {}", manifest.job)
        })?;
        let text = |name: &str| -> Result<Option<String>, String> {
            let Some(file) = manifest.files.iter().find(|stored| stored.file.name == name) else { return Ok(None) };
            let bytes =
                now(self.objects.read(&results.file_key(job.job_guid, file))).map_err(|error| error.to_string())?;
            String::from_utf8(bytes.to_vec()).map(Some).map_err(|error| error.to_string())
        };
        if let Some(listed) = text("files.jsonl")? {
            files_tell(&listed, ends)?;
            self.reach("results of many files");
        }
        if !failed.is_empty() {
            let listed: Vec<_> = match text("failed-rows.jsonl")? {
                Some(lines) => lines.lines().map(row_and_code_of_line).collect(),
                None => rows("failed-rows.csv")?.iter().map(row_and_code).collect(),
            };
            let expected: Vec<_> = failed.iter().cloned().map(Some).collect();
            ensure(listed == expected, || format!("failed-rows.csv has {listed:?}, but {failed:?} failed"))?;
        }
        let mut by_code: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, code) in failed {
            *by_code.entry(code).or_default() += 1;
        }
        let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
        for cause in &manifest.causes {
            *causes.entry(&cause.name.code).or_default() += cause.items;
        }
        ensure(causes == by_code, || format!("the causes are {causes:?}, but the rows failed for {by_code:?}"))?;
        let succeeded = ends.iter().filter(|(_, end)| matches!(end, RowEnd::Succeeded));
        let expected: Vec<String> = succeeded.map(|(row, _)| output_line(&job.job_type, *row)).collect();
        let outputs: Vec<String> = rows("output.csv")?.iter().map(|row| row[0].to_owned()).collect();
        ensure(outputs == expected, || format!("output.csv has {outputs:?}, not {expected:?}"))?;
        self.reach(if manifest.files.iter().any(|stored| stored.file.name.starts_with("unprocessed")) {
            "results with unprocessed rows"
        } else {
            "results"
        });
        Ok(())
    }
}

impl Invariants {
    /// The results are copied byte for byte, or the message that asked for it was given up.
    fn copied(&self, job: &Job, results: &Results, manifest: &Manifest, given_up: bool) -> Checked {
        let Some(to) = &manifest.copied_to else { return Ok(()) };
        let copy = copy_state(&*self.objects, job.job_guid, results.attempt);
        let (state, problem) = now(copy).map_err(|error| error.to_string())?;
        if state != CopyState::Stored {
            self.reach("results not copied");
            let is_given_up = given_up && state == CopyState::Failed;
            return ensure(is_given_up, || format!("its results are not copied: {state:?}, {problem:?}"));
        }
        let read = |key: &str| now(self.objects.read(key)).map_err(|error| format!("{key}: {error}"));
        let files = manifest.files.iter().map(|file| (results.file_key(job.job_guid, file), &*file.file.name));
        for (key, name) in files.chain([(results.manifest_key(job.job_guid), MANIFEST)]) {
            let same = read(&key)? == read(&format!("{to}{name}"))?;
            ensure(same, || format!("the copy of {name} is another one"))?;
        }
        self.reach("results copied");
        Ok(())
    }
}

/// Checks that the files have the rows of the job by outcome, one after the other.
fn files_tell(listed: &str, ends: &BTreeMap<u64, RowEnd>) -> Checked {
    let mut row = 1;
    for line in listed.lines() {
        let file: FileCounts = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let of_file: Vec<&RowEnd> = ends.range(row..row + file.rows).map(|(_, end)| end).collect();
        let count = |is: fn(&RowEnd) -> bool| of_file.iter().filter(|end| is(end)).count() as u64;
        let expected = [
            count(|end| matches!(end, RowEnd::Succeeded)),
            count(|end| matches!(end, RowEnd::Failed(_))),
            count(|end| matches!(end, RowEnd::Skipped)),
        ];
        let found = [file.succeeded, file.failed, file.skipped];
        ensure(found == expected && file.pending == 0, || format!("{file:?}, but its rows ended as {expected:?}"))?;
        row += file.rows;
    }
    let rows = ends.len() as u64;
    ensure(row - 1 == rows, || format!("the files have {} rows, but the job has {rows}", row - 1))
}

/// The row number and the code of a line of the failed rows of many files.
fn row_and_code_of_line(line: &str) -> Option<(u64, String)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    Some((line["row"].as_u64()?, line["code"].as_str()?.to_owned()))
}

/// The row number and the code of a line of the failed-rows file. They stand before its last two cells, message and
/// column.
fn row_and_code(row: &StringRecord) -> Option<(u64, String)> {
    let cell = |from_end: usize| row.len().checked_sub(from_end).and_then(|place| row.get(place));
    Some((cell(4)?.parse().ok()?, cell(3)?.to_owned()))
}

async fn list_failed(
    store: Arc<dyn JobStore>,
    objects: Arc<dyn Objects>,
    job: &Job,
) -> Result<Vec<(u64, String)>, PortError> {
    let from = StoredJob { jobs: &store, objects: &objects, job };
    let mut walk = FailedItems::of(from, 0).await?;
    let mut listed = Vec::new();
    while let Some(items) = walk.next().await? {
        listed.extend(items.into_iter().map(|item| (item.row, item.code)));
    }
    Ok(listed)
}
