//! Jobs, uploads and records in DynamoDB.
//!
//! The jobs table holds all rows of a job under its `jobId`, told apart by the sort key `row`:
//!
//! | row | attributes |
//! |---|---|
//! | `job` | the [`Job`](rowmill_core::model::job::Job), flat; `wakeShard` and `wakeAt` put it into the wake index until it ends |
//! | `spec` | `spec`, the [`Spec`](rowmill_core::model::spec::Spec) as JSON |
//! | `tally#<attempt>#<number>` | the [`Tally`](rowmill_core::model::tally::Tally) within 1 KiB, each chunk's mark in `c0` to `c63` |
//! | `totals#<attempt>` | the [`Totals`](rowmill_core::model::tally::Totals), the closed tallies' numbers in the number set `closed` |
//! | `checkpoint#<attempt>#<tally>#<index>` | `checkpoint`, the [`Checkpoint`](rowmill_core::model::checkpoint::Checkpoint) as JSON, and its `rev`, by which it is swapped |
//! | `dead#<message>` | `letter`, the [`DeadLetter`](rowmill_core::model::dead_letter::DeadLetter) as JSON |
//!
//! The admission table holds `active`, the number of jobs that have not ended, of each owner (`owner#…`), of each type
//! (`type#…`) and of the `system`, with the times the last ones ended in `e0` (the newest) to `e7` (0: there was none yet),
//! and what is remembered of idempotency keys (`idempotency#<owner>#<key>`).
//!
//! Times are milliseconds since 1970 but for `expiresAt`, which is seconds, as the tables' time to live wants it.

mod attributes;
mod change;
mod errors;
mod job_store;
mod record_pages;
mod record_statements;
mod record_store;
mod transact;
mod upload_store;
mod write;

pub use change::{JobChange, RowChange};
pub use job_store::DynamoDbJobStore;
pub use record_statements::bucket_of;
pub use record_store::DynamoDbRecordStore;
pub use upload_store::DynamoDbUploadStore;
