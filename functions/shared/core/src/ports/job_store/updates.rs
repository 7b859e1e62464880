use async_trait::async_trait;

use crate::model::cost::Usage;
use crate::model::job::Job;
use crate::ports::{Full, PortError};

/// The write of the job row that carries out a transition. Only [`create`](super::Admissions::create),
/// [`redrive`](super::Attempts::redrive) and [`complete`](super::Completions::complete), which move other rows with it,
/// and [`put_off`](super::WakeUps::put_off) write it otherwise.
#[async_trait]
pub trait Updates: Send + Sync {
    /// Writes what `next` and `seen` differ in. Condition: nobody has written the row since `seen` was read. If one of
    /// them has [shared slots](Job::has_shared_slots) and the other has not, they are taken or given back with it, all
    /// or nothing, under the ceilings with which the attempt began. `ahead` is what the caller uses for the job after
    /// this write, for its cost.
    ///
    /// # Errors
    /// `NotFound` if the job is gone; `Unavailable`.
    async fn update(&self, seen: &Job, next: &Job, ahead: Usage) -> Result<UpdateAnswer, PortError>;
}

/// The answer to an update, with the current job.
#[derive(Clone, PartialEq, Debug)]
pub enum UpdateAnswer {
    Written(Job),
    /// It was written before, and the reply lost. The job may have moved on since.
    WrittenBefore(Job),
    /// Another write was first.
    Refused(Job),
    /// There are no slots for it. Nothing was written.
    Full(Full),
}
