//! The plan of an invocation of `split-job`: a function of the job row and the time. And the ways in which one ends.

use std::time::Duration;

use jiff::Timestamp;
use rowmill_core::model::job::{Job, Stop};
use rowmill_core::model::messages::SplitMessage;
use rowmill_core::ports::PortError;

/// The work of an invocation on a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    Leave(SplitEnd),
    /// Runs from before the pause may be at work for this time: then the missing chunks are sent again.
    Wait(Duration),
    /// Sends the missing chunks of a resumed job again. It needs no lease.
    Resend,
    /// The split has ended: announces it. It needs no lease.
    Announce,
    /// Leaves a job that waits to `start-job`. It needs no lease.
    Await,
    /// Ends the split of a stopped job, under the lease.
    Finish,
    /// Splits, under the lease.
    Split,
}

/// Plans for a message. Runs that began before a pause have ended after the `grace`.
pub fn plan(job: &Job, message: &SplitMessage, now: Timestamp, grace: Duration) -> Plan {
    if job.is_past(message.attempt) {
        return Plan::Leave(SplitEnd::NotOurs);
    }
    if job.is_paused() {
        return Plan::Leave(SplitEnd::Paused);
    }
    if job.is_untaken() && now >= job.stops_at() {
        return Plan::Leave(SplitEnd::Overdue);
    }
    if job.resend_from.is_some() {
        if message.epoch < job.epoch {
            // The resume has a message of its own. Two resends at once may send chunks twice.
            return Plan::Leave(SplitEnd::NotOurs);
        }
        // Nothing was sent before the first tally was counted.
        let runs_until = job.paused_at.filter(|_| job.split.tallies > 0).map(|at| at + grace);
        let left = runs_until.and_then(|until| Duration::try_from(until.duration_since(now)).ok());
        return left.filter(|left| !left.is_zero()).map_or(Plan::Resend, Plan::Wait);
    }
    match (job.split.done, job.is_stopped()) {
        (true, _) => Plan::Announce,
        (false, true) => Plan::Finish,
        (false, false) if job.awaits.is_some() => Plan::Await,
        (false, false) => Plan::Split,
    }
}

/// Result of an invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SplitEnd {
    /// The file is split to its end, or the job was stopped.
    Finished,
    /// Time was up. A message for the next invocation is sent.
    Continued,
    /// The job is paused. Nothing was dispatched, or no more will be.
    Paused,
    /// The job waits: `start-job` looks for what it waits for.
    Awaiting,
    /// Nobody has taken the job up, and its deadline has passed.
    Overdue,
    /// Nothing to do: the job is gone or past this attempt, another run is at it, or it was paused before this one got
    /// the lease.
    NotOurs,
}

/// The end of a run under the lease.
#[derive(Debug)]
pub enum Conclusion {
    /// No tally will follow, because all items are dispatched (`at_end`) or the job is stopped. A counted tally of a
    /// stopped job is left to the sweep: its chunks may have been sent, and their runs end within the grace.
    End {
        at_end: bool,
    },
    /// The job must stop for this reason, or because its deadline has passed (`None`).
    Stop(Option<Stop>),
    /// All counted tallies are dispatched, or the job is paused, and a resend sends them.
    HandOver,
    /// Nothing was dispatched.
    GiveBack,
    /// Another run, or another attempt, has taken over, or the job was paused after the lease was lost.
    Superseded,
    Failed(PortError),
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::ids::RunId;
    use rowmill_core::model::job::{Awaits, Lease, Resent, StopCode};
    use rowmill_core::text::Position;
    use rowmill_testing::fixtures;

    use super::*;

    const GRACE: Duration = Duration::from_secs(150);
    const RUN: RunId = RunId::from_bytes([1; RunId::BYTES]);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A job whose deadline is at second 9,000; and the same job after a run has taken it up and counted a tally.
    fn jobs() -> (Job, Job) {
        let waiting = Job { deadline_at: at(9_000), ..fixtures::job() };
        let running = waiting.take(Lease { holder: RUN, until: at(5_000) }, at(1)).unwrap();
        let counted = running.count_tally(RUN, 0, Position { offset: 99, row: 9 }, at(1)).unwrap();
        (waiting, counted)
    }

    fn stopped(job: &Job) -> Job {
        job.stop(&Stop::because(StopCode::Cancelled, "", at(30))).unwrap()
    }

    #[test]
    fn each_state_of_a_job_has_its_plan() {
        let (waiting, running) = jobs();
        let paused = running.pause(at(10)).unwrap();
        let resumed = paused.resume(at(20)).unwrap();
        let begun = Resent { epoch: resumed.epoch, from: None, next: Some(0) };
        let sending = resumed.note_resent(begun, at(160)).unwrap();
        let sent = sending.note_resent(Resent { from: Some(0), next: None, ..begun }, at(161)).unwrap();
        let awaiting = Job { awaits: Some(Awaits::File), ..waiting.clone() };
        let untaken = waiting.pause(at(10)).unwrap().resume(at(20)).unwrap();
        let ended = running.finish_split(RUN, true, at(2)).unwrap();
        let cases = [
            (&waiting, 8_999, Plan::Split),
            (&waiting, 9_000, Plan::Leave(SplitEnd::Overdue)),
            (&running, 20, Plan::Split),
            (&running, 9_000, Plan::Split),
            (&Job { attempt: 2, ..running.clone() }, 20, Plan::Leave(SplitEnd::NotOurs)),
            (&paused, 20, Plan::Leave(SplitEnd::Paused)),
            (&resumed, 20, Plan::Wait(Duration::from_secs(140))),
            (&resumed, 159, Plan::Wait(Duration::from_secs(1))),
            (&resumed, 160, Plan::Resend),
            (&resumed, 9_000, Plan::Resend),
            (&sending, 20, Plan::Resend),
            (&sent, 20, Plan::Split),
            (&sent.pause(at(200)).unwrap(), 210, Plan::Leave(SplitEnd::Paused)),
            (&sent.pause(at(200)).unwrap().resume(at(201)).unwrap(), 210, Plan::Wait(Duration::from_secs(140))),
            (&untaken, 20, Plan::Resend),
            (&awaiting, 20, Plan::Await),
            (&awaiting, 9_000, Plan::Leave(SplitEnd::Overdue)),
            (&awaiting.pause(at(10)).unwrap(), 20, Plan::Leave(SplitEnd::Paused)),
            (&stopped(&awaiting), 40, Plan::Finish),
            (&ended, 20, Plan::Announce),
            (&ended.pause(at(10)).unwrap().resume(at(11)).unwrap(), 20, Plan::Wait(Duration::from_secs(140))),
            (&stopped(&running), 20, Plan::Finish),
            (&stopped(&ended), 20, Plan::Announce),
            (&stopped(&paused), 40, Plan::Finish),
            (&stopped(&resumed), 40, Plan::Finish),
            (&stopped(&sending), 40, Plan::Finish),
        ];
        for (place, (job, second, expected)) in cases.into_iter().enumerate() {
            let message = SplitMessage { attempt: 1, ..SplitMessage::of(job) };
            assert_eq!(plan(job, &message, at(second), GRACE), expected, "case {place}");
        }
        let before = SplitMessage::of(&running);
        let cases = [
            (&resumed, Plan::Leave(SplitEnd::NotOurs)),
            (&sending, Plan::Leave(SplitEnd::NotOurs)),
            (&sent, Plan::Split),
            (&stopped(&sending), Plan::Finish),
        ];
        for (place, (job, expected)) in cases.into_iter().enumerate() {
            assert_eq!(plan(job, &before, at(170), GRACE), expected, "case {place} from before the pause");
        }
    }
}
