//! Invariants of objects that are put: chunk indexes fit the file, and committed run outputs do not change.

use rowmill_core::items::chunk_index;
use rowmill_core::items::input::read_redrive_items;
use rowmill_core::model::chunk_index::ChunkIndex;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::keys;
use rowmill_core::model::run_output::RunOutput;
use rowmill_core::model::tally::{ChunkAddress, Tally};
use rowmill_core::ports::{Jobs, Objects};

use super::checks::{Checked, ensure, now};
use super::invariants::Invariants;
use super::oracle::{JobRecord, Row, TallyRecord, rows_of_file, rows_of_pieces, rows_of_redrive};
use super::trace::{chunk_name, job_name};

impl Invariants {
    /// An object was put. A chunk index must fit the file and never change. A run output that a mark names must not
    /// change.
    pub fn object_put(&self, key: &str, bytes: &[u8]) -> Checked {
        let parts: Vec<&str> = key.split('/').collect();
        let ["results", job, attempt, what, tally, ref rest @ ..] = parts[..] else { return Ok(()) };
        let (Ok(job), Ok(attempt)) = (job.parse(), attempt.parse()) else { return Ok(()) };
        match (what, rest) {
            ("chunks", []) => {
                let tally = tally.trim_end_matches(".json").parse().map_err(|_| format!("an unexpected key: {key}"))?;
                self.index_put(job, attempt, tally, bytes)
            }
            ("run-outputs", [index, run]) => {
                let (Ok(tally), Ok(index)) = (tally.parse(), index.parse()) else { return Ok(()) };
                self.run_output_put(job, ChunkAddress { attempt, tally, index }, run.trim_end_matches(".jsonl"), bytes)
            }
            _ => Ok(()),
        }
    }

    fn index_put(&self, job: JobGuid, attempt: u32, tally: u32, bytes: &[u8]) -> Checked {
        let index: ChunkIndex = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut known = self.known();
        let record = known.jobs.get_mut(&job).ok_or("a chunk index of an unknown job")?;
        if let Some(before) = record.tallies.get(&(attempt, tally)) {
            return ensure(before.chunks == index.chunks, || {
                format!("{} tally {attempt}/{tally} was split in another way before", job_name(job))
            });
        }
        // A late run of an ended attempt put it: its tally is never counted, and no function reads it.
        if now(self.store.job(job)).map_err(|error| error.to_string())?.is_past(attempt) {
            return Ok(());
        }
        let rows = match attempt {
            1 => rows_of_file(&record.file, &index)?,
            _ => self.rows_of_inputs(job, record, attempt, tally, &index)?,
        };
        record.tallies.insert((attempt, tally), TallyRecord::new(index, rows));
        Ok(())
    }

    /// Of the runs that split many files, the one whose tally was put first counts: its chunk index is known from then on.
    pub(super) fn know_stored(&self, job: JobGuid, record: &mut JobRecord, tally: &Tally) -> Checked {
        let name = (tally.attempt, tally.number);
        if tally.stored_by.is_none() || record.tallies.contains_key(&name) {
            return Ok(());
        }
        let objects: &dyn Objects = &*self.objects;
        let index = now(chunk_index::of(objects, job, tally)).map_err(|error| error.to_string())?;
        let rows = rows_of_pieces(&record.file, &index)?;
        record.tallies.insert(name, TallyRecord::new(index, rows));
        Ok(())
    }

    fn rows_of_inputs(
        &self,
        job: JobGuid,
        record: &JobRecord,
        attempt: u32,
        tally: u32,
        index: &ChunkIndex,
    ) -> Result<Vec<Vec<Row>>, String> {
        let mut chunks = Vec::new();
        for (place, chunk) in (0..).zip(&index.chunks) {
            let address = ChunkAddress { attempt, tally, index: place };
            let bytes =
                now(self.objects.read(&keys::redrive_items(job, address))).map_err(|error| error.to_string())?;
            let items = read_redrive_items(&bytes).map_err(|error| error.to_string())?;
            ensure(items.len() == chunk.items as usize, || format!("{chunk:?} has {} items", items.len()))?;
            chunks.push(rows_of_redrive(record, &items)?);
        }
        Ok(chunks)
    }

    fn run_output_put(&self, job: JobGuid, chunk: ChunkAddress, run: &str, bytes: &[u8]) -> Checked {
        let known = self.known();
        let tally = known.jobs.get(&job).and_then(|record| record.tallies.get(&(chunk.attempt, chunk.tally)));
        let committed = tally.and_then(|tally| tally.committed.get(usize::from(chunk.index))?.as_ref());
        let Some((_, _, rows)) = committed.filter(|(mark, ..)| mark.run.to_string() == run) else { return Ok(()) };
        let run_output = RunOutput::from_bytes(bytes).map_err(|error| error.to_string())?;
        let failed = run_output.failed.into_iter().map(|item| (item.row, item.code));
        ensure(failed.eq(rows.iter().cloned()), || {
            format!("{} {} was committed by {run}, but its run output changes", job_name(job), chunk_name(chunk))
        })
    }
}
