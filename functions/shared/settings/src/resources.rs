//! The tables, the bucket, the queues, the event bus and the secret of the stack, as the template names them.

use rowmill_core::wiring::Missing;

/// A resource of the stack. It has no default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resource {
    /// The environment variable that names it.
    pub variable: &'static str,
    pub expected: &'static str,
}

impl Resource {
    /// The resource's name, or its URL.
    pub fn read(self) -> Result<String, Missing> {
        let value = std::env::var(self.variable).ok().filter(|value| !value.trim().is_empty());
        value.ok_or(Missing { variable: self.variable, expected: self.expected })
    }
}

macro_rules! resources {
    ($($(#[$doc:meta])* $name:ident = $variable:literal, $expected:literal;)+) => {
        $($(#[$doc])* pub const $name: Resource = Resource { variable: $variable, expected: $expected };)+
    };
}

resources! {
    /// All rows of jobs.
    JOBS_TABLE = "ROWMILL_JOBS_TABLE", "the name of the jobs table";
    /// Counts of active jobs. Only functions that begin or end attempts use it.
    ADMISSION_TABLE = "ROWMILL_ADMISSION_TABLE", "the name of the admission table";
    UPLOADS_TABLE = "ROWMILL_UPLOADS_TABLE", "the name of the uploads table";
    /// Imported records.
    RECORDS_TABLE = "ROWMILL_RECORDS_TABLE", "the name of the records table";
    /// Tickets, live connections and what they watch.
    CONNECTIONS_TABLE = "ROWMILL_CONNECTIONS_TABLE", "the name of the connections table";
    /// Where clients open live connections. Empty in a stack without an HTTP API.
    LIVE_URL = "ROWMILL_LIVE_URL", "the address of the WebSocket API";
    /// Uploads and results.
    BUCKET = "ROWMILL_BUCKET", "the name of the bucket";
    /// Jobs to split.
    JOBS_QUEUE = "ROWMILL_JOBS_QUEUE_URL", "the URL of the jobs queue";
    /// Jobs with high priority to split.
    JOBS_HIGH_QUEUE = "ROWMILL_JOBS_HIGH_QUEUE_URL", "the URL of the jobs-high queue";
    /// Chunks to process.
    ITEMS_QUEUE = "ROWMILL_ITEMS_QUEUE_URL", "the URL of the items queue";
    /// Chunks of jobs with high priority.
    ITEMS_HIGH_QUEUE = "ROWMILL_ITEMS_HIGH_QUEUE_URL", "the URL of the items-high queue";
    /// Chunks of jobs with low priority.
    ITEMS_LOW_QUEUE = "ROWMILL_ITEMS_LOW_QUEUE_URL", "the URL of the items-low queue";
    /// Chunks to process one item at a time.
    ISOLATE_QUEUE = "ROWMILL_ISOLATE_QUEUE_URL", "the URL of the isolate queue";
    /// Chunks of the job types that have lanes.
    LANES_QUEUE = "ROWMILL_LANES_QUEUE_URL", "the URL of the lanes queue";
    /// Attempts to end.
    COMPLETIONS_QUEUE = "ROWMILL_COMPLETIONS_QUEUE_URL", "the URL of the completions queue";
    /// Files dropped into the bucket.
    INBOX_QUEUE = "ROWMILL_INBOX_QUEUE_URL", "the URL of the inbox queue";
    /// The bus that receives the events of jobs.
    EVENT_BUS = "ROWMILL_EVENT_BUS_NAME", "the name of the event bus";
    /// The secret that signs the calls of webhooks, in Secrets Manager.
    WEBHOOK_SECRET = "ROWMILL_WEBHOOK_SECRET_ARN", "the ARN of the secret that signs the calls of webhooks";
}
