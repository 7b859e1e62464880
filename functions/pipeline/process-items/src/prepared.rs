//! Specs and processors, made once per process and job.

use std::collections::VecDeque;
use std::sync::Arc;

use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::ItemProcessor;
use rowmill_core::ports::{JobStore, PortError};
use tokio::sync::Mutex;

/// How many jobs are kept; the least recently used one is dropped first.
const JOBS_KEPT: usize = 32;

/// How many bytes the kept jobs take, by their own estimate. The job used last is kept even if it takes more.
const BYTES_KEPT: usize = 128 * 1024 * 1024;

/// What a processor takes in memory for each byte of the job's params.
const HELD_PER_BYTE: usize = 4;

/// A job that is ready for its items: its spec, columns and processor.
pub struct Prepared {
    /// The job's spec.
    pub spec: Spec,
    /// The columns of its file.
    pub columns: Arc<[String]>,
    /// The processor of its job type.
    pub processor: Arc<dyn ItemProcessor>,
}

impl Prepared {
    /// What it takes in memory, in bytes. An estimate.
    fn held_bytes(&self) -> usize {
        let params = serde_json::to_vec(&self.spec.params).map_or(0, |json| json.len());
        let columns: usize = self.columns.iter().map(|column| column.len() + size_of::<String>()).sum();
        HELD_PER_BYTE * (params + columns) + self.processor.held_bytes()
    }
}

/// A job that is kept.
struct Kept {
    job_guid: JobGuid,
    prepared: Arc<Prepared>,
    bytes: usize,
}

/// The jobs this process has prepared.
pub struct PreparedJobs {
    jobs: Arc<dyn JobStore>,
    job_types: JobTypes,
    kept: Mutex<VecDeque<Kept>>,
}

impl PreparedJobs {
    /// A cache without jobs.
    pub fn new(jobs: Arc<dyn JobStore>, job_types: JobTypes) -> Self {
        Self { jobs, job_types, kept: Mutex::default() }
    }

    /// The job's spec and processor. A spec never changes, so it is read once.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if this process does not know the job type or rejects its params: the functions have
    /// different versions.
    pub async fn get(&self, job_guid: JobGuid) -> Result<Arc<Prepared>, PortError> {
        let mut kept = self.kept.lock().await;
        if let Some(place) = kept.iter().position(|entry| entry.job_guid == job_guid)
            && let Some(entry) = kept.remove(place)
        {
            let prepared = Arc::clone(&entry.prepared);
            kept.push_back(entry);
            return Ok(prepared);
        }
        let prepared = Arc::new(self.prepare(job_guid).await?);
        let bytes = prepared.held_bytes();
        while kept.len() == JOBS_KEPT
            || !kept.is_empty() && kept.iter().map(|entry| entry.bytes).sum::<usize>() + bytes > BYTES_KEPT
        {
            kept.pop_front();
        }
        kept.push_back(Kept { job_guid, prepared: Arc::clone(&prepared), bytes });
        Ok(prepared)
    }

    async fn prepare(&self, job_guid: JobGuid) -> Result<Prepared, PortError> {
        let spec = self.jobs.spec(job_guid).await?;
        let unknown = || PortError::invalid("preparing the job", format!("unknown job type `{}`", spec.job_type));
        let job_type = self.job_types.get(&spec.job_type).ok_or_else(unknown)?;
        let processor = job_type.prepare(&spec).map_err(|error| PortError::invalid("preparing the job", error))?;
        Ok(Prepared { columns: spec.head.columns.clone().into(), processor, spec })
    }
}
