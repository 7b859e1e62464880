//! The ports: the interfaces through which the use cases reach the world. Adapters that speak AWS live in
//! `rowmill-aws`. The in-memory adapters, and the contract suites that every adapter must pass, are in `rowmill-testing`.

mod batch_runner;
mod blocks;
mod breakers;
mod clock;
mod error;
mod events;
mod item;
mod item_table;
mod item_watch;
pub mod job_store;
mod live;
mod object_lists;
mod objects;
mod outstanding_uploads;
pub mod patience;
pub mod processor;
mod queue;
mod record_store;
mod remote_files;
mod request_counts;
mod target;
mod tasks;
mod upload_store;

pub use batch_runner::{BatchCall, BatchEnd, BatchRunner, ItemBatch};
pub use blocks::{Block, Blocks};
pub use breakers::{BreakerMoved, Breakers};
pub use clock::{Clock, Entropy, expiry};
pub use error::{BoxError, PortError, PortResult, found};
pub use events::Events;
pub use item::ItemResult;
pub use item_table::{ItemTable, TableItem, VERSION_ATTRIBUTE};
pub use item_watch::{ItemObserver, OUTPUT_TOO_LARGE, begin_item, observed};
pub use job_store::{
    AWAITING_MAX, ActiveJobs, Admission, Admissions, Attempts, Ceilings, CheckpointMoved, Checkpoints, CommitAnswer,
    Completion, Completions, CreateError, Created, DeadLetters, Dedupe, Due, ENDS_KEPT, ERASE_SHARD, Erasures, Full,
    Idempotency, JobFilter, JobPage, JobStore, Jobs, NewAttempt, NewJob, Permits, RedriveError, SlotsTaken,
    StateFilter, Tallies, UpdateAnswer, Updates, WAKE_SHARDS, Waits, WakeUps, WriteLost,
};
pub use live::{ConnectionSender, Connections, SendError, Subscribed, Subscriptions, Tickets};
pub use object_lists::{ListedObject, ObjectLists, ObjectPage};
pub use objects::{
    DirectTransfers, MultipartObjects, ObjectErasures, ObjectHead, Objects, PART_MIN_BYTES, PARTS_MAX,
    PresignedRequest, UploadedPart, part_bytes,
};
pub use outstanding_uploads::{OutstandingError, OutstandingUploads};
pub use queue::{Deliveries, Queue};
pub use record_store::{KeyRange, Reading, RecordStore, Replacement};
pub use remote_files::{RemoteBytes, RemoteError, RemoteFile, RemoteFiles};
pub use request_counts::{Counted, RequestCounts, RequestToCount};
pub use target::{
    ACCEPTED, ANSWER_MAX_BYTES, REQUEST_MAX_BYTES, RecordObject, Target, TargetCancel, TargetError, TargetItem,
    TargetRequest, TargetTask,
};
pub use tasks::Tasks;
pub use upload_store::UploadStore;
