//! Consequences of the end of an invocation: its message is acknowledged or returns to its queue, or the client
//! retries.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;

use super::functions::{Function, Invocation, Reply, Work};
use super::plan::Planned;
use super::queues::Delivery;
use super::run::Run;
use super::tasks::Ended;
use super::trace::job_name;

impl Run {
    pub(super) fn kill(&mut self, task: u64) {
        if let Some(invocation) = self.tasks.kill(task) {
            self.world.invariants.has_ended(task);
            self.died(invocation);
        }
    }

    pub(super) fn run_tasks(&mut self) {
        for (task, invocation, ended) in self.tasks.run() {
            if matches!(&ended, Ended::Returned(reply) if reply.is_done()) {
                self.world.hub.check(self.world.invariants.has_sent(task));
            }
            self.world.invariants.has_ended(task);
            match ended {
                Ended::Died => self.died(invocation),
                Ended::Returned(reply) => self.returned(task, invocation, reply),
            }
        }
    }

    /// A process died without a reply.
    fn died(&mut self, invocation: Invocation) {
        if !invocation.zombie {
            self.died_at(&invocation.chunks());
        }
        match invocation.work {
            Work::Messages(deliveries) if !invocation.zombie => {
                deliveries.iter().for_each(|delivery| self.failed(delivery));
            }
            Work::Operation(planned) => self.try_again(planned),
            Work::Messages(_) | Work::Worker => {}
        }
    }

    pub(super) fn died_at(&self, chunks: &[(JobGuid, ChunkAddress)]) {
        for (job, chunk) in chunks {
            self.world.invariants.died_at(*job, *chunk);
        }
    }

    fn returned(&mut self, task: u64, invocation: Invocation, reply: Reply) {
        self.world.hub.tell(Some(task), || format!("{:?} returns {reply}", invocation.function));
        let replies = match reply {
            Reply::Each(replies) => replies,
            reply => vec![reply],
        };
        let failures = self.world.hub.take_failures(task);
        let chunks = invocation.chunks();
        for reply in &replies {
            self.world.invariants.reach(reply.place(invocation.function));
            let Reply::Failed(why) = reply else { continue };
            // Of several chunks, one may see that the breaker is open after another one has failed.
            if let [(job, _)] = chunks[..] {
                let at = self.world.hub.now();
                self.world.hub.check(self.world.invariants.may_give_back(task, job, why, at));
            }
            // One failed call is an outage and must not count as a death of the current item. After two, the note that
            // names this item may have stayed.
            if !invocation.zombie && (failures > 1 || why.contains("took too long")) {
                self.died_at(&chunks);
            }
        }
        if self.world.holds.rows(task).is_empty() {
            self.idle.extend(invocation.process);
        }
        match invocation.work {
            Work::Messages(_) if invocation.zombie => {}
            Work::Messages(deliveries) => {
                for (delivery, reply) in deliveries.iter().zip(&replies) {
                    self.message_returned(invocation.function, delivery, reply);
                }
            }
            Work::Worker => {}
            Work::Operation(planned) => replies.into_iter().for_each(|reply| self.operation_returned(planned, reply)),
        }
    }

    fn message_returned(&mut self, function: Function, delivery: &Delivery, reply: &Reply) {
        if !reply.is_done() {
            return self.failed(delivery);
        }
        if function == Function::DeadLetter {
            self.world.hub.check(self.world.invariants.dead_letter_settled(delivery));
        }
        if !self.adversary.loses_acknowledgement(self.step) {
            self.world.queues.acknowledge(delivery);
        }
    }

    fn operation_returned(&mut self, planned: Planned, reply: Reply) {
        match reply {
            Reply::Failed(_) | Reply::Full(_) => self.try_again(planned),
            Reply::Created(Some(key), job) => {
                let first = *self.created.entry(key.clone()).or_insert(job);
                let (first_name, name) = (job_name(first), job_name(job));
                let same = if first == job { Ok(()) } else { Err(format!("{key} created {first_name} and {name}")) };
                self.world.hub.check(same);
            }
            _ => {}
        }
    }

    /// The message returns to its queue, at once or after its visibility timeout.
    fn failed(&mut self, delivery: &Delivery) {
        if let Some(after) = self.adversary.gives_back_after() {
            self.world.queues.give_back(delivery, self.world.hub.now() + after);
        }
    }

    fn try_again(&mut self, planned: Planned) {
        if planned.retries > 0 {
            let step = self.step + self.adversary.rng.u64(1..200);
            self.operations.push(Planned { step, retries: planned.retries - 1, ..planned });
        }
    }
}
