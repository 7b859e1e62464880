//! Deletes a dataset: creates the job that deletes its records, and takes it off the list of its owner.
//!
//! If the process dies in between, the dataset is still listed, without records. The same request takes it off.

use jiff::Timestamp;
use rowmill_core::job_types::{DELETE, DELETED_DATASET};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::records::{Writer, dataset_of, is_dataset_name};
use rowmill_core::model::spec::{KeysOf, Source};
use rowmill_core::ports::NewJob;
use rowmill_formats::FirstText;
use serde_json::json;

use crate::create::{Accepted, CreateJobError, Creator, Specified};
use crate::request::CreateJobRequest;
use crate::source::json_lines;

impl Creator {
    /// Creates the job that deletes a dataset of this owner.
    ///
    /// # Errors
    /// See [`CreateJobError`]; no job is written then.
    pub async fn delete_dataset(&self, owner: &Owner, name: &str) -> Result<Accepted, CreateJobError> {
        let unknown = || CreateJobError::NoSuchDataset(name.to_owned());
        if !is_dataset_name(name) {
            return Err(unknown());
        }
        let stored = dataset_of(owner, name);
        self.records.opened(&stored).await?.ok_or_else(unknown)?;
        let request = CreateJobRequest::of(DELETE, [(DELETED_DATASET.to_owned(), json!(name))].into_iter().collect());
        self.refuse_if_full(owner, &request).await?;
        let now = self.clock.now();
        let by = self.entropy.job_guid(now);
        let new = self.over_keys(owner, &request, (name.to_owned(), KeysOf::Stored), by, now).await?;
        self.jobs.create(&new).await?;
        let job = self.woken(new.job).await;
        if let Err(error) = self.records.unlist(&stored, Writer::new(job.created_at, job.job_guid)).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(job.id = %job.job_guid, error, "dataset is being deleted, and is still listed");
        }
        Ok(Accepted { job, is_same: false })
    }

    /// The job of a type that no request names, over the keys of records of a dataset.
    pub(crate) async fn over_keys(
        &self,
        owner: &Owner,
        request: &CreateJobRequest,
        (dataset, keys_of): (String, KeysOf),
        job_guid: JobGuid,
        now: Timestamp,
    ) -> Result<NewJob, CreateJobError> {
        let (job_type, priority) = (self.job_type(request)?, self.priority(owner, request)?);
        let source = json_lines(Source::Dataset { dataset, keys_of: Some(keys_of) }, FirstText::default());
        let Specified { spec, warnings: _, texts: _ } =
            self.specified_over(source, owner, request, &**job_type, job_guid, now).await?;
        let job = self.job_row(&spec, request, priority);
        Ok(NewJob { job, spec, ceilings: self.ceilings(request), idempotency: None, dedupe: None })
    }
}
