//! The register of all metrics: the one home of each name, unit, source and meaning. A test writes the tables of
//! `docs/metrics.md` from it, and compares the dashboard and the alarms of the template with it.

use serde::Serialize;

/// The unit of a metric, by the name that CloudWatch has for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Unit {
    /// A number of things. Values of one invocation are added up.
    Count,
    /// A time in seconds, with milliseconds. Each value of an invocation is kept.
    Seconds,
}

macro_rules! register {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:ident [$($source:literal),+],)+) => {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Metric {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Metric {
            /// Every metric, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in CloudWatch.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            pub const fn unit(self) -> Unit {
                match self {
                    $(Self::$name => Unit::$unit,)+
                }
            }

            /// The functions that write it.
            pub const fn sources(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($source),+],)+
                }
            }

            /// The meaning, in one or two sentences.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+),)+
                }.trim()
            }
        }
    };
}

register! {
    /// Jobs that were created. A request that is answered with the job of an earlier one is not counted.
    JobsCreated: Count ["create-job", "receive-file"],
    /// Requests to create or redrive a job that were refused. `refusals` in the line has the number by problem code.
    JobsRefused: Count ["create-job", "redrive-job"],
    /// Jobs refused because the limit of active jobs of their owner was reached (`owner_full`). Also in `JobsRefused`.
    OwnerFull: Count ["create-job", "redrive-job"],
    /// Jobs refused because the limit of active jobs of their job type was reached (`job_type_full`). Also in
    /// `JobsRefused`.
    JobTypeFull: Count ["create-job", "redrive-job"],
    /// Jobs refused because the limit of active jobs of the system was reached (`system_full`). Also in `JobsRefused`.
    SystemFull: Count ["create-job", "redrive-job"],
    /// Further attempts that began by a redrive.
    JobsRedriven: Count ["redrive-job"],
    /// Jobs that a function took up for the first time.
    JobsStarted: Count ["split-job", "dead-letter", "sweep"],
    /// Attempts that ended. The five metrics below are their parts.
    JobsEnded: Count ["complete-job", "dead-letter", "sweep", "cancel-job"],
    /// Ended attempts of which every item succeeded, and those without items.
    JobsSucceeded: Count ["complete-job"],
    /// Ended attempts of which some items succeeded, and some did not.
    JobsPartial: Count ["complete-job"],
    /// Ended attempts of which no item succeeded, although all were processed.
    JobsWithoutSuccess: Count ["complete-job"],
    /// Attempts that were stopped by an error and ended as `failed`. `error.code` of the job says why.
    JobsFailed: Count ["complete-job", "dead-letter", "sweep"],
    /// Attempts that their owner cancelled.
    JobsCancelled: Count ["complete-job", "dead-letter", "cancel-job"],
    /// Dispatch delay: from the creation of a job to its first chunk. Redrives, jobs with low priority and jobs paused
    /// before it are left out.
    DispatchDelay: Seconds ["process-items"],
    /// From the receipt of a chunk's message to its commit. Of a chunk that was done in parts, the last run only.
    ChunkDuration: Seconds ["process-items"],
    /// Chunks that were committed.
    ChunksCommitted: Count ["process-items", "dead-letter"],
    /// Items of committed chunks that succeeded. A redriven item counts again, as in the two metrics below.
    ItemsSucceeded: Count ["process-items", "dead-letter"],
    /// Items of committed chunks that failed.
    ItemsFailed: Count ["process-items", "dead-letter"],
    /// Items that were skipped because their job was stopped.
    ItemsSkipped: Count ["process-items", "dead-letter", "sweep", "split-job"],
    /// Tries of items that ended in a transient error: each is tried again, or its chunk is delivered again.
    ItemsTransient: Count ["process-items"],
    /// Retries of messages: messages that were given back to their queue, to be delivered again.
    MessagesReturned: Count ["split-job", "process-items", "complete-job", "dead-letter", "receive-file"],
    /// Messages that had been delivered before.
    MessagesRedelivered: Count ["split-job", "process-items", "complete-job", "dead-letter", "receive-file"],
    /// Dead letters that were recorded.
    DeadLetters: Count ["dead-letter"],
    /// Requests that a limit of their caller refused (`too_many_requests`, `too_many_uploads`, `too_many_connections`).
    RequestsLimited: Count ["upload", "create-job", "job-status", "browse-datasets", "redrive-job", "cancel-job", "live-ticket"],
    /// Requests of callers that an operator has blocked (`owner_blocked`).
    RequestsBlocked: Count ["upload", "create-job", "redrive-job", "cancel-job", "live-ticket"],
    /// Requests that Rowmill or a service of AWS failed (`internal_error`, `unavailable`).
    RequestsFailed: Count [
        "upload", "create-job", "job-status", "browse-datasets", "cancel-job", "redrive-job", "live-ticket", "web"
    ],
    /// Calls that a policy denied. Written at once, not at the end of the invocation.
    MissingPermissions: Count ["all functions"],
    /// Deleted jobs of which everything was erased.
    JobsErased: Count ["erase-job"],
    /// Jobs that the sweep claimed and looked at.
    JobsLookedAt: Count ["sweep"],
    /// Jobs without a sign of life that the sweep recovered.
    JobsRecovered: Count ["sweep"],
    /// Jobs that the sweep stopped because their deadline had passed.
    JobsOverdue: Count ["sweep"],
    /// Messages to split a job or to process a chunk that the sweep sent again.
    MessagesSentAgain: Count ["sweep"],
    /// Tallies of stopped jobs that the sweep closed without their missing chunks.
    TalliesClosed: Count ["sweep"],
    /// Jobs that the sweep could not look at. They are claimed again later.
    LooksFailed: Count ["sweep"],
    /// 1 if more jobs were due than one sweep looks at (100). If it stays above 0, lower the ceilings of active jobs.
    SweepsCapped: Count ["sweep"],
    /// Tasks that wait for a worker or for a call of their service, a value a minute. Not written without a job type with
    /// `workers` or `async`; nor are the next three.
    TasksOffered: Count ["sweep"],
    /// Tasks that workers and services hold, a value a minute.
    TasksHeld: Count ["sweep"],
    /// Tasks whose worker or service has died and that nobody has got since, a value a minute.
    TasksDead: Count ["sweep"],
    /// For how long the oldest of the waiting tasks has waited, those of dead holders among them.
    OldestTaskAge: Seconds ["sweep"],
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_name_and_a_meaning_of_its_own() {
        let names: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        let meanings: BTreeSet<_> = Metric::ALL.iter().map(|metric| metric.meaning()).collect();
        assert_eq!((names.len(), meanings.len()), (Metric::ALL.len(), Metric::ALL.len()));
        assert!(meanings.iter().all(|meaning| meaning.ends_with('.') || meaning.ends_with(").")), "{meanings:?}");
        assert!(Metric::ALL.len() <= 100, "CloudWatch reads a hundred metrics of a line");
    }
}
