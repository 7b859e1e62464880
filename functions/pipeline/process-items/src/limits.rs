//! The limits of a run.

use std::time::Duration;

use rowmill_settings::ProcessTime;

rowmill_settings::settings! {
    #[derive(Clone, Copy, Debug)]
    pub struct RunLimits {
        /// Maximum number of retries of an item with a transient error before the chunk returns to its queue.
        pub transient_retries: u32 = 4;
        /// The first wait before such a retry. Each further one is twice as long.
        pub backoff: Duration = Duration::from_millis(200);
        /// Time before the end of its invocation from which a run begins no further item and hands over.
        pub margin: Duration = Duration::from_secs(5), "ProcessMarginSeconds" in 1..=50;
        /// Time for which the processor of an item may hold its thread. Longer, and the item's job is stopped. Shorter
        /// than the time of an invocation, so that the job is stopped before the invocation is killed.
        pub item_timeout: Duration = Duration::from_secs(20), "ItemTimeoutSeconds" in 1..=30;
        /// Maximum number of items of an isolated chunk that are passed over. With one more its rest fails too.
        pub passed_over_max: u32 = 10;
        /// Only checked: see `rowmill_settings::time_bounds`.
        pub process: ProcessTime;
        /// Maximum size of the outputs of a chunk's items together. They are held in memory.
        pub output_max_bytes: u64 = 4 * 1024 * 1024;
    }
}
