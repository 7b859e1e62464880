//! Specs and processors, made once per process and job.

use std::sync::Arc;

use async_trait::async_trait;
use lru::LruCache;
use parking_lot::Mutex;
use rowmill_core::items::layouts;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::files::LayoutId;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{CostClass, Item, ItemError, ItemOutcome, ItemProcessor, ParamsError};
use rowmill_core::ports::{BatchRunner, JobStore, Objects, PortError};
use tokio::sync::OnceCell;

/// Maximum number of jobs kept; the least recently used one is dropped first.
const JOBS_KEPT: usize = 32;

/// Maximum size of the kept jobs, by their own estimate. The job used last is kept even if it takes more.
const BYTES_KEPT: usize = 128 * 1024 * 1024;

/// Bytes of memory of a processor for each byte of the job's params.
const HELD_PER_BYTE: usize = 4;

/// A job that is ready for its items: its spec, columns and processor.
pub struct Prepared {
    pub spec: Arc<Spec>,
    pub columns: Arc<[String]>,
    pub processor: Arc<dyn ItemProcessor>,
}

impl Prepared {
    /// Its memory, in bytes. An estimate.
    fn held_bytes(&self) -> usize {
        let params = serde_json::to_vec(&self.spec.params).map_or(0, |json| json.len());
        let columns: usize = self.columns.iter().map(|column| column.len() + size_of::<String>()).sum();
        HELD_PER_BYTE * (params + columns) + self.processor.held_bytes()
    }
}

/// A job that is kept, with its bytes in memory. Its first caller prepares it, and the others wait for that.
type Kept = Arc<OnceCell<(Arc<Prepared>, usize)>>;

pub struct PreparedJobs {
    jobs: Arc<dyn JobStore>,
    pub job_types: JobTypes,
    batches: Arc<dyn BatchRunner>,
    /// Reads the heads of files.
    objects: Arc<dyn Objects>,
    kept: Mutex<LruCache<(JobGuid, Option<LayoutId>), Kept>>,
}

impl PreparedJobs {
    /// A cache without jobs. The processors are made by `batches`.
    pub fn new(
        jobs: Arc<dyn JobStore>,
        objects: Arc<dyn Objects>,
        job_types: JobTypes,
        batches: Arc<dyn BatchRunner>,
    ) -> Self {
        Self { jobs, job_types, batches, objects, kept: Mutex::new(LruCache::unbounded()) }
    }

    /// The spec and processor for the items of this chunk. A spec never changes, so it is read once. While a job is prepared, which may take
    /// seconds, other jobs are not held up.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` if this process does not know the job type or rejects its params: the functions have
    /// different versions.
    pub async fn get(&self, message: &ChunkMessage) -> Result<Arc<Prepared>, PortError> {
        let name = (message.job_guid, message.layout().cloned());
        let cell = Arc::clone(self.kept.lock().get_or_insert(name, Arc::default));
        let (prepared, _) = cell.get_or_try_init(|| self.prepare(message)).await?;
        self.drop_extra();
        Ok(Arc::clone(prepared))
    }

    /// Drops the jobs used longest ago until the others fit.
    fn drop_extra(&self) {
        let mut kept = self.kept.lock();
        let bytes = |(_, kept): (&(JobGuid, Option<LayoutId>), &Kept)| kept.get().map_or(0, |(_, bytes)| *bytes);
        while kept.len() > 1 && (kept.len() > JOBS_KEPT || kept.iter().map(bytes).sum::<usize>() > BYTES_KEPT) {
            kept.pop_lru();
        }
    }

    async fn prepare(&self, message: &ChunkMessage) -> Result<(Arc<Prepared>, usize), PortError> {
        let spec = self.jobs.spec(message.job_guid).await?;
        let spec = Arc::new(layouts::spec_of(&*self.objects, spec, message).await?);
        let unknown = || PortError::invalid("preparing the job", format!("unknown job type `{}`", spec.job_type));
        let job_type = Arc::clone(self.job_types.get(&spec.job_type).ok_or_else(unknown)?);
        let processor = self.batches.prepare(job_type, Arc::clone(&spec)).await;
        let processor = match (processor, message.layout()) {
            (Err(error), Some(_)) => Arc::new(Refusing(error)),
            (processor, _) => processor.map_err(|error| PortError::invalid("preparing the job", error))?,
        };
        let prepared = Arc::new(Prepared { columns: spec.head.columns.clone().into(), processor, spec });
        let bytes = prepared.held_bytes();
        Ok((prepared, bytes))
    }
}

/// Fails the items of a file of many whose columns do not fit the params of the job.
struct Refusing(ParamsError);

#[async_trait]
impl ItemProcessor for Refusing {
    async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
        let ParamsError { field, message } = &self.0;
        Err(ItemError::permanent(FILE_DOES_NOT_FIT, format!("`{field}` {message}")))
    }

    async fn dry_run(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        self.process(item).await
    }

    fn cost(&self) -> CostClass {
        CostClass::Fast
    }
}

/// The code of the items of a file whose columns do not fit the params of the job.
const FILE_DOES_NOT_FIT: &str = "file_does_not_fit";
