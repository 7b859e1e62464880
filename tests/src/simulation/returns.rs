//! What follows the end of an invocation: its message is acknowledged or returns to its queue, or the client retries.

use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::tally::ChunkAddress;

use super::functions::{Function, Invocation, Reply, Work};
use super::plan::Planned;
use super::queues::Delivery;
use super::run::{Run, chunk_of};
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
            if matches!(ended, Ended::Returned(Reply::Done(_))) {
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
        self.died_at(invocation.chunk().filter(|_| !invocation.zombie));
        match invocation.work {
            Work::Message(delivery) if !invocation.zombie => self.failed(&delivery),
            Work::Operation(planned) => self.try_again(planned),
            Work::Message(_) => {}
        }
    }

    fn died_at(&self, chunk: Option<(JobGuid, ChunkAddress)>) {
        if let Some((job, chunk)) = chunk {
            self.world.invariants.died_at(job, chunk);
        }
    }

    fn returned(&mut self, task: u64, invocation: Invocation, reply: Reply) {
        self.world.hub.tell(Some(task), || format!("{:?} returns {reply}", invocation.function));
        self.world.invariants.reach(reply.place(invocation.function));
        if let (Reply::Failed(why), Work::Message(delivery)) = (&reply, &invocation.work)
            && let Some((job, chunk)) = chunk_of(&delivery.body)
        {
            let at = self.world.hub.now();
            self.world.hub.check(self.world.invariants.may_give_back(task, job, chunk.attempt, why, at));
        }
        let failures = self.world.hub.take_failures(task);
        if let (Reply::Failed(why), false) = (&reply, invocation.zombie) {
            // One failed call is an outage and must not count as a death of the current item. After two, the note that names
            // this item may have stayed.
            if failures > 1 || why.contains("took too long") {
                self.died_at(invocation.chunk());
            }
        }
        if self.world.holds.row(task).is_none() {
            self.idle.extend(invocation.process);
        }
        match (invocation.work, reply) {
            (Work::Message(_), _) if invocation.zombie => {}
            (Work::Message(delivery), Reply::Done(_)) => {
                if invocation.function == Function::DeadLetter {
                    self.world.hub.check(self.world.invariants.dead_letter_settled(&delivery));
                }
                if !self.adversary.loses_acknowledgement(self.step) {
                    self.world.queues.acknowledge(&delivery);
                }
            }
            (Work::Message(delivery), _) => self.failed(&delivery),
            (Work::Operation(planned), Reply::Failed(_) | Reply::Full(_)) => self.try_again(planned),
            (Work::Operation(_), Reply::Created(Some(key), job)) => {
                let first = *self.created.entry(key.clone()).or_insert(job);
                let (first_name, name) = (job_name(first), job_name(job));
                let same = if first == job { Ok(()) } else { Err(format!("{key} created {first_name} and {name}")) };
                self.world.hub.check(same);
            }
            (Work::Operation(_), _) => {}
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
