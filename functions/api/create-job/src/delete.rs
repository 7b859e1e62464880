//! Deletes a dataset: creates the job that deletes its records, and takes it off the list of its owner.
//!
//! If the process dies in between, the dataset is still listed, without records. The same request takes it off.

use rowmill_core::job_types::{DELETE, DELETED_DATASET};
use rowmill_core::model::ids::Owner;
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
        let (job_type, priority) = (self.job_type(&request)?, self.priority(owner, &request)?);
        self.refuse_if_full(owner, &request).await?;
        let now = self.clock.now();
        let source = Source::Dataset { dataset: name.to_owned(), keys_of: Some(KeysOf::Stored) };
        let source = json_lines(source, FirstText::default());
        let Specified { spec, warnings: _, texts: _ } =
            self.specified_over(source, owner, &request, &**job_type, self.entropy.job_guid(now), now).await?;
        let job = self.job_row(&spec, &request, priority);
        let new = NewJob { job, spec, ceilings: self.ceilings(&request), idempotency: None, dedupe: None };
        self.jobs.create(&new).await?;
        let job = self.woken(new.job).await;
        if let Err(error) = self.records.unlist(&stored, Writer::new(job.created_at, job.job_guid)).await {
            let error = &error as &dyn std::error::Error;
            tracing::error!(job.id = %job.job_guid, error, "dataset is being deleted, and is still listed");
        }
        Ok(Accepted { job, is_same: false })
    }
}
