//! The limits of a new job.

use std::time::Duration;

use rowmill_core::ports::Ceilings;
use rowmill_core::text::ChunkLimits;
use rowmill_settings::{Deadlines, JobRetention, ProcessTime, RETRY_AFTER_MAX, Recovery};

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct CreateLimits {
        pub chunks: ChunkLimits;
        /// Number of workers that process chunks at the same time.
        pub workers: u32 = 50, "ItemsMaximumConcurrency";
        /// Number of workers that process chunks of jobs with low priority at the same time.
        pub low_workers: u32 = 10, "ItemsLowMaximumConcurrency";
        /// Number of chunks a worker processes side by side.
        pub chunks_per_invocation: u32 = 10, "ChunksPerInvocation";
        /// The fewest tallies of a job that are sent ahead.
        pub tallies_ahead_min: u32 = 2;
        /// Factor on the usual number of items of a chunk if items take microseconds.
        pub fast_factor: u32 = 20, "FastChunkFactor" in 1..=40;
        /// Number of partitions of a new dataset. DynamoDB takes 1,000 records of a KB a
        /// second in each, and an export reads each.
        pub new_dataset_partitions: u32 = 256;
        pub ceilings: Ceilings;
        pub deadlines: Deadlines;
        /// How long a run may write records after its job has ended.
        pub process: ProcessTime;
        /// When the sweep first looks at the job.
        pub recovery: Recovery;
        /// Retention of a job, and so of its dedupe key.
        pub jobs: JobRetention;
        /// The longest header, in bytes. At most so much of the file is read before the job is created.
        pub header_max_bytes: u64 = 64 * 1024;
        /// Time for which an `Idempotency-Key` is remembered. At most a day, the shortest retention of a
        /// job: a remembered key never names an expired job, unless its owner has it kept for a shorter time.
        pub idempotency: Duration = Duration::from_secs(24 * 60 * 60);
        /// The longest `Retry-After` of a refused job.
        pub retry_after_max: Duration = RETRY_AFTER_MAX;
    }
}
