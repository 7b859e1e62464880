use async_trait::async_trait;
use jiff::Timestamp;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::ports::{Admissions, CreateError, Created, Idempotency, NewJob, PortError, SlotsTaken};

#[async_trait]
impl Admissions for InMemoryJobStore {
    async fn create(&self, new: &NewJob) -> Result<Created, CreateError> {
        let mut tables = lock(&self.0);
        if tables.jobs.contains_key(&new.job.job_guid) {
            return Ok(Created::New);
        }
        let place = |key: &str| (new.job.owner.clone(), key.to_owned());
        if let Some(wanted) = &new.idempotency
            && let Some((job, known)) = tables.requests.get(&place(&wanted.key))
            && known.expires_at > new.job.created_at
        {
            return match known.fingerprint == wanted.fingerprint {
                true => Ok(Created::Before(*job)),
                false => Err(CreateError::KeyReused),
            };
        }
        if let Some(wanted) = &new.dedupe
            && let Some((job, known)) = tables.deduped.get(&place(&wanted.key))
            && known.expires_at > new.job.created_at
            && wanted.replaces != Some(*job)
        {
            return Ok(if *job == new.job.job_guid { Created::New } else { Created::Same(*job) });
        }
        tables.slots.take(&new.job, new.ceilings).map_err(CreateError::Full)?;
        if let Some(wanted) = &new.idempotency {
            tables.requests.insert(place(&wanted.key), (new.job.job_guid, wanted.clone()));
        }
        if let Some(wanted) = &new.dedupe {
            tables.deduped.insert(place(&wanted.key), (new.job.job_guid, wanted.clone()));
        }
        tables.specs.insert(new.job.job_guid, new.spec.clone());
        tables
            .awaiting
            .extend(new.job.awaited(&new.spec.source).into_iter().map(|awaited| (awaited, new.job.job_guid)));
        tables.jobs.insert(new.job.job_guid, new.job.clone());
        Ok(Created::New)
    }

    async fn taken(&self, owner: &Owner, job_type: &str) -> Result<SlotsTaken, PortError> {
        Ok(lock(&self.0).slots.taken(owner, job_type))
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        let tables = lock(&self.0);
        let known = tables.requests.get(&(owner.clone(), key.to_owned()));
        Ok(known.filter(|(_, known)| known.expires_at > now).map(|(job, known)| (*job, known.fingerprint.clone())))
    }

    async fn remember(
        &self,
        owner: &Owner,
        wanted: &Idempotency,
        job: JobGuid,
        now: Timestamp,
    ) -> Result<JobGuid, CreateError> {
        let mut tables = lock(&self.0);
        let place = (owner.clone(), wanted.key.clone());
        let known: Option<&(JobGuid, Idempotency)> = tables.requests.get(&place);
        match known.filter(|(_, known)| known.expires_at > now) {
            Some((_, known)) if known.fingerprint != wanted.fingerprint => Err(CreateError::KeyReused),
            Some((before, _)) => Ok(*before),
            None => {
                tables.requests.insert(place, (job, wanted.clone()));
                Ok(job)
            }
        }
    }

    async fn deduped(&self, owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError> {
        let tables = lock(&self.0);
        let known = tables.deduped.get(&(owner.clone(), key.to_owned()));
        Ok(known.filter(|(_, known)| known.expires_at > now).map(|(job, _)| *job))
    }
}
