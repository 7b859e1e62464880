//! Crashes on purpose: ports that, at a planned call, act as if the process had died before or after it, or as if it had
//! been frozen before it while others went on; or that fail at that call alone.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use jiff::Timestamp;
use rowmill_core::model::checkpoint::Checkpoint;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::{Job, Lease, Stop};
use rowmill_core::model::messages::Grouped;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::{ChunkAddress, Commit, Tally, Totals};
use rowmill_core::ports::{
    CheckpointMoved, Committed, Completion, CreateError, Created, Due, JobFilter, JobPage, JobStore, Leased,
    MultipartObjects, NewAttempt, NewJob, ObjectHead, Objects, PortError, Queue, RedriveError, Stopped, UploadedPart,
    WriteLost,
};
use rowmill_core::text::Position;

/// When the process dies, as seen from a call to a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// Before the call takes effect.
    Before,
    /// After it took effect; its reply is lost.
    After,
}

/// What is planned for a call.
#[derive(Clone, Copy)]
struct Plan {
    call: u64,
    death: Death,
    /// Whether the process is dead from then on.
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
    /// The process dies at the `call`-th call from now on, counted from 0.
    pub fn plan(&self, call: u64, death: Death) {
        self.plan_any(Plan { call, death, is_fatal: true });
    }

    /// The `call`-th call from now on, counted from 0, fails before or after it took effect; the process lives on.
    pub fn plan_failure(&self, call: u64, death: Death) {
        self.plan_any(Plan { call, death, is_fatal: false });
    }

    fn plan_any(&self, plan: Plan) {
        self.calls.store(0, Ordering::SeqCst);
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some(plan);
    }

    /// The process is frozen at the `call`-th call from now on, counted from 0, while all of this happens.
    pub fn freeze(&self, call: u64, meanwhile: impl Future<Output = ()> + Send + 'static) {
        self.calls.store(0, Ordering::SeqCst);
        *self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some((call, Box::pin(meanwhile)));
    }

    /// Whether the process was not frozen as planned, because it did not make that many calls.
    pub fn thaw(&self) -> bool {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// How many calls there were since the last plan.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// Whether what was planned is still to come.
    pub fn is_pending(&self) -> bool {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Starts a new process; whether the one before had died.
    pub fn revive(&self) -> bool {
        self.dead.swap(false, Ordering::SeqCst)
    }

    /// To be called before a port's own work: whether it is done at all, and whether its reply arrives.
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

/// A port behind which the process may die.
pub struct Mortal<P: ?Sized> {
    port: Arc<P>,
    faults: Arc<Faults>,
}

impl<P: ?Sized> Mortal<P> {
    /// This port, dying by this plan.
    pub fn new(port: Arc<P>, faults: &Arc<Faults>) -> Arc<Self> {
        Arc::new(Self { port, faults: Arc::clone(faults) })
    }
}

/// Passes a call on unless the process dies.
macro_rules! pass {
    ($self:ident.$call:ident($($argument:expr),*)) => {{
        let reply = $self.faults.enter().await?;
        let answer = $self.port.$call($($argument),*).await;
        reply.arrives()?;
        answer
    }};
}

#[async_trait]
impl<M: Grouped + Send + Sync, P: Queue<M> + ?Sized> Queue<M> for Mortal<P> {
    async fn send(&self, messages: &[M]) -> Result<(), PortError> {
        pass!(self.send(messages))
    }

    async fn backlog(&self) -> Result<u64, PortError> {
        pass!(self.backlog())
    }
}

#[async_trait]
impl<P: Objects + ?Sized> Objects for Mortal<P> {
    async fn head(&self, key: &str) -> Result<ObjectHead, PortError> {
        pass!(self.head(key))
    }

    async fn read_range(&self, key: &str, etag: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        pass!(self.read_range(key, etag, range))
    }

    async fn read(&self, key: &str) -> Result<Bytes, PortError> {
        pass!(self.read(key))
    }

    async fn put(
        &self,
        key: &str,
        content_type: &str,
        bytes: Bytes,
        sha256: Option<[u8; 32]>,
    ) -> Result<String, PortError> {
        pass!(self.put(key, content_type, bytes, sha256))
    }
}

#[async_trait]
impl<P: MultipartObjects + ?Sized> MultipartObjects for Mortal<P> {
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError> {
        pass!(self.begin_multipart(key, content_type))
    }

    async fn put_part(&self, key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError> {
        pass!(self.put_part(key, multipart, number, bytes))
    }

    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError> {
        pass!(self.parts(key, multipart))
    }

    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError> {
        pass!(self.complete_multipart(key, multipart, parts))
    }
}

#[async_trait]
impl<P: JobStore + ?Sized> JobStore for Mortal<P> {
    async fn create(&self, job: &NewJob) -> Result<Created, CreateError> {
        pass!(self.create(job))
    }

    async fn remembered(
        &self,
        owner: &Owner,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<(JobGuid, String)>, PortError> {
        pass!(self.remembered(owner, key, now))
    }

    async fn job(&self, job: JobGuid) -> Result<Job, PortError> {
        pass!(self.job(job))
    }

    async fn spec(&self, job: JobGuid) -> Result<Spec, PortError> {
        pass!(self.spec(job))
    }

    async fn jobs(&self, owner: &Owner, filter: &JobFilter, now: Timestamp) -> Result<JobPage, PortError> {
        pass!(self.jobs(owner, filter, now))
    }

    async fn lease(&self, job: JobGuid, attempt: u32, lease: Lease, now: Timestamp) -> Result<Leased, PortError> {
        pass!(self.lease(job, attempt, lease, now))
    }

    async fn release(&self, job: JobGuid, holder: RunId) -> Result<(), PortError> {
        pass!(self.release(job, holder))
    }

    async fn put_tally(&self, job: JobGuid, tally: &Tally) -> Result<Tally, PortError> {
        pass!(self.put_tally(job, tally))
    }

    async fn count_tally(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        number: u32,
        next: Position,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        pass!(self.count_tally(job, attempt, holder, number, next, now))
    }

    async fn pause_split(&self, job: JobGuid, attempt: u32, holder: RunId, now: Timestamp) -> Result<(), WriteLost> {
        pass!(self.pause_split(job, attempt, holder, now))
    }

    async fn finish_split(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        at_end: bool,
        now: Timestamp,
    ) -> Result<Job, WriteLost> {
        pass!(self.finish_split(job, attempt, holder, at_end, now))
    }

    async fn pause_composition(
        &self,
        job: JobGuid,
        attempt: u32,
        holder: RunId,
        state: RunId,
        now: Timestamp,
    ) -> Result<(), WriteLost> {
        pass!(self.pause_composition(job, attempt, holder, state, now))
    }

    async fn stop(&self, job: JobGuid, attempt: u32, stop: &Stop) -> Result<Stopped, PortError> {
        pass!(self.stop(job, attempt, stop))
    }

    async fn set_final_tallies(&self, job: JobGuid, attempt: u32, tallies: u32) -> Result<Totals, PortError> {
        pass!(self.set_final_tallies(job, attempt, tallies))
    }

    async fn commit(&self, job: JobGuid, commit: &Commit) -> Result<Committed, PortError> {
        pass!(self.commit(job, commit))
    }

    async fn skip_rest(&self, job: JobGuid, seen: &Tally, at: Timestamp) -> Result<Tally, PortError> {
        pass!(self.skip_rest(job, seen, at))
    }

    async fn tally(&self, job: JobGuid, attempt: u32, number: u32) -> Result<Tally, PortError> {
        pass!(self.tally(job, attempt, number))
    }

    async fn tallies(&self, job: JobGuid, attempt: u32, numbers: Range<u32>) -> Result<Vec<Tally>, PortError> {
        pass!(self.tallies(job, attempt, numbers))
    }

    async fn fold(&self, job: JobGuid, tally: &Tally) -> Result<Totals, PortError> {
        pass!(self.fold(job, tally))
    }

    async fn totals(&self, job: JobGuid, attempt: u32) -> Result<Totals, PortError> {
        pass!(self.totals(job, attempt))
    }

    async fn touch(&self, job: JobGuid, attempt: u32, tally: u32, at: Timestamp) -> Result<(), PortError> {
        pass!(self.touch(job, attempt, tally, at))
    }

    async fn checkpoint(&self, job: JobGuid, chunk: ChunkAddress) -> Result<Option<Checkpoint>, PortError> {
        pass!(self.checkpoint(job, chunk))
    }

    async fn move_checkpoint(&self, job: JobGuid, moved: &Checkpoint) -> Result<CheckpointMoved, PortError> {
        pass!(self.move_checkpoint(job, moved))
    }

    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        pass!(self.record_dead_letter(job, letter))
    }

    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        pass!(self.dead_letters(job, limit))
    }

    async fn due(&self, shard: u32, now: Timestamp, limit: usize) -> Result<Vec<Due>, PortError> {
        pass!(self.due(shard, now, limit))
    }

    async fn wake_later(&self, due: Due, next: Timestamp, recoveries: u32) -> Result<Option<Job>, PortError> {
        pass!(self.wake_later(due, next, recoveries))
    }

    async fn redrive(&self, attempt: &NewAttempt) -> Result<Job, RedriveError> {
        pass!(self.redrive(attempt))
    }

    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        pass!(self.complete(completion))
    }
}
