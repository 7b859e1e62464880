//! Crashes on purpose: ports that act at a planned call as if the process died before or after it, or was frozen before
//! it while other processes continued. They can also fail at that call alone.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rowmill_core::model::breaker::Breaker;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::messages::Grouped;
use rowmill_core::model::outstanding::{OutstandingLimits, OutstandingUpload};
use rowmill_core::model::permit::{Permit, PermitSeen};
use rowmill_core::model::records::{Dataset, DatasetPage, DatasetRecord, RecordPage, Upserted, Writer};
use rowmill_core::model::spec::Spec;
use rowmill_core::model::stored_record::StoredRecord;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::model::task::{Holder, Task, TaskId};
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Upload};
use rowmill_core::ports::{
    Admissions, Attempts, BreakerMoved, Breakers, CheckpointMoved, Checkpoints, CommitAnswer, Completion, Completions,
    CreateError, Created, DeadLetters, Due, Erasures, Idempotency, JobFilter, JobPage, Jobs, KeyRange,
    MultipartObjects, NewAttempt, NewJob, ObjectErasures, ObjectHead, ObjectLists, ObjectPage, Objects,
    OutstandingError, OutstandingUploads, Permits, PortError, PortResult, Queue, Reading, RecordStore, RedriveError,
    Replacement, SlotsTaken, Tallies, Tasks, UpdateAnswer, Updates, UploadStore, UploadedPart, Waits, WakeUps,
    WriteLost,
};
use uuid::Uuid;

/// When the process dies, relative to a call of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// Before the call takes effect.
    Before,
    /// After the call took effect; its reply is lost.
    After,
}

/// Carries out a scenario again and again. It plans a death at this call, first before the call takes effect, then
/// after, and returns whether that happened. Returns how often it did.
pub async fn at_every_call(mut scenario: impl AsyncFnMut(u64, Death) -> bool) -> u64 {
    /// Says at which call a scenario has failed.
    struct At(u64, Death);

    impl Drop for At {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("with a death {:?} call {}", self.1, self.0);
            }
        }
    }

    let mut deaths = 0;
    for death in [Death::Before, Death::After] {
        for call in 0.. {
            let _at = At(call, death);
            if !scenario(call, death).await {
                break;
            }
            deaths += 1;
        }
    }
    deaths
}

/// The fault at a call.
#[derive(Clone, Copy)]
struct Plan {
    call: u64,
    death: Death,
    /// True if the process stays dead.
    is_fatal: bool,
}

/// The plan of one crash. Once dead, every further call fails until [`Faults::revive`].
#[derive(Default)]
pub struct Faults {
    calls: AtomicU64,
    dead: AtomicBool,
    plan: Mutex<Option<Plan>>,
    meanwhile: Mutex<Option<(u64, BoxFuture<'static, ()>)>>,
}

impl Faults {
    /// The process dies at the `call`-th call from now, counted from 0.
    pub fn plan(&self, call: u64, death: Death) {
        self.plan_any(Plan { call, death, is_fatal: true });
    }

    /// The `call`-th call from now, counted from 0, fails before or after it took effect. The process lives on.
    pub fn plan_failure(&self, call: u64, death: Death) {
        self.plan_any(Plan { call, death, is_fatal: false });
    }

    fn plan_any(&self, plan: Plan) {
        self.calls.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    }

    /// The process is frozen at the `call`-th call from now, counted from 0, until `meanwhile` is done.
    pub fn freeze(&self, call: u64, meanwhile: impl Future<Output = ()> + Send + 'static) {
        self.calls.store(0, Ordering::SeqCst);
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some((call, Box::pin(meanwhile)));
    }

    /// True if the planned freeze did not happen, because the process made fewer calls.
    pub fn thaw(&self) -> bool {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// The number of calls since the last plan.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// True if the planned death or failure has not happened yet.
    pub fn is_pending(&self) -> bool {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Starts a new process. Returns whether the previous one died.
    pub fn revive(&self) -> bool {
        self.dead.swap(false, Ordering::SeqCst)
    }

    /// Runs before the call of a port. An error means that the call is not made.
    async fn enter(&self) -> Result<Reply<'_>, PortError> {
        if self.dead.load(Ordering::SeqCst) {
            return Err(dead());
        }
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take_if(|(at, _)| *at == call);
        if let Some((_, meanwhile)) = meanwhile {
            meanwhile.await;
        }
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        match plan.take_if(|plan| plan.call == call) {
            Some(Plan { death, is_fatal, .. }) => {
                self.dead.store(is_fatal, Ordering::SeqCst);
                if death == Death::Before { Err(dead()) } else { Ok(Reply { faults: self, lost: true }) }
            }
            None => Ok(Reply { faults: self, lost: false }),
        }
    }
}

struct Reply<'a> {
    faults: &'a Faults,
    lost: bool,
}

impl Reply<'_> {
    fn arrives(&self) -> Result<(), PortError> {
        let dead_now = self.lost || self.faults.dead.load(Ordering::SeqCst);
        if dead_now { Err(dead()) } else { Ok(()) }
    }
}

fn dead() -> PortError {
    PortError::unavailable("calling a port", "the process is dead")
}

/// A port in a process that may die at each of its calls.
pub struct CrashingPort<P: ?Sized> {
    port: Arc<P>,
    faults: Arc<Faults>,
}

impl<P: ?Sized> CrashingPort<P> {
    /// This port in the process of this plan.
    pub fn new(port: Arc<P>, faults: &Arc<Faults>) -> Arc<Self> {
        Arc::new(Self { port, faults: Arc::clone(faults) })
    }

    /// Makes a call, unless the process dies before or after it.
    async fn make<T, E: From<PortError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let reply = self.faults.enter().await?;
        let answer = call.await;
        reply.arrives()?;
        answer
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<M: Grouped + Send + Sync, P: Queue<M> + ?Sized> Queue<M> for CrashingPort<P> {
    async fn send(&self, messages: &[M]) -> Result<(), PortError> {
        self.make(self.port.send(messages)).await
    }

    async fn send_later(&self, messages: &[M], delay: Duration) -> Result<(), PortError> {
        self.make(self.port.send_later(messages, delay)).await
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        self.make(self.port.backlog()).await
    }
}

/// Implements a port for [`CrashingPort`], from the signatures of its methods.
macro_rules! mortal {
    ($port:ident { $($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)* }) => {
        #[deny(clippy::missing_trait_methods)]
        #[async_trait]
        impl<P: $port + ?Sized> $port for CrashingPort<P> {
            $(async fn $call(&self, $($argument: $type),*) -> $answer {
                self.make(self.port.$call($($argument),*)).await
            })*
        }
    };
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<P: RecordStore + ?Sized> RecordStore for CrashingPort<P> {
    async fn open(&self, if_new: &Dataset, writer: Writer) -> PortResult<Dataset> {
        self.make(self.port.open(if_new, writer)).await
    }

    async fn opened(&self, name: &str) -> PortResult<Option<Dataset>> {
        self.make(self.port.opened(name)).await
    }

    async fn upsert(&self, dataset: &Dataset, records: &[DatasetRecord]) -> Vec<PortResult<Upserted>> {
        let written = self.make(async { Ok(self.port.upsert(dataset, records).await) }).await;
        written.unwrap_or_else(|_: PortError| records.iter().map(|_| Err(dead())).collect())
    }

    async fn replace(&self, dataset: &Dataset, replacements: &[Replacement]) -> Vec<PortResult<bool>> {
        let stored = self.make(async { Ok(self.port.replace(dataset, replacements).await) }).await;
        stored.unwrap_or_else(|_: PortError| replacements.iter().map(|_| Err(dead())).collect())
    }

    async fn page(
        &self,
        dataset: &Dataset,
        partition: u32,
        keys: KeyRange<'_>,
        limit: usize,
        reading: Reading,
    ) -> PortResult<RecordPage> {
        self.make(self.port.page(dataset, partition, keys, limit, reading)).await
    }

    async fn record(&self, dataset: &Dataset, key: &str) -> PortResult<Option<DatasetRecord>> {
        self.make(self.port.record(dataset, key)).await
    }

    async fn records(&self, dataset: &Dataset, keys: &[&str], reading: Reading) -> PortResult<Vec<StoredRecord>> {
        self.make(self.port.records(dataset, keys, reading)).await
    }

    async fn unlist(&self, name: &str, by: Writer) -> PortResult<()> {
        self.make(self.port.unlist(name, by)).await
    }

    async fn datasets(&self, owner: &Owner, after: Option<&str>, limit: usize) -> PortResult<DatasetPage> {
        self.make(self.port.datasets(owner, after, limit)).await
    }
}

mortal!(Objects {
    head(key: &str) -> Result<ObjectHead, PortError>;
    read_range(key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError>;
    read(key: &str) -> Result<Bytes, PortError>;
    put(key: &str, content_type: &str, bytes: Bytes, sha256: Option<[u8; 32]>) -> Result<String, PortError>;
});

mortal!(MultipartObjects {
    begin_multipart(key: &str, content_type: &str) -> Result<String, PortError>;
    put_part(key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError>;
    parts(key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError>;
    complete_multipart(key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError>;
    abort_multipart(key: &str, multipart: &str) -> Result<(), PortError>;
});

mortal!(ObjectErasures {
    erase_object(key: &str) -> Result<(), PortError>;
    erase_objects(prefix: &str) -> Result<usize, PortError>;
});

mortal!(ObjectLists {
    list(bucket: &str, prefix: &str, after: Option<&str>) -> Result<ObjectPage, PortError>;
});

mortal!(UploadStore {
    create(upload: &Upload) -> Result<(), PortError>;
    upload(file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError>;
    begin_fetch(file_guid: FileGuid, begun: &FetchBegun) -> Result<(), PortError>;
    fail(file_guid: FileGuid, failure: &FetchFailure) -> Result<(), PortError>;
    mark_ready(file_guid: FileGuid, etag: &str) -> Result<(), PortError>;
    remove(file_guid: FileGuid) -> Result<(), PortError>;
});

mortal!(OutstandingUploads {
    add(owner: &Owner, upload: &OutstandingUpload, limits: OutstandingLimits, now: Timestamp) -> Result<(), OutstandingError>;
    remove(owner: &Owner, file_guid: FileGuid) -> Result<(), PortError>;
});

mortal!(Breakers {
    breaker(job_type: &str) -> Result<Option<Breaker>, PortError>;
    move_breaker(job_type: &str, next: &Breaker) -> Result<BreakerMoved, PortError>;
});

mortal!(Tasks {
    offer(task: &Task, now: Timestamp) -> Result<(), PortError>;
    task(job_type: &str, owner: &Owner, id: TaskId) -> Result<Option<Task>, PortError>;
    owners(job_type: &str, from: u32, limit: usize) -> Result<Vec<(Owner, Timestamp)>, PortError>;
    forget_owner(job_type: &str, owner: &Owner, last: Timestamp) -> Result<(), PortError>;
    due(job_type: &str, owner: &Owner, now: Timestamp, limit: usize) -> Result<Vec<Task>, PortError>;
    due_last(job_type: &str, owner: &Owner, limit: usize) -> Result<Vec<Task>, PortError>;
    of_job(
        job_type: &str, owner: &Owner, job: JobGuid, after: Option<TaskId>, limit: usize
    ) -> Result<Vec<Task>, PortError>;
    are_there(job_type: &str, owner: &Owner) -> Result<bool, PortError>;
    put_off(seen: &Task, due_at: Timestamp, holder: Option<&Holder>) -> Result<(), PortError>;
    remove(seen: &Task) -> Result<(), PortError>;
    note_ask(job_type: &str, now: Timestamp) -> Result<(), PortError>;
    last_ask(job_type: &str) -> Result<Option<Timestamp>, PortError>;
});

mortal!(Admissions {
    create(job: &NewJob) -> Result<Created, CreateError>;
    taken(owner: &Owner, job_type: &str) -> Result<SlotsTaken, PortError>;
    remembered(owner: &Owner, key: &str, now: Timestamp) -> Result<Option<(JobGuid, String)>, PortError>;
    remember(owner: &Owner, wanted: &Idempotency, job: JobGuid, now: Timestamp) -> Result<JobGuid, CreateError>;
    deduped(owner: &Owner, key: &str, now: Timestamp) -> Result<Option<JobGuid>, PortError>;
});

mortal!(Jobs {
    job(job: JobGuid) -> Result<Job, PortError>;
    spec(job: JobGuid) -> Result<Spec, PortError>;
    jobs(owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError>;
});

mortal!(Updates {
    update(seen: &Job, next: &Job, ahead: Usage) -> Result<UpdateAnswer, PortError>;
});

mortal!(Tallies {
    put_tally(job: JobGuid, tally: &Tally) -> Result<Tally, PortError>;
    tally(job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError>;
    tallies(job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError>;
    commit(job: JobGuid, commits: &[Commit]) -> Result<CommitAnswer, PortError>;
    skip_rest(job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError>;
    touch(job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError>;
    note_next_sent(job: JobGuid, attempt: u32, tally: u32) -> Result<(), PortError>;
    fold(job: JobGuid, tally: &Tally) -> Result<Totals, PortError>;
    totals(job: JobGuid, attempt: u32) -> Result<Totals, PortError>;
    set_final_tallies(job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError>;
});

mortal!(Checkpoints {
    checkpoint(job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError>;
    move_checkpoint(job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError>;
});

mortal!(Permits {
    permits(job_type: &str) -> Result<Vec<Permit>, PortError>;
    lease_with_permit(job: JobGuid, leased: &Checkpoint, permit: &PermitSeen) -> Result<bool, PortError>;
    give_permit_back(job_type: &str, seen: &Permit) -> Result<(), PortError>;
});

mortal!(Attempts {
    redrive(attempt: &NewAttempt) -> Result<Job, RedriveError>;
});

mortal!(Completions {
    complete(completion: &Completion) -> Result<(), WriteLost>;
});

mortal!(DeadLetters {
    record_dead_letter(job: JobGuid, letter: &DeadLetter) -> Result<(), PortError>;
    dead_letters(job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError>;
});

mortal!(Erasures {
    erase_rows(job: JobGuid) -> Result<bool, PortError>;
});

mortal!(WakeUps {
    due(shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError>;
    put_off(due: Due, next: Timestamp) -> Result<(), PortError>;
});

mortal!(Waits {
    awaiting(awaited: Uuid) -> Result<Vec<JobGuid>, PortError>;
    put_found(found: &Spec) -> Result<Spec, PortError>;
});
