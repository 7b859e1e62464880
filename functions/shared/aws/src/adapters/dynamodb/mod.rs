//! Jobs, uploads and records in DynamoDB.
//!
//! The jobs table holds all rows of a job under its `jobId`. The sort key `row` distinguishes them:
//!
//! | row | attributes |
//! |---|---|
//! | `job` | the [`Job`](rowmill_core::model::job::Job), flat; `wakeShard` and `wakeAt` keep it in the wake index until it ends, and again from when it is to be erased; `traceId`; `write0` to `write3`, the tokens of its last updates, by which a repeated one is recognised |
//! | `spec` | `spec`, the [`Spec`](rowmill_core::model::spec::Spec) as JSON |
//! | `tally#<attempt>#<number>` | the [`Tally`](rowmill_core::model::tally::Tally) in at most 1 KiB, the marks of its chunks in `c0` to `c63` |
//! | `totals#<attempt>` | the [`Totals`](rowmill_core::model::tally::Totals), the numbers of the closed tallies in the number set `closed` |
//! | `checkpoint#<attempt>#<tally>#<index>` | `checkpoint`, the [`Checkpoint`](rowmill_core::model::checkpoint::Checkpoint) as JSON, and its `rev` for compare-and-swap |
//! | `dead#<message>` | `letter`, the [`DeadLetter`](rowmill_core::model::dead_letter::DeadLetter) as JSON |
//! | `awaiting#<job>` | of a job, or under the GUID of a file: a job that waits for it |
//!
//! The admission table has one row for each owner (`owner#…`), each job type (`type#…`) and the `system`: `active` is
//! the number of jobs that have not ended, `e0` (the newest) to `e7` are the times at which the last jobs ended (0:
//! none yet). The counters of types and of the system are spread over shards (`system`, `system#1`, …); `typeShard` and
//! `systemShard` in the job row name those in which the job has its slots. It also has one row for each idempotency key
//! (`idempotency#<owner>#<key>`), one for each dedupe key (`dedupe#<owner>#<key>`: `jobId`), and the rows that bound
//! what a caller may ask for:
//!
//! | row | attributes |
//! |---|---|
//! | `requests#<principal>#<operation>#<hour>` | `h`, the requests of the hour; `m0` to `m59`, those of each minute; `r0` to `r15`, the names of some of the last requests, by which a repeated write is recognised |
//! | `uploads#<owner>` | `uploads` and `bytes`, the announced uploads that are not completed and their length together; for each of them `u<fileGuid>` with its `bytes` and `until` |
//! | `breaker#<job type>` | `breaker`, the [`Breaker`](rowmill_core::model::breaker::Breaker) as JSON, and its `rev` for compare-and-swap |
//! | `permits#<job type>` | `p0` to `p99`: the task and the token of each [`Permit`](rowmill_core::model::permit::Permit) that is taken |
//! | `block#<principal>` | `at` and `reason`: see [`rowmill_core::model::blocks`] |
//!
//! The connections table has the keys `scope` and `entry`. Every row has `until`, and `expiresAt` from it:
//!
//! | row | attributes |
//! |---|---|
//! | `ticket#<digest>`, `ticket` | `owner`; the digest is the SHA-256 of the ticket |
//! | `connection#<id>`, `connection` | `owner` |
//! | `watch#<owner>`, `<connection id>` | `topics`, a string set of job GUIDs and `mine`: what the connection watches |
//!
//! The tasks table has the keys `scope` and `entry`, and an index of each scope by `dueAt`:
//!
//! | row | attributes |
//! |---|---|
//! | `tasks#<job type>#<owner>`, `<job>.<attempt>.<tally>.<index>` | `message` as JSON; `pauses`, its epoch; `dueAt`; `called`, if its holder is a service; `holder` and `heldSince`, the worker that leased it last, and when |
//! | `owners#<job type>`, `<hash>#<owner>` | `at`, the last offer of one of its tasks |
//! | `asks#<job type>`, one entry | `at`, when a worker asked for a task, to a minute |
//!
//! | where | attributes live in |
//! |---|---|
//! | `job_store/job_row.rs` | the job row; `updates.rs` writes what a transition changes, `admissions.rs`, `attempts.rs` and `completions.rs` the transactions |
//! | `job_store/spec_row.rs`, `tally_row.rs`, `checkpoints.rs`, `dead_letters.rs` | the other rows of a job |
//! | `job_store/slots.rs`, `admissions.rs`, `permits.rs` | the counters, the idempotency keys and the dedupe keys, the permits |
//! | `breakers.rs`, `quotas/` | the other rows of the admission table |
//! | `upload_store.rs`, `record_statements.rs`, `datasets.rs`, `live.rs`, `tasks.rs` | the uploads, records, connections and tasks tables |
//!
//! Times are milliseconds since 1970. Only `expiresAt` is in seconds, since DynamoDB's time to live requires it.

mod attributes;
mod batch_get;
mod breakers;
mod change;
mod datasets;
mod errors;
mod item_table;
mod job_store;
mod live;
mod quotas;
mod record_pages;
mod record_statements;
mod record_store;
mod tasks;
mod transact;
mod upload_store;
mod write;

pub use breakers::DynamoDbBreakers;
pub use change::{JobChange, RowChange};
pub use item_table::DynamoDbItemTable;
pub use job_store::DynamoDbJobStore;
pub use live::DynamoDbLive;
pub use quotas::DynamoDbQuotas;
pub use record_statements::bucket_of;
pub use record_store::DynamoDbRecordStore;
pub use tasks::DynamoDbTasks;
pub use upload_store::DynamoDbUploadStore;
