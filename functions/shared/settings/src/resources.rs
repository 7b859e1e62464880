//! The tables, the bucket, the queues, the event bus and the secret of the stack.

use rowmill_core::wiring::Missing;

use crate::declaration::Advice;

/// A resource of the stack. It has no default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Logical id in the template, or the parameter that names it.
    pub id: &'static str,
    /// The environment variable that names it to a function.
    pub variable: &'static str,
    /// The value of the variable.
    pub expected: &'static str,
    /// The declaration of a queue.
    pub queue: Option<&'static Queue>,
}

/// A queue, with everything that belongs to it: its dead-letter queue, its redrive policy and its alarm. Its visibility
/// timeout follows from the function that reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Names the queue, its mapping and its alarm: `Jobs`.
    pub stem: &'static str,
    /// A comment in the template.
    pub about: &'static str,
    /// Deliveries before a message is a dead letter, and why.
    pub deliveries: (u32, &'static str),
    /// The stem of the queue whose dead-letter queue it shares; its own stem if it shares none.
    pub dead_letters: &'static str,
    /// True if each message group is a lane, in which one message at a time is delivered.
    pub lanes: bool,
    pub late: Late,
}

/// The alarm on the oldest message of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Periods of five minutes for which the oldest message is too old.
    pub periods: u32,
    /// Description of the alarm.
    pub says: &'static str,
    /// Meaning in the runbook.
    pub means: &'static str,
    pub advice: Advice,
}

impl Resource {
    const fn of(id: &'static str, variable: &'static str, expected: &'static str) -> Self {
        Self { id, variable, expected, queue: None }
    }

    /// What the name of such a table ends with if it is attached: `jobs`. None of other resources.
    pub fn attached_end(self) -> Option<String> {
        let stem = self.id.strip_suffix("Table").filter(|_| ATTACHED_TABLES.contains(&self))?;
        Some(stem.to_ascii_lowercase())
    }

    /// The resource's name, or its URL.
    pub fn read(self) -> Result<String, Missing> {
        let value = std::env::var(self.variable).ok().filter(|value| !value.trim().is_empty());
        value.ok_or(Missing { variable: self.variable, expected: self.expected })
    }
}

/// All rows of jobs.
pub const JOBS_TABLE: Resource = Resource::of("JobsTable", "ROWMILL_JOBS_TABLE", "the name of the jobs table");
/// Counts of active jobs, breakers, and what bounds a caller.
pub const ADMISSION_TABLE: Resource =
    Resource::of("AdmissionTable", "ROWMILL_ADMISSION_TABLE", "the name of the admission table");
pub const UPLOADS_TABLE: Resource =
    Resource::of("UploadsTable", "ROWMILL_UPLOADS_TABLE", "the name of the uploads table");
/// Imported records.
pub const RECORDS_TABLE: Resource =
    Resource::of("RecordsTable", "ROWMILL_RECORDS_TABLE", "the name of the records table");
/// Tickets, live connections and what they watch.
pub const CONNECTIONS_TABLE: Resource =
    Resource::of("ConnectionsTable", "ROWMILL_CONNECTIONS_TABLE", "the name of the connections table");
/// Chunks that wait for workers outside of the stack.
pub const TASKS_TABLE: Resource = Resource::of("TasksTable", "ROWMILL_TASKS_TABLE", "the name of the tasks table");
/// The tables that a backup has, and that a stack can attach instead of making its own. The sweep makes good what the
/// others lose.
pub const ATTACHED_TABLES: [Resource; 4] = [JOBS_TABLE, UPLOADS_TABLE, ADMISSION_TABLE, RECORDS_TABLE];

/// Uploads and results.
pub const BUCKET: Resource = Resource::of("Bucket", "ROWMILL_BUCKET", "the name of the bucket");
/// Where clients open live connections. Empty in a stack without an HTTP API.
pub const LIVE_URL: Resource = Resource::of("LiveApi", "ROWMILL_LIVE_URL", "the address of the WebSocket API");
/// The bus that receives the events of jobs.
pub const EVENT_BUS: Resource = Resource::of("EventBusName", "ROWMILL_EVENT_BUS_NAME", "the name of the event bus");
/// The secret that signs the calls of webhooks, in Secrets Manager.
pub const WEBHOOK_SECRET: Resource = Resource::of(
    "WebhookSecret",
    "ROWMILL_WEBHOOK_SECRET_ARN",
    "the ARN of the secret that signs the calls of webhooks",
);

/// A queue by its stem, its words in capitals and small letters, and its declaration.
macro_rules! queues {
    ($($name:ident = $stem:literal, $words:literal, $text:literal, { $($field:tt)+ })+) => {
        $(pub const $name: Resource = Resource {
            id: concat!($stem, "Queue"),
            variable: concat!("ROWMILL_", $words, "_QUEUE_URL"),
            expected: concat!("the URL of the ", $text, " queue"),
            queue: Some(&Queue { stem: $stem, $($field)+ ..Queue::OF_CHUNKS }),
        };)+

        /// All queues, in the order of the flow.
        pub const QUEUES: &[Resource] = &[$($name),+];
    };
}

impl Queue {
    const OF_CHUNKS: Self = Self {
        stem: "",
        about: "",
        deliveries: (5, ""),
        dead_letters: "Items",
        lanes: false,
        late: Late { periods: 1, says: "", means: "", advice: Advice { meanwhile: CHUNKS_WAIT, todo: "" } },
    };
}

const CHUNKS_WAIT: &str = "chunks wait and are processed in turn";

const fn late(says: &'static str, means: &'static str, meanwhile: &'static str, todo: &'static str) -> Late {
    Late { periods: 1, says, means, advice: Advice { meanwhile, todo } }
}

queues! {
    FETCHES_QUEUE = "Fetches", "FETCHES", "fetches", {
        about: "Files to fetch from the external servers.",
        deliveries: (20, "More than fetch-file tries itself, which then gives the file up."),
        dead_letters: "Fetches",
        late: late(
            "Files to fetch have waited longer than QueueAgeAlarmSeconds. fetch-file is too slow for the work, or \
             does not run.",
            "the same for the fetches queue",
            "files wait and are fetched in turn",
            "the log of `fetch-file`; many big files, or a slow server: five are fetched at a time",
        ),
    }
    JOBS_QUEUE = "Jobs", "JOBS", "jobs", {
        about: "Jobs to split, of normal and low priority.",
        deliveries: (3, "Fewer than for the other queues: split-job has the longest time limit, and all deliveries \
                         together must fit twice into the deadline of a job."),
        dead_letters: "Jobs",
        late: late(
            "Messages of jobs have waited longer than QueueAgeAlarmSeconds. split-job is too slow for the work, or \
             does not run.",
            "the oldest message of the jobs queue is older than `QueueAgeAlarmSeconds` (half an hour)",
            "jobs wait and are taken up in turn",
            "is `split-job` running and not throttled? raise `JobsMaximumConcurrency`",
        ),
    }
    JOBS_HIGH_QUEUE = "JobsHigh", "JOBS_HIGH", "jobs-high", {
        about: "Jobs with high priority to split.",
        deliveries: (3, ""),
        dead_letters: "Jobs",
        late: late(
            "Messages of jobs with high priority have waited longer than QueueAgeAlarmSeconds. split-job is too slow \
             for the work, or does not run.",
            "the same for the jobs-high queue",
            "jobs with high priority wait and are taken up in turn",
            "as for `JobsBehind`; which owner creates so many of them? `OwnerPriorities` says [who may](#priorities)",
        ),
    }
    STARTS_QUEUE = "Starts", "STARTS", "starts", {
        about: "Jobs that wait for a file or for another job.",
        deliveries: (5, ""),
        dead_letters: "Jobs",
        late: late(
            "Messages of jobs that wait have waited longer than QueueAgeAlarmSeconds. start-job is too slow for the \
             work, or does not run.",
            "the same for the starts queue",
            "jobs that waited start late",
            "is `start-job` running and not throttled?",
        ),
    }
    ITEMS_QUEUE = "Items", "ITEMS", "items", {
        about: "Chunks to process.",
        late: late(
            "Chunks have waited longer than QueueAgeAlarmSeconds. process-items is too slow for the work, or does not \
             run.",
            "the same for the items queue",
            CHUNKS_WAIT,
            "is a big job running? then raise `QueueAgeAlarmSeconds`; else `ItemsMaximumConcurrency`, or look for \
             `chunk not committed` in the log of `process-items`",
        ),
    }
    ITEMS_HIGH_QUEUE = "ItemsHigh", "ITEMS_HIGH", "items-high", {
        about: "Chunks of jobs with high priority.",
        late: late(
            "Chunks of jobs with high priority have waited longer than QueueAgeAlarmSeconds. More work has high \
             priority than its workers can do, or process-items does not run.",
            "the same for the items-high queue",
            "chunks of jobs with high priority wait and are processed in turn",
            "as for `ItemsBehind`; if much of the work has high priority, none has: [allow it to fewer \
             owners](#priorities)",
        ),
    }
    ITEMS_LOW_QUEUE = "ItemsLow", "ITEMS_LOW", "items-low", {
        about: "Chunks of jobs with low priority. They have few workers and wait by design: the alarm is raised only \
                if that lasts for two hours, which is before the default deadline of a job whose chunks have waited \
                all the time.",
        late: Late {
            periods: 24,
            ..late(
                "For two hours chunks of jobs with low priority have waited longer than QueueAgeAlarmSeconds. Their \
                 workers are too few for the work, or process-items does not run.",
                "for two hours without a break the oldest message of the items-low queue was older than \
                 `QueueAgeAlarmSeconds`. Low priority has few workers, so a shorter wait is no fault. With the \
                 defaults the alarm comes after two and a half hours of waiting, before a deadline of four hours is \
                 over",
                "chunks are processed in turn; a job whose deadline passes is stopped",
                "is `process-items` throttled? look for `chunk not committed` in its log; else raise \
                 `ItemsLowMaximumConcurrency`, or give such jobs a longer `deadlineSeconds`",
            )
        },
    }
    ISOLATE_QUEUE = "Isolate", "ISOLATE", "isolate", {
        about: "Chunks whose message became a dead letter. They are processed item by item.",
        late: late(
            "Isolated chunks have waited longer than QueueAgeAlarmSeconds. process-items is too slow for the work, or \
             does not run.",
            "the same as `ItemsBehind` for the isolate queue",
            "isolated chunks wait and are processed in turn",
            "the log of `process-items`: which job's items kill or stall it? cancel that job",
        ),
    }
    LANES_QUEUE = "Lanes", "LANES", "lanes", {
        about: "Chunks of the job types that have a concurrency in JobTypes. Each of their lanes is a message group, \
                of which one message is in flight at a time. A message that is sent again must not be taken for the \
                same: each has a name of its own.",
        dead_letters: "Lanes",
        lanes: true,
        late: late(
            "Chunks have waited longer on a lane than QueueAgeAlarmSeconds. Their job type gets more work than its \
             concurrency allows, or a chunk holds its lane.",
            "the same for the lanes queue",
            "chunks wait on their lanes and are processed in turn",
            "which type gets more work than its `concurrency` allows? raise it in `JobTypes`, and \
             `LanesMaximumConcurrency`; or look for `chunk not committed` in the log of `process-items`: such a \
             chunk holds its lane",
        ),
    }
    COMPLETIONS_QUEUE = "Completions", "COMPLETIONS", "completions", {
        about: "Attempts of jobs to end.",
        dead_letters: "Completions",
        late: late(
            "Messages of jobs that are to be ended have waited longer than QueueAgeAlarmSeconds. complete-job is too \
             slow for the work, or does not run.",
            "the same for the completions queue",
            "jobs whose items are all processed wait for their end",
            "the log of `complete-job`; is it throttled?",
        ),
    }
    INBOX_QUEUE = "Inbox", "INBOX", "inbox", {
        about: "The bucket's notifications of files dropped under inbox/.",
        deliveries: (1000, "The most that SQS allows. The delays grow to a quarter of an hour, so this lasts longer \
                            than a week at a ceiling or in an outage."),
        dead_letters: "Inbox",
        late: late(
            "Dropped files have waited longer than QueueAgeAlarmSeconds. receive-file does not receive their \
             messages.",
            "the same for the inbox queue: `receive-file` does not receive the messages of dropped files",
            "messages are kept for 14 days",
            "the log of `receive-file`",
        ),
    }
}

/// Stream positions of changes that could not be announced for almost a day.
pub const ANNOUNCEMENTS_GIVEN_UP: Resource = Resource::of("AnnouncementsDeadLetterQueue", "", "");
