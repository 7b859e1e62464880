//! The state of an audit between two tallies, and its form as a cursor.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::{AuditError, Broken, found, names_all};
use crate::model::audit::{AuditCode, AuditFinding, AuditProof, AuditVerdict};
use crate::model::ids::JobGuid;
use crate::model::job::Job;
use crate::model::tally::{Counts, Totals};
use crate::text::Position;

/// The longest cursor that is read, in bytes. One of a job with the largest numbers is shorter.
const CURSOR_MAX_BYTES: usize = 1024;

/// No number of a cursor is larger: what a page adds cannot overflow.
const NUMBER_MAX: u64 = 1 << 53;

/// The state of an audit.
///
/// A client that forges a cursor deceives only itself: it gets a proof of its own job with the sums that it sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AuditState {
    pub job: JobGuid,
    /// The attempt that the job was in when the walk began.
    pub of: u32,
    /// True if the job had ended then.
    pub ended: bool,
    /// The attempt of the next tally.
    pub attempt: u32,
    pub tally: u32,
    /// The border before the next tally. `None` if the chunk index before it has expired.
    pub border: Option<Position>,
    /// Items of this attempt so far.
    pub items: u64,
    /// The same by outcome.
    pub counts: Counts,
    /// Bytes of its committed chunks.
    pub bytes: u64,
    /// The counts of the whole job before this attempt.
    pub before: Counts,
    pub read: ReadSoFar,
    /// The chain over it.
    pub evidence: Evidence,
}

/// Sums of all that was read, in all attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReadSoFar {
    pub tallies: u64,
    pub chunks: u64,
    pub committed: u64,
    pub skipped: u64,
    pub open: u64,
    pub run_outputs: u64,
    /// Tallies whose objects have expired.
    pub expired: u64,
}

impl AuditState {
    pub(super) fn begin(job: &Job) -> Self {
        Self {
            job: job.job_guid,
            of: job.attempt,
            ended: job.is_ended(),
            attempt: 1,
            tally: 0,
            border: Some(Position { offset: job.data_start, row: 1 }),
            items: 0,
            counts: Counts::default(),
            bytes: 0,
            before: Counts::default(),
            read: ReadSoFar::default(),
            evidence: Evidence::begin(job.job_guid),
        }
    }

    /// Reads a cursor of this job.
    ///
    /// # Errors
    /// `Cursor`; `Moved` if the job is no longer as it was when the walk began: the sums would be of different moments.
    pub(super) fn of_cursor(cursor: &str, job: &Job) -> Result<Self, AuditError> {
        let state = Some(cursor).filter(|cursor| cursor.len() <= CURSOR_MAX_BYTES);
        let json = state.and_then(|cursor| URL_SAFE_NO_PAD.decode(cursor).ok()).ok_or(AuditError::Cursor)?;
        let state: Self = serde_json::from_slice(&json).map_err(|_| AuditError::Cursor)?;
        if state.job != job.job_guid || !state.is_possible() {
            return Err(AuditError::Cursor);
        }
        match (state.of, state.ended) == (job.attempt, job.is_ended()) {
            true => Ok(state),
            false => Err(AuditError::Moved),
        }
    }

    fn is_possible(&self) -> bool {
        let border = self.border.unwrap_or(Position { offset: 0, row: 0 });
        let Counts { succeeded, failed, skipped } = self.counts;
        let ReadSoFar { tallies, chunks, committed, skipped: rest, open, run_outputs, expired } = self.read;
        let before = [self.before.succeeded, self.before.failed, self.before.skipped];
        let numbers = [border.offset, border.row, self.items, succeeded, failed, skipped, self.bytes];
        let read = [tallies, chunks, committed, rest, open, run_outputs, expired];
        (1..=self.of).contains(&self.attempt)
            && self.evidence.is_well_formed()
            && numbers.iter().chain(&before).chain(&read).all(|number| *number <= NUMBER_MAX)
    }

    fn cursor(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// The tallies of an attempt that is running end where the split is.
    pub(super) fn check_cursor(&self, job: &Job) -> Result<(), Broken> {
        let cursor = job.split.cursor;
        match self.border {
            Some(border) if border != cursor => {
                let message = format!(
                    "The {} tallies of attempt {} end before row {}, but the job has dispatched the items before row {}.",
                    job.split.tallies, self.attempt, border.row, cursor.row
                );
                Err(found(AuditCode::DispatchedDiffers, message, self.attempt))
            }
            _ => Ok(()),
        }
    }

    /// Compares the sums of an attempt that has ended with its totals, and goes on to the next attempt.
    pub(super) fn end_attempt(&mut self, job: &Job, count: u32, totals: &Totals) -> Result<(), Broken> {
        let attempt = self.attempt;
        let recomputed = (self.items, self.counts, self.bytes);
        // The split of a job that ended before it was taken up never began, so nobody wrote its number of tallies.
        let is_whole = match job.started_at {
            None => count == 0 && *totals == Totals { attempt, ..Totals::default() },
            Some(_) => names_all(totals, count),
        };
        if recomputed != (totals.items, totals.counts, totals.bytes) || !is_whole {
            let message = format!(
                "The totals of attempt {attempt} count {} closed tallies with {} items ({}), but its {count} tallies have {} \
                 items ({}).",
                totals.closed.len(),
                totals.items,
                words(totals.counts),
                self.items,
                words(self.counts)
            );
            return Err(found(AuditCode::TotalsDiffer, message, attempt));
        }
        if attempt == job.attempt {
            self.check_cursor(job)?;
        }
        let before = (attempt > 1 && attempt == job.attempt).then_some(&job.redrive).and_then(Option::as_ref);
        if let Some(redrive) = before.filter(|redrive| redrive.before != self.before) {
            let message = format!(
                "The job had {} before attempt {attempt}, but its attempts before have {}.",
                words(redrive.before),
                words(self.before)
            );
            return Err(found(AuditCode::CountsDiffer, message, attempt));
        }
        let dispatched_all = attempt == job.attempt && job.split.at_end;
        let failed = self.before.failed;
        if attempt > 1 && (self.items > failed || (dispatched_all && self.items < failed)) {
            let message = format!("Attempt {attempt} has {} items, but {failed} had failed before.", self.items);
            return Err(found(AuditCode::DispatchedDiffers, message, attempt));
        }
        let Counts { succeeded, failed, skipped } = self.counts;
        self.evidence
            .add(&format!("attempt {attempt} {count} {} {succeeded} {failed} {skipped} {}", self.items, self.bytes));
        self.before = self.merged();
        (self.attempt, self.tally, self.items, self.bytes) = (attempt + 1, 0, 0, 0);
        self.counts = Counts::default();
        self.border = Some(Position { offset: 0, row: 1 });
        Ok(())
    }

    /// The counts of the whole job so far: an item keeps its outcome until a later attempt makes it succeed.
    pub(super) fn merged(&self) -> Counts {
        if self.attempt == 1 {
            return self.counts;
        }
        Counts {
            succeeded: self.before.succeeded.saturating_add(self.counts.succeeded),
            failed: self.before.failed.saturating_sub(self.counts.succeeded),
            skipped: self.before.skipped,
        }
    }

    /// The audit so far.
    pub(super) fn view(
        &self,
        job: &Job,
        verdict: AuditVerdict,
        finding: Option<AuditFinding>,
        at: Timestamp,
    ) -> AuditProof {
        let counts = self.merged();
        let open_items = if self.attempt == 1 { self.items.saturating_sub(self.counts.sum()) } else { 0 };
        let ReadSoFar { tallies, chunks, committed, skipped, open, run_outputs, expired } = self.read;
        let view = AuditProof {
            job_guid: job.job_guid,
            attempt: job.attempt,
            status: job.status(),
            verdict: verdict.into(),
            finding,
            item_count: counts.sum().saturating_add(open_items),
            items_succeeded: counts.succeeded,
            items_failed: counts.failed,
            items_skipped: counts.skipped,
            tallies,
            chunks,
            chunks_committed: committed,
            chunks_skipped: skipped,
            chunks_open: open,
            run_outputs,
            tallies_expired: expired,
            at,
            next: (verdict == AuditVerdict::Continues).then(|| self.cursor()),
            evidence: self.evidence.as_str().to_owned(),
            digest: String::new(),
        };
        view.sealed()
    }
}

/// Counts in words for a person.
pub(super) fn words(counts: Counts) -> String {
    let Counts { succeeded, failed, skipped } = counts;
    format!("{succeeded} succeeded, {failed} failed, {skipped} skipped")
}
