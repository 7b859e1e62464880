//! The request that would create a job again.

use std::sync::Arc;

use rowmill_api::request::CreateJobRequest;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::{Source, Spec};
use rowmill_core::ports::{JobStore, Objects, PortError};
use serde_json::Deserializer;

/// The use case and the ports it works through.
pub struct JobRequests {
    pub jobs: Arc<dyn JobStore>,
    /// The items that came with requests.
    pub objects: Arc<dyn Objects>,
}

impl JobRequests {
    /// The request for a job that does the same with the same input.
    ///
    /// # Errors
    /// `NotFound` if it is not known any more: an older version created the job, or the items of its request have
    /// expired.
    pub async fn of(&self, job: &Job) -> Result<CreateJobRequest, PortError> {
        let spec = self.jobs.spec(job.job_guid).await?;
        let items_key = match &spec.source {
            Source::File(file) if file.file_guid.is_none() => Some(file.key.clone()),
            _ => None,
        };
        let Spec { request, params, .. } = spec;
        let invalid = |error| PortError::invalid("reading the request of a job", error);
        let request: CreateJobRequest = serde_json::from_value(request.ok_or(PortError::NotFound)?).map_err(invalid)?;
        let items = match items_key.filter(|_| request.source.is_none()) {
            Some(key) => {
                let lines = self.objects.read(&key).await?;
                Some(Deserializer::from_slice(&lines).into_iter().collect::<Result<_, _>>().map_err(invalid)?)
            }
            None => None,
        };
        Ok(CreateJobRequest { params, items, ..request })
    }
}
