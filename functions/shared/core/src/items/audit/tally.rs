//! One tally: its row against its chunk index, its marks and their run outputs.

use bytes::Bytes;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::chunks::{Rows, check_index, rows_of_chunks};
use super::evidence::tally_line;
use super::run_output::OutputRows;
use super::state::{AuditState, words};
use super::{Auditor, Broken, Budget, in_chunk, in_tally, is_open};
use crate::model::audit::AuditCode;
use crate::model::chunk_index::ChunkIndex;
use crate::model::job::{End, Job};
use crate::model::keys;
use crate::model::sha256::sha256_hex;
use crate::model::tally::{ChunkAddress, Counts, Mark, MarkKind, Tally};
use crate::ports::{PortError, found};

/// Number of run outputs read at once. Each may hold a whole chunk with all of its outputs.
const OBJECTS_READ: usize = 4;

struct Marked {
    address: ChunkAddress,
    mark: Mark,
    items: u64,
    rows: Rows,
}

/// Sums over a tally's chunks.
#[derive(Default)]
struct Recomputed {
    counts: Counts,
    bytes: u64,
    marks: u32,
    /// Chunks without a mark in a closed tally.
    skipped: u64,
    /// Chunks without a mark in an open one.
    open: u64,
}

/// Objects that the tally names are gone, as the lifecycle of the bucket has it.
struct Expired;

impl Auditor {
    pub(super) async fn audit_tally(
        &self,
        job: &Job,
        tally: &Tally,
        state: &mut AuditState,
        budget: &mut Budget<'_>,
    ) -> Result<(), Broken> {
        let Tally { attempt, number, .. } = *tally;
        if !tally.is_closed() && !is_open(job, attempt) {
            let message = format!(
                "Tally {number} of attempt {attempt} has {} of {} chunks committed, although the attempt has ended.",
                tally.done, tally.expected
            );
            return Err(in_tally(AuditCode::TallyOpen, message, attempt, number));
        }
        if tally.is_closed() && tally.counts.sum() != tally.items {
            let message = format!(
                "Tally {number} of attempt {attempt} is closed with {} for {} items.",
                words(tally.counts),
                tally.items
            );
            return Err(in_tally(AuditCode::TallyDiffers, message, attempt, number));
        }
        match self.recompute(job, tally, state, budget).await? {
            Ok((index, recomputed)) => {
                compare(tally, &recomputed)?;
                state.border = Some(index.end);
                state.read.chunks += index.chunks.len() as u64;
                state.read.committed += u64::from(recomputed.marks);
                state.read.skipped += recomputed.skipped;
                state.read.open += recomputed.open;
            }
            Err(Expired) => {
                state.border = None;
                state.read.expired += 1;
            }
        }
        state.read.tallies += 1;
        state.items += tally.items;
        state.counts += tally.counts;
        state.bytes += tally.bytes;
        Ok(())
    }

    async fn recompute(
        &self,
        job: &Job,
        tally: &Tally,
        state: &mut AuditState,
        budget: &mut Budget<'_>,
    ) -> Result<Result<(ChunkIndex, Recomputed), Expired>, Broken> {
        let Tally { attempt, number, stored_by, .. } = *tally;
        let key = keys::chunk_index(job.job_guid, attempt, number, stored_by);
        let Some(json) = self.read(key).await? else {
            if self.may_have_expired(job, attempt) {
                state.evidence.add(&tally_line(tally, None));
                return Ok(Err(Expired));
            }
            let message = format!("The chunk index of tally {number} of attempt {attempt} does not exist.");
            return Err(in_tally(AuditCode::ChunkIndexMissing, message, attempt, number));
        };
        budget.spend(json.len());
        state.evidence.add(&tally_line(tally, Some(&json)));
        let index: ChunkIndex = serde_json::from_slice(&json).map_err(|_| {
            let message = format!("The chunk index of tally {number} of attempt {attempt} cannot be read.");
            in_tally(AuditCode::ChunkIndexInvalid, message, attempt, number)
        })?;
        check_index(tally, &index, state.border)?;
        let rows = rows_of_chunks(tally, &index)?;
        let (mut recomputed, marked) = by_marks(job, tally, &index, &rows)?;
        let key_of = |one: &Marked| keys::run_output(job.job_guid, one.address, one.mark.run);
        let reads: Vec<_> = marked.iter().map(|one| self.read(key_of(one))).collect();
        let mut outputs = stream::iter(reads).buffered(OBJECTS_READ);
        for one in &marked {
            let Some(bytes) = outputs.try_next().await?.flatten() else {
                if self.may_have_expired(job, attempt) {
                    state.evidence.add(&format!("output {attempt} {number} {} -", one.address.index));
                    return Ok(Err(Expired));
                }
                return Err(of_output(AuditCode::RunOutputMissing, "does not exist", one));
            };
            budget.spend(bytes.len());
            state.read.run_outputs += 1;
            let (index, digest) = (one.address.index, sha256_hex(&bytes));
            state.evidence.add(&format!("output {attempt} {number} {index} {digest}"));
            let rows = OutputRows::read(&bytes);
            let rows = rows.ok_or_else(|| of_output(AuditCode::RunOutputInvalid, "cannot be read", one))?;
            recomputed.counts += rows.counts(one.mark, one.items, one.rows, one.address)?;
        }
        drop(outputs);
        Ok(Ok((index, recomputed)))
    }

    /// An object, if it exists.
    pub(super) async fn read(&self, key: String) -> Result<Option<Bytes>, PortError> {
        found(self.objects.read(&key).await)
    }

    /// True if objects of this attempt may have expired by the lifecycle of the bucket. It keeps an object for at least
    /// the retention of a job, so those of the present attempt live as long as the job does. An ended job's row tells
    /// the retention; while a redrive runs, it is not known.
    fn may_have_expired(&self, job: &Job, attempt: u32) -> bool {
        let retention = job.end().map(End::retention);
        let kept_until = retention.and_then(|retention| job.created_at.checked_add(retention).ok());
        attempt < job.attempt && kept_until.is_none_or(|until| self.clock.now() >= until)
    }
}

/// Sums of the chunks without a run output, and the chunks with one.
fn by_marks(job: &Job, tally: &Tally, index: &ChunkIndex, rows: &[Rows]) -> Result<(Recomputed, Vec<Marked>), Broken> {
    let Tally { attempt, number, .. } = *tally;
    let (mut recomputed, mut marked) = (Recomputed::default(), Vec::new());
    if let Some(place) = tally.marks.iter().skip(index.chunks.len()).position(Option::is_some) {
        let place = place + index.chunks.len();
        let message = format!("Tally {number} of attempt {attempt} has a mark of chunk {place}, which does not exist.");
        return Err(in_tally(AuditCode::MarkSurplus, message, attempt, number));
    }
    // Only a stop closes a tally without marks. That of an earlier attempt is no longer known, and a job that is
    // running may have been stopped since its row was read.
    let may_be_skipped = attempt < job.attempt || job.is_stopped() || is_open(job, attempt);
    for ((place, chunk), rows) in (0_u8..).zip(&index.chunks).zip(rows) {
        let address = ChunkAddress { attempt, tally: number, index: place };
        let items = u64::from(chunk.items);
        let Some(mark) = tally.mark(place) else {
            match tally.is_closed() {
                false => recomputed.open += 1,
                true if may_be_skipped => {
                    recomputed.skipped += 1;
                    recomputed.counts += Counts::all_skipped(items);
                }
                true => {
                    let message = format!(
                        "Chunk {place} of tally {number} of attempt {attempt} counts as committed, but it has no mark."
                    );
                    return Err(in_chunk(AuditCode::MarkMissing, message, address));
                }
            }
            continue;
        };
        recomputed.marks += 1;
        let weight = index.stored.as_ref().and_then(|stored| stored.weights.get(usize::from(place)).copied());
        recomputed.bytes = recomputed.bytes.saturating_add(weight.unwrap_or(chunk.length));
        match mark.kind {
            MarkKind::Clean => recomputed.counts += Counts { succeeded: items, failed: 0, skipped: 0 },
            MarkKind::Skipped => recomputed.counts += Counts::all_skipped(items),
            MarkKind::HasFailed | MarkKind::HasOutputs | MarkKind::Stopped => {
                marked.push(Marked { address, mark, items, rows: *rows });
            }
        }
    }
    Ok((recomputed, marked))
}

fn compare(tally: &Tally, recomputed: &Recomputed) -> Result<(), Broken> {
    let Tally { attempt, number, done, expected, counts, bytes, .. } = *tally;
    let committed = if recomputed.skipped > 0 { expected } else { recomputed.marks };
    if done != committed {
        let message = format!(
            "Tally {number} of attempt {attempt} counts {done} committed chunks, but it has {} marks.",
            recomputed.marks
        );
        let code = if done < committed { AuditCode::MarkSurplus } else { AuditCode::MarkMissing };
        return Err(in_tally(code, message, attempt, number));
    }
    if (counts, bytes) != (recomputed.counts, recomputed.bytes) {
        let message = format!(
            "Tally {number} of attempt {attempt} counts {} in {bytes} bytes, but its chunks have {} in {} bytes.",
            words(counts),
            words(recomputed.counts),
            recomputed.bytes
        );
        return Err(in_tally(AuditCode::TallyDiffers, message, attempt, number));
    }
    Ok(())
}

fn of_output(code: AuditCode, what: &str, one: &Marked) -> Broken {
    let ChunkAddress { attempt, tally, index } = one.address;
    let message = format!("The run output of chunk {index} of tally {tally} of attempt {attempt} {what}.");
    in_chunk(code, message, one.address)
}
