//! Prunes a dataset after an import: creates the job that removes the records which the import has not got.

use rowmill_core::job_types::{JOB_GUID, NotPrunable, PRUNE, prunable_dataset};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::records::Writer;
use rowmill_core::model::spec::{DRY_RUN, KeysOf};
use rowmill_core::ports::found;
use serde_json::{Map, json};

use crate::create::{Accepted, CreateJobError, Creator};
use crate::request::CreateJobRequest;

impl Creator {
    /// Creates the job that prunes the dataset of this owner's import, or counts what it would remove.
    ///
    /// # Errors
    /// See [`CreateJobError`]; no job is written then.
    pub async fn prune(&self, owner: &Owner, import: JobGuid, is_dry_run: bool) -> Result<Accepted, CreateJobError> {
        let now = self.clock.now();
        let job = found(self.jobs.owned(owner, import, now).await)?.ok_or(CreateJobError::NoSuchJob(import))?;
        if !job.is_ended() {
            return Err(CreateJobError::JobActive(import));
        }
        let spec = self.jobs.spec(import).await?;
        let dataset = prunable_dataset(&job, &spec)?;
        let mut params = Map::from_iter([(JOB_GUID.to_owned(), json!(import))]);
        if is_dry_run {
            params.insert(DRY_RUN.to_owned(), json!(true));
        }
        let request = CreateJobRequest::of(PRUNE, params);
        self.refuse_if_full(owner, &request).await?;
        let keys_of = KeysOf::MissingIn(Writer::new(spec.created_at, import));
        let new = self.over_keys(owner, &request, (dataset, keys_of), self.entropy.job_guid(now), now).await?;
        self.jobs.create(&new).await?;
        Ok(Accepted { job: self.woken(new.job).await, is_same: false })
    }
}

impl From<NotPrunable> for CreateJobError {
    fn from(why: NotPrunable) -> Self {
        Self::NotPrunable(why)
    }
}
