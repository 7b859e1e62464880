//! Invariants of commits that win: each has the counts of its rows, and each row has an outcome that its kind
//! allows.

use std::collections::{BTreeMap, BTreeSet};

use rowmill_core::items::run_output;
use rowmill_core::model::checkpoint::DEATHS_MAX;
use rowmill_core::model::dead_letter::{DEAD_LETTER, DeadLetter, POISON};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::run_output::RunOutput;
use rowmill_core::model::tally::{ChunkAddress, Commit, Committed, Counts, MarkKind, Tally};
use rowmill_core::model::task::HOLDERS_MAX;
use rowmill_core::ports::{DeadLetters as _, Jobs as _};

use super::checks::{Checked, ensure, now};
use super::files::Kind;
use super::invariants::Invariants;
use super::items::OUTAGE;
use super::oracle::{JobRecord, Row, RowEnd};
use super::trace::{chunk_name, job_name};

/// The rows of a commit.
struct ChunkEnds {
    ends: Vec<(u64, RowEnd)>,
    /// The failed rows of its run output, with their codes.
    listed: Vec<(u64, String)>,
}

impl Invariants {
    /// These commits won, in one write.
    pub fn committed(&self, job: JobGuid, commits: &[Commit]) -> Checked {
        if commits.len() > 1 {
            self.reach("chunks committed together");
        }
        commits.iter().try_for_each(|commit| self.note_commit(job, commit))?;
        let Some(ChunkAddress { attempt, tally, .. }) = commits.first().map(|commit| commit.chunk) else {
            return Err("a write that commits nothing".into());
        };
        self.tally_moved(job, attempt, tally)?;
        self.job_moved(job)
    }

    /// The tally refused these commits, for at least one of them. It knows those that it accepted before.
    pub fn refused(&self, job: JobGuid, commits: &[Commit], tally: &Tally) -> Checked {
        for commit in commits {
            match commit.refused_by(tally) {
                Some(Committed::WonBefore(_)) => {
                    self.reach("commit won before");
                    self.note_commit(job, commit)?;
                }
                Some(_) => self.reach("commit lost"),
                None => self.reach("commit refused because of another one"),
            }
        }
        let all_open = commits.iter().all(|commit| commit.refused_by(tally).is_none());
        ensure(!all_open, || format!("{}: commits are refused without a reason", job_name(job)))
    }

    fn note_commit(&self, job: JobGuid, commit: &Commit) -> Checked {
        let chunk = commit.chunk;
        let name = || format!("{} {} by {}", job_name(job), chunk_name(chunk), commit.mark.run);
        let row = now(self.store.job(job)).map_err(|error| error.to_string())?;
        {
            let mut known = self.known();
            let known = &mut *known;
            let record = known.jobs.get_mut(&job).ok_or("a commit of an unknown job")?;
            let tally = record.tallies.get(&(chunk.attempt, chunk.tally)).ok_or("a commit without a chunk index")?;
            let before = tally.committed.get(usize::from(chunk.index)).ok_or("a commit of an unknown chunk")?;
            match before {
                Some((mark, ..)) if mark.run == commit.mark.run => return Ok(()),
                Some((mark, ..)) => return Err(format!("{}: already committed by {}", name(), mark.run)),
                None => {}
            }
            ensure(!tally.rest_skipped, || format!("{}: its tally was closed without it", name()))?;
            ensure(!row.is_past(chunk.attempt), || format!("{}: its attempt has ended", name()))?;
            let rows = tally.rows[usize::from(chunk.index)].clone();
            let ends = self
                .ends(job, &row, commit, &rows, record, &known.processed)
                .map_err(|what| format!("{}: {what}", name()))?;
            for (row, end) in ends.ends {
                if let RowEnd::Failed(code) = &end {
                    *known.reached.entry(format!("item failed: {code}")).or_default() += 1;
                }
                record.end(row, end);
            }
            *known.reached.entry(format!("commit: {:?}", commit.mark.kind)).or_default() += 1;
            if chunk.tally > 0 {
                *known.reached.entry("commit on a further tally".to_owned()).or_default() += 1;
            }
            record.in_flight.remove(&chunk.number());
            let tally = record.tallies.get_mut(&(chunk.attempt, chunk.tally)).ok_or("no tally")?;
            tally.committed[usize::from(chunk.index)] = Some((commit.mark, commit.counts, ends.listed));
        }
        Ok(())
    }

    /// The outcome of each row of a commit. Checks that the row may have this outcome.
    fn ends(
        &self,
        job: JobGuid,
        row: &Job,
        commit: &Commit,
        rows: &[Row],
        record: &JobRecord,
        processed: &BTreeSet<(JobGuid, u64)>,
    ) -> Result<ChunkEnds, String> {
        let run_output = match commit.mark.kind {
            MarkKind::Clean | MarkKind::Skipped => RunOutput::default(),
            MarkKind::HasFailed | MarkKind::HasOutputs | MarkKind::Stopped => {
                let run_output = now(run_output::read(&*self.objects, job, commit.chunk, commit.mark.run));
                run_output.map_err(|error| format!("its run output cannot be read: {error}"))?
            }
        };
        let skipped_from = match commit.mark.kind {
            MarkKind::Skipped => rows.first().map(|row| row.number),
            _ => run_output.skipped_from,
        };
        ensure(skipped_from.is_none() || row.is_stopped(), || "rows are skipped before a stop is durable".into())?;
        let listed: Vec<(u64, String)> = run_output.failed.iter().map(|item| (item.row, item.code.clone())).collect();
        ensure(listed.windows(2).all(|pair| pair[0].0 < pair[1].0), || {
            format!("failed rows out of order: {listed:?}")
        })?;
        let codes: BTreeMap<u64, &str> = run_output.failed.iter().map(|item| (item.row, item.code.as_str())).collect();
        let stray = codes.keys().find(|number| !rows.iter().any(|row| row.number == **number));
        ensure(stray.is_none(), || format!("row {stray:?} is not in the chunk"))?;
        let (mut counts, mut ends) = (Counts::default(), Vec::new());
        for row in rows {
            let number = row.number;
            if skipped_from.is_some_and(|from| number >= from) {
                counts.skipped += 1;
                if commit.chunk.attempt == 1 {
                    ends.push((number, RowEnd::Skipped));
                }
            } else if let Some(code) = codes.get(&number) {
                counts.failed += 1;
                self.may_fail(job, commit.chunk, row, code, record)?;
                ends.push((number, RowEnd::Failed((*code).to_owned())));
            } else {
                counts.succeeded += 1;
                let output = run_output.outputs.iter().filter(|output| output.row == number).count();
                ensure(output == 1, || format!("row {number} succeeded with {output} outputs"))?;
                let was_processed = processed.contains(&(job, number));
                ensure(was_processed, || format!("row {number} counts as succeeded, but was never processed"))?;
                ensure(row.kind.can_succeed() && row.keeps.is_none(), || format!("row {number} succeeded: {row:?}"))?;
                ends.push((number, RowEnd::Succeeded));
            }
        }
        ensure(counts == commit.counts, || format!("it counts {:?}, but its rows have {counts:?}", commit.counts))?;
        Ok(ChunkEnds { ends, listed })
    }

    /// Checks that a row may fail with this code: because of its content, or because of the faults at its chunk.
    fn may_fail(&self, job: JobGuid, chunk: ChunkAddress, row: &Row, code: &str, record: &JobRecord) -> Checked {
        let deaths = record.deaths.get(&chunk).copied().unwrap_or(0);
        let is_right = match (&row.keeps, code) {
            (Some(kept), code) => kept == code,
            (None, POISON) => deaths >= DEATHS_MAX,
            // It has failed so at several leases.
            (None, OUTAGE) if matches!(row.kind, Kind::Transient(_)) && self.is_worked(job) => true,
            // The chunk had one poison item more than are passed over.
            (None, DEAD_LETTER) if deaths >= HOLDERS_MAX && self.is_worked(job) => true,
            // Given up with its chunk, or passed over in its isolated chunk.
            (None, DEAD_LETTER | OUTAGE) => {
                let letters = now(self.store.dead_letters(job, usize::MAX)).unwrap_or_default();
                let about = |letter: &DeadLetter| {
                    let place = letter.chunk.map(|chunk| (letter.attempt, chunk.tally, chunk.index));
                    place == Some((chunk.attempt, chunk.tally, chunk.index))
                };
                letters.iter().any(about)
            }
            (None, code) => row.kind.code() == Some(code),
        };
        ensure(is_right, || format!("row {} fails with {code}: {row:?}, {deaths} deaths at its chunk", row.number))
    }
}
