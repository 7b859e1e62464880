//! The request that would create a job again.

use std::sync::Arc;

use rowmill_api::request::CreateJobRequest;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::{DRY_RUN, Spec};
use rowmill_core::ports::{JobStore, Objects, PortError};
use serde_json::Deserializer;

/// The use case and the ports it works through.
pub struct JobRequests {
    pub jobs: Arc<dyn JobStore>,
    /// The items that came with requests.
    pub objects: Arc<dyn Objects>,
}

impl JobRequests {
    /// The request for a job that does the same with the same input; as a dry run or not, if that is given.
    ///
    /// # Errors
    /// `NotFound` if it is not known: another version created the job, or the items of its request have expired.
    pub async fn of(&self, job: &Job, dry_run: Option<bool>) -> Result<CreateJobRequest, PortError> {
        let Spec { request, mut params, source, .. } = self.jobs.spec(job.job_guid).await?;
        // One of a later version may have fields that nobody here knows.
        let request: Option<CreateJobRequest> = request.and_then(|request| serde_json::from_value(request).ok());
        let request = request.ok_or(PortError::NotFound)?;
        let items = match (&request.items, source.file()) {
            (None, _) => None,
            (Some(_), None) => return Err(PortError::NotFound),
            (Some(_), Some(file)) => {
                let lines = self.objects.read(&file.key).await?;
                let items = Deserializer::from_slice(&lines).into_iter().collect::<Result<_, _>>();
                Some(items.map_err(|error| PortError::invalid("reading the items of a request", error))?)
            }
        };
        match dry_run {
            Some(true) => drop(params.insert(DRY_RUN.to_owned(), true.into())),
            Some(false) => drop(params.remove(DRY_RUN)),
            None => {}
        }
        Ok(CreateJobRequest { params, items, ..request })
    }
}
