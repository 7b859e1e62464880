//! The plan of a delivery. A plan reads and writes nothing, so a table of tests holds all cases.

use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::model::checkpoint::{Checkpoint, DEATHS_MAX};
use rowmill_core::model::job::Job;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::lanes::is_astray;
use rowmill_core::model::messages::{ChunkMessage, DeliveryMode};
use rowmill_core::model::tally::Tally;
use rowmill_core::model::task::TaskTerms;

use crate::end::{ChunkEnd, Conclusion};

/// The facts from which a delivery is planned.
pub(crate) struct Facts<'a> {
    pub message: &'a ChunkMessage,
    pub redelivered: bool,
    pub type_limits: &'a JobTypeLimits,
    /// The terms of its tasks, if workers or a service that answers later process the items of the job.
    pub tasks: Option<TaskTerms>,
    /// `None` if it is gone.
    pub job: Option<Arc<Job>>,
    /// True if this delivery has noted that a chunk of the job begins.
    pub has_begun: bool,
    /// The chunk's tally; `None` if it is not read.
    pub tally: Option<Tally>,
    /// The chunk's checkpoint, blank if it has none; `None` if it is not read.
    pub checkpoint: Option<Checkpoint>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Plan {
    /// No item runs.
    Conclude(Conclusion),
    Run(RunMode),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunMode {
    /// The items run from the checkpoint on.
    Plain,
    /// The items run from the checkpoint on, noted in it.
    Isolated,
    /// The next item fails as poison.
    PassOverPoison,
    /// A service is called with the next items, and answers later.
    Called(TaskTerms),
}

/// A step that comes first: then the delivery is planned again, with what the step shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    ReadTally,
    ReadCheckpoint,
    /// Note that a chunk of the job begins. Before any item: a job stopped for lack of capacity has processed none.
    Begin,
    /// Stop the job, whose deadline has passed.
    StopOverdue,
}

impl Facts<'_> {
    pub fn plan(&self, now: Timestamp) -> Result<Plan, Step> {
        let (message, mode) = (self.message, self.message.delivery_mode);
        let Some(job) = self.job.as_ref().filter(|job| !job.is_past(message.address.attempt)) else {
            return Ok(Plan::Conclude(Conclusion::End(ChunkEnd::Past)));
        };
        if job.drops(message) {
            return Ok(Plan::Conclude(Conclusion::End(ChunkEnd::Dropped)));
        }
        let may_have_run = self.redelivered || mode != DeliveryMode::Fresh;
        match &self.tally {
            None if may_have_run => return Err(Step::ReadTally),
            Some(tally) if tally.accounts_for(message.address.index) => {
                return Ok(Plan::Conclude(Conclusion::Repeat(Box::new(tally.clone()))));
            }
            _ => {}
        }
        if job.is_stopped() {
            return match &self.checkpoint {
                None if self.tasks.is_some() => Err(Step::ReadCheckpoint),
                Some(checkpoint) if self.tasks.is_some() => Ok(Plan::Conclude(skip(checkpoint, now))),
                _ => Ok(Plan::Conclude(Conclusion::Skip)),
            };
        }
        if now >= job.stops_at() {
            return Err(Step::StopOverdue);
        }
        if is_astray(self.type_limits, &job.job_type, message) {
            return Ok(Plan::Conclude(Conclusion::Send(Box::new(rerouted(message, job)), ChunkEnd::Rerouted)));
        }
        // Workers begin with their first beat.
        if job.first_chunk_at.is_none() && !self.has_begun && self.tasks.is_none_or(|terms| terms.called) {
            return Err(Step::Begin);
        }
        match &self.checkpoint {
            None if may_have_run => Err(Step::ReadCheckpoint),
            checkpoint if let Some(terms) = self.tasks => Ok(self.task(checkpoint.as_ref(), terms, now)),
            Some(checkpoint) if mode == DeliveryMode::Isolated => Ok(self.isolate(checkpoint, now)),
            // Its items never run beside other chunks.
            Some(checkpoint) if checkpoint.isolated => {
                Ok(Plan::Conclude(Conclusion::continued(message, DeliveryMode::Isolated)))
            }
            _ => Ok(Plan::Run(RunMode::Plain)),
        }
    }

    /// The chunk is offered to workers, or its service is called, unless somebody holds it, all of its items are done, or
    /// the next one has killed too many holders.
    fn task(&self, checkpoint: Option<&Checkpoint>, terms: TaskTerms, now: Timestamp) -> Plan {
        if let Some(until) = checkpoint.and_then(Checkpoint::held_until).filter(|until| *until > now) {
            return Plan::Conclude(Conclusion::Offer(until));
        }
        match checkpoint {
            Some(checkpoint) if checkpoint.done >= self.message.chunk.items => Plan::Run(RunMode::Plain),
            Some(checkpoint) if checkpoint.has_poison() => Plan::Run(RunMode::PassOverPoison),
            _ if terms.called => Plan::Run(RunMode::Called(terms)),
            _ => Plan::Conclude(Conclusion::Offer(now)),
        }
    }

    fn isolate(&self, checkpoint: &Checkpoint, now: Timestamp) -> Plan {
        if checkpoint.is_live(now) {
            return Plan::Conclude(Conclusion::GiveBack("another run is at its items"));
        }
        match (checkpoint.known_suspects(), checkpoint.in_flight) {
            (Some(suspects), _) if suspects.deaths >= DEATHS_MAX => Plan::Run(RunMode::PassOverPoison),
            // The deaths on the way to one item would use up the deliveries of this message. What is known moves to the
            // checkpoint first, so that a death is answered with one fresh message.
            (_, Some(note)) if note.items > 1 && self.redelivered => Plan::Conclude(Conclusion::HandOver),
            _ => Plan::Run(RunMode::Isolated),
        }
    }
}

/// The chunk of a stopped job is skipped, once the worker or service that is at it has reported what it has done.
fn skip(checkpoint: &Checkpoint, now: Timestamp) -> Conclusion {
    let has_begun = checkpoint.in_flight.is_some_and(|note| !note.unconfirmed);
    match checkpoint.held_until().is_some_and(|until| has_begun && until > now) {
        true => Conclusion::GiveBack("a worker or a service is at its items"),
        false => Conclusion::Skip,
    }
}

/// The message for a lane of its job type.
fn rerouted(message: &ChunkMessage, job: &Job) -> ChunkMessage {
    let delivery_mode = match message.delivery_mode {
        DeliveryMode::Isolated => DeliveryMode::Isolated,
        // It may have been delivered before.
        _ => DeliveryMode::Recovered,
    };
    ChunkMessage { job_type: Some(job.job_type.clone()), delivery_mode, ..message.clone() }
}
