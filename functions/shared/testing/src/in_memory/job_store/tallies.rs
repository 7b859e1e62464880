use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::{Commit, Tally, Totals};
use rowmill_core::ports::{CommitAnswer, PortError, Tallies};

#[async_trait]
impl Tallies for InMemoryJobStore {
    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        let mut tables = lock(&self.0);
        let place = (job, tally.attempt, tally.number);
        Ok(tables.tallies.entry(place).or_insert_with(|| tally.clone()).clone())
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        let tables = lock(&self.0);
        let place = (job, attempt, number);
        tables.readable(place..=place)?;
        tables.tallies.get(&place).cloned().ok_or(PortError::NotFound)
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        let places = (job, attempt, numbers.start)..(job, attempt, numbers.end.max(numbers.start));
        let tables = lock(&self.0);
        tables.readable(places.clone())?;
        Ok(tables.tallies.range(places).map(|(_, tally)| tally.clone()).collect())
    }

    async fn commit(&self, job: JobGuid, commits: &[Commit]) -> Result<CommitAnswer, PortError> {
        let mut tables = lock(&self.0);
        let (attempt, number) = Commit::tally_of(commits)
            .ok_or_else(|| PortError::invalid("committing chunks", Commit::NOT_OF_ONE_TALLY))?;
        let tally = tables.tallies.get_mut(&(job, attempt, number)).ok_or(PortError::NotFound)?;
        if commits.iter().any(|commit| commit.refused_by(tally).is_some()) {
            return Ok(CommitAnswer::Refused(tally.clone()));
        }
        for commit in commits {
            tally.marks[usize::from(commit.chunk.index)] = Some(commit.mark);
            tally.done += 1;
            tally.counts += commit.counts;
            tally.bytes += commit.bytes;
            tally.at = commit.at;
        }
        Ok(CommitAnswer::Applied(tally.clone()))
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        let mut tables = lock(&self.0);
        let tally = tables.tallies.get_mut(&(job, seen.attempt, seen.number)).ok_or(PortError::NotFound)?;
        if tally.done == seen.done {
            tally.counts.skipped += tally.items - tally.counts.sum();
            tally.done = tally.expected;
            tally.at = at;
        }
        Ok(tally.clone())
    }

    async fn note_next_sent(&self, job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError> {
        if let Some(tally) = lock(&self.0).tallies.get_mut(&(job, attempt, tally)) {
            tally.next_sent = true;
        }
        Ok(())
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        if let Some(tally) = lock(&self.0).tallies.get_mut(&(job, attempt, tally)) {
            tally.at = tally.at.max(at);
        }
        Ok(())
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        let mut tables = lock(&self.0);
        let totals = tables.totals(job, tally.attempt)?;
        if totals.closed.insert(tally.number) {
            totals.items += tally.items;
            totals.counts += tally.counts;
            totals.bytes += tally.bytes;
            totals.usage += tally.usage;
            totals.at = Some(tally.at);
        }
        Ok(totals.clone())
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        lock(&self.0).totals(job, attempt).cloned()
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        let mut tables = lock(&self.0);
        let totals = tables.totals(job, attempt)?;
        totals.final_tallies = Some(tallies);
        Ok(totals.clone())
    }
}
