//! The parameters of the template, in sections. Their descriptions are what `docs/limits.md` shows.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use rowmill_core::model::owner_priorities;
use rowmill_settings::VISIBILITY_TIMEOUTS;
use serde::Serialize;

use crate::functions;

/// Days by which objects outlive what they belong to: see the mapping.
const STORAGE_DAYS_MORE: u32 = 4;

/// A section, with a note on all of it.
#[derive(Serialize)]
pub struct Section {
    pub heading: &'static str,
    note: &'static str,
    pub parameters: Vec<Parameter>,
}

/// A parameter.
#[derive(Serialize)]
pub struct Parameter {
    pub name: &'static str,
    /// What it sets, its unit, and when to change it.
    pub about: &'static str,
    /// True if it is a number to CloudFormation. The keys of mappings are texts.
    is_number: bool,
    /// Empty: that of the setting.
    pub default: String,
    choices: &'static [&'static str],
    min: Option<u64>,
    max: Option<u64>,
    max_length: Option<usize>,
    /// A regular expression, and the text of its error.
    pattern: Option<(&'static str, &'static str)>,
}

fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter {
        name,
        about,
        is_number: false,
        default: String::new(),
        choices: &[],
        min: None,
        max: None,
        max_length: None,
        pattern: None,
    }
}

fn number(name: &'static str, bounds: impl RangeBounds<u64>, about: &'static str) -> Parameter {
    let bound = |bound: Bound<&u64>| match bound {
        Included(number) => Some(*number),
        Excluded(_) | Unbounded => None,
    };
    let (min, max) = (bound(bounds.start_bound()), bound(bounds.end_bound()));
    Parameter { is_number: true, min, max, ..text(name, about) }
}

fn choice(name: &'static str, values: &'static [&'static str], about: &'static str) -> Parameter {
    Parameter { choices: values, ..text(name, about) }
}

fn number_of(name: &'static str, values: &'static [&'static str], about: &'static str) -> Parameter {
    Parameter { is_number: true, ..choice(name, values, about) }
}

fn switch(name: &'static str, about: &'static str) -> Parameter {
    choice(name, &["true", "false"], about)
}

impl Parameter {
    /// The default of a parameter that no function reads.
    fn default(self, default: &str) -> Self {
        Self { default: default.to_owned(), ..self }
    }

    fn max_length(self, max_length: usize) -> Self {
        Self { max_length: Some(max_length), ..self }
    }

    fn pattern(self, pattern: &'static str, must: &'static str) -> Self {
        Self { pattern: Some((pattern, must)), ..self }
    }

    /// With the default of the setting, if it sets one.
    fn with_default_of(self, settings: &BTreeMap<&str, String>) -> Self {
        match settings.get(self.name) {
            Some(default) => Self { default: default.clone(), ..self },
            None => self,
        }
    }
}

/// All sections.
pub fn all() -> Vec<Section> {
    let settings = functions::all().into_iter().flat_map(functions::groups).flat_map(|group| (group.settings)());
    let settings: BTreeMap<&str, String> = settings.map(|setting| (setting.parameter, setting.default)).collect();
    let with_defaults = |section: Section| Section {
        parameters: section.parameters.into_iter().map(|parameter| parameter.with_default_of(&settings)).collect(),
        ..section
    };
    sections().into_iter().map(with_defaults).collect()
}

fn values(name: &str) -> &'static [&'static str] {
    let parameters = sections().into_iter().flat_map(|section| section.parameters);
    parameters.into_iter().find(|parameter| parameter.name == name).expect("a parameter").choices
}

/// The visibility timeout of a queue by each time limit that its reader may have.
pub fn visibilities() -> Vec<(u32, u32)> {
    let limits = ["SplitTimeoutSeconds", "ProcessTimeoutSeconds", "CompleteTimeoutSeconds", "DeadLetterTimeoutSeconds"];
    let seconds = limits.into_iter().flat_map(values).map(|limit| limit.parse().expect("a number"));
    let by_limit: BTreeMap<u32, u32> = seconds.map(|limit: u32| (limit, limit * VISIBILITY_TIMEOUTS)).collect();
    by_limit.into_iter().collect()
}

/// The days for which an object is stored, by its retention.
pub fn storage_days() -> Vec<(u32, u32)> {
    let days = ["UploadRetentionDays", "JobRetentionDays"].into_iter().flat_map(values);
    let by_days: BTreeMap<u32, u32> =
        days.map(|days| days.parse().expect("a number")).map(|days: u32| (days, days + STORAGE_DAYS_MORE)).collect();
    by_days.into_iter().collect()
}

fn sections() -> Vec<Section> {
    let section = |heading, note, parameters| Section { heading, note, parameters };
    vec![
        section(
            "Deployment",
            "",
            vec![
                choice("Architecture", &["arm64", "x86_64"], "Processor of the functions. arm64 costs a fifth less per millisecond. Change it if you can only build for x86_64.").default("arm64"),
                text("LogLevel", "Log filter of the functions, in RUST_LOG syntax. Set debug to investigate a failure.").default("info"),
                number_of("LogRetentionDays", &["1", "3", "5", "7", "14", "30", "60", "90", "180", "365"], "Days to keep the logs of the functions and of the API. Change it to meet your audit rules.").default("30"),
                number("ApiMemoryMegabytes", 128..=10_240, "Memory of each function behind the HTTP API. Lambda gives CPU in proportion. Raise it if requests are slow.").default("256"),
                number("SplitMemoryMegabytes", 128..=10_240, "Memory of split-job, which needs 64 MiB; the rest buys network and CPU. Raise it to split large files faster.").default("1024"),
                number("ProcessMemoryMegabytes", 128..=10_240, "Memory of process-items, which needs 192 MiB, or 384 MiB where many long rows fail; the rest buys CPU. Raise it by up to 600 MiB if JobTargets return long outputs.").default("1024"),
                number("CompleteMemoryMegabytes", 128..=10_240, "Memory of complete-job. Raise it if jobs take long to end.").default("256"),
                text("AlarmTopicArn", "SNS topic that receives the alarms. Empty keeps them in CloudWatch only. Set it in production."),
                number("QueueAgeAlarmSeconds", 60..=259_200, "Age of the oldest message of a queue, and delay from the creation of a job to its first chunk, above which an alarm is raised. Raise it if your jobs may wait longer; the default is half an hour.").default("1800"),
                text("KmsKeyArn", "ARN of a KMS key of yours that encrypts tables, bucket, queues, logs and environments. Empty uses keys of AWS. Set it if your rules ask for your own key; its key policy must allow the services.").pattern(r#"^(arn:[^\s]+:key/[^\s]+)?$"#, "must be the ARN of a key, or empty."),
                text("AccessLogBucket", "Bucket that receives the access logs of the bucket, under the name of the stack. Empty writes none. Set it if your rules ask for them."),
            ],
        ),
        section(
            "HTTP API",
            "",
            vec![
                switch("WithHttpApi", "Whether the stack has an HTTP API. Set false on an emulator without one; then invoke the functions directly.").default("true"),
                text("JwtIssuer", "Issuer URL of accepted tokens. Empty needs AllowOpenApi. Set it in production."),
                text("JwtAudience", "Audience of accepted tokens. Required with JwtIssuer."),
                switch("AllowOpenApi", "Whether an HTTP API without JwtIssuer may be deployed. Then anyone who knows its URL can read and change everything, as the one owner local. Set true for a trial only.").default("false"),
                text("ReadScope", "Scope that a token needs for GET requests. Empty needs none. Set it if one issuer serves several applications.").pattern(r#"^[!#-\[\]-~]{0,128}$"#, "must be one scope, or empty."),
                text("WriteScope", "Scope that a token needs for requests that change anything. Empty needs none. Set it to give some clients no more than a view.").pattern(r#"^[!#-\[\]-~]{0,128}$"#, "must be one scope, or empty."),
                text("PageClientId", "Public client that the issuer knows the page as. Empty lets nobody sign in on the page. Set it with JwtIssuer, after you registered the page's address as a redirect.").pattern("^[!-~]{0,256}$", "must be the id of a client, or empty."),
                text("PageTokenOrigin", "Web origin of the issuer's token endpoint, which the page may call. Empty is that of JwtIssuer. Set it if the endpoint has another host, as with Cognito.").pattern(r#"^(https?://[^\s/;,']+)?$"#, "must be a scheme and a host without a path, or empty."),
                text("CorsAllowedOrigin", "Web origin beside that of the API itself whose pages may call the API and PUT to presigned links. Empty allows none. Set it for a browser client, and for the page behind a gateway or a domain of your own."),
                number("ApiRequestsPerSecond", 1.., "Sustained requests per second that the API accepts. Raise it if clients get 429 without a problem code.").default("500"),
                number("ApiBurst", 1.., "Requests that the API accepts at once. Raise it if clients get 429 without a problem code in bursts.").default("1000"),
                text("ApiReservedConcurrency", "Concurrent executions that each function behind the HTTP API has for itself, and may have at most. Empty reserves none. Set it if other functions of the account use up its concurrency.").pattern("^([1-9][0-9]{0,4})?$", "must be a number above 0, or empty."),
                number("PostsPerMinute", 1..=1_000_000, "POST requests that one caller may send to one route in a minute; the next is refused with 429. A caller is an owner, or an address if the API is open. Raise it for busy callers."),
                number("PostsPerHour", 1..=1_000_000, "POST requests that one caller may send to one route in an hour; the next is refused with 429. Raise it for busy callers."),
            ],
        ),
        section(
            "Live",
            "",
            vec![
                text("LiveEndpoint", "Address below which an emulator serves WebSocket APIs, such as ws://127.0.0.1:4566/_aws/execute-api. Empty uses the address of AWS. The local stack sets it.").pattern(r#"^(wss?://[^\s]+[^/\s])?$"#, "must begin with ws:// or wss:// and not end with /, or be empty."),
                switch("LiveAccessLog", "Whether API Gateway writes an access log of the WebSocket API. Set true to see who connects; the account needs a CloudWatch role for API Gateway in this region first.").default("false"),
                number("OwnerLiveConnections", 1..=10_000, "Live connections that one owner may have; a ticket for another, or the connection itself, is refused with 429. Raise it if many people share an owner, as they do with an open API."),
                number("ConnectionSubscriptions", 1..=1000, "Subscriptions that one live connection may have; another is refused with too_many_subscriptions. Raise it for pages that watch many single jobs."),
            ],
        ),
        section(
            "Files",
            "",
            vec![
                number("UploadMaxBytes", 1.., "Largest uploaded or dropped file, in bytes. Lower it to bound what one client can cost."),
                choice("UploadRetentionDays", &["1", "3", "7", "14", "30", "60", "90"], "Days for which an upload can start jobs. Its bytes stay longer (mapping StorageDays). Raise it to start jobs on old uploads."),
                number("PresignExpirySeconds", 60..=43_200, "Seconds for which a presigned link can be used, to upload or to read results. Raise it for slow clients. A client can have the links of an upload signed again."),
                number("OwnerUploadsOutstanding", 1..=1000, "Uploads that one owner may have announced and not completed; the next is refused with 429. An upload counts for a day, and again if its links are signed again after that. Raise it for owners who announce many files before they send them."),
                number("OwnerBytesOutstanding", 1.., "Announced bytes that one owner may have outstanding together. It also bounds the size of an announced file. Raise it with UploadMaxBytes."),
                number("ExpandedMaxBytes", 1_048_576.., "Bytes of text that may come out of a packed upload (gzip, zstd, workbook, Parquet). Raise it for larger packed files."),
                number("ExpansionRatioMax", 2..=100_000, "Bytes of text that may come out of each byte of a packed upload, checked above 64 MiB of text. Raise it if good files are refused as bombs."),
                number("SheetCellsMax", 1.., "Cells that a workbook's sheet may have. Raise it for larger sheets, together with SplitTimeoutSeconds."),
                number("CorrectedMaxBytes", 1..=20_000_000, "Largest corrected file of a redrive, in bytes. redrive-job holds it in memory; raise ApiMemoryMegabytes with it."),
            ],
        ),
        section(
            "Inbox and events",
            "",
            vec![
                text("InboxOwner", "Owner of a file dropped under inbox/ that names none. Change it if tokens have other owners.").pattern("[^#]{1,256}", ""),
                number("InboxMaximumConcurrency", 2..=1000, "Dropped files that are received at the same time. Raise it if many files are dropped at once.").default("2"),
                text("EventBusName", "EventBridge bus that receives an event when a job starts and ends. It must exist. Change it to use a bus of your own.").pattern("[A-Za-z0-9._/-]{1,256}", "").default("default"),
            ],
        ),
        section(
            "Jobs",
            "",
            vec![
                number("OwnerJobCeiling", 1.., "Active jobs that one owner may have; the next is refused with 429. Raise it for owners with many small files."),
                number("TypeJobCeiling", 1.., "Active jobs that one job type may have; the next is refused with 503. Lower it to protect what a job type calls."),
                text("OwnerPriorities", "Highest priority that each owner may give a job, as JSON from owner to high, normal or low; * stands for all others. Name the owners whose jobs are urgent, and those whose jobs may wait. It shares the 4 KB that Lambda allows for all variables of a function.").max_length(owner_priorities::MAX_CHARS),
                text("JobTypes", r#"Limits that job types have of their own, as JSON: {"import": {"activeJobs": 20}, "render": {"activeJobs": 5, "concurrency": 1}}. activeJobs replaces TypeJobCeiling for the type; concurrency is how many chunks of the type run at once in the whole stack; itemsAtOnce is how many items of a chunk are processed at once, at most. Empty for none. It shares the 4 KB that Lambda allows for all variables of a function."#).max_length(1000),
                number("SystemJobCeiling", 1.., "Active jobs of the whole stack; the next is refused with 503. Raise it together with the concurrency."),
                number("DefaultDeadlineSeconds", 1..=259_200, "Seconds after which a job is stopped if its request names no deadline. Raise it if good jobs take longer."),
                number("MaximumDeadlineSeconds", 1..=259_200, "Longest deadline that a request may name, in seconds. Three days at most, on which the mapping StorageDays counts. Lower it to bound the cost of a job."),
                choice("JobRetentionDays", &["1", "3", "7", "14", "30", "60", "90"], "Days for which an ended job and its results can be read. Raise it if clients fetch results late."),
            ],
        ),
        section(
            "Chunks",
            "",
            vec![
                number("ChunkMaxItems", 1..=10_000, "Most items in a chunk. Lower it if items are slow, so that a chunk fits into ProcessTimeoutSeconds."),
                number("FastChunkFactor", 1..=40, "How many times ChunkMaxItems a chunk may have if items take microseconds (validate) and every worker has eight such chunks; up to 4 times as many bytes as ChunkMaxBytes, at most 4 MiB. Larger chunks need fewer requests. 1 keeps both."),
                number("ChunkMaxBytes", 1024..=16_777_216, "Bytes after which a chunk is closed. Raise it for long rows. process-items holds up to ten chunks in memory."),
                number("RecordMaxBytes", 1024..=16_777_216, "Longest record that is an item, in bytes; a longer one is a failed item (row_too_long). Raise it for longer rows."),
                number("ChunkOutputMaxBytes", 1024..=8_388_608, "Bytes that the outputs of a chunk's items may take together; an item beyond that fails (output_too_large). Raise it, or lower ChunkMaxItems, for long outputs."),
            ],
        ),
        section(
            "Time limits and concurrency",
            "The time limit of a function that reads a queue is one of a few values, because the visibility timeout of the queue follows from it by the mapping SixTimes. Values below a minute are for tests, which then soon get back what a killed function held. A short limit needs a short margin: see the rules below.",
            vec![
                choice("SplitTimeoutSeconds", &["5", "10", "60", "90", "120", "300", "600", "900"], "Time limit of split-job, in seconds. A longer file continues in another invocation. Raise it if jobs stop with split_timeout."),
                number("SplitMarginSeconds", 1..=50, "Seconds before its time limit at which split-job hands over to its next invocation. Change it only with SplitTimeoutSeconds."),
                number("SplitReadsInFlight", 1..=32, "Ranges of a file, of 2 MiB each, that split-job reads at once. Each takes 2 MiB of its memory. Raise it together with SplitMemoryMegabytes if its network could carry more."),
                choice("ProcessTimeoutSeconds", &["3", "5", "10", "60", "90", "120"], "Time limit of process-items, in seconds. A longer chunk continues in another invocation. Raise it for slow items."),
                number("ProcessMarginSeconds", 1..=50, "Seconds before its time limit at which process-items begins no further item and hands over. No item should take longer; raise it for slow items."),
                number("ItemTimeoutSeconds", 1..=30, "Seconds for which the processor of an item may hold its thread without an await. Longer, and the item's job stops with item_timeout. Raise it for schemas or job types that compute for long."),
                choice("CompleteTimeoutSeconds", &["10", "60", "90", "120"], "Time limit of complete-job, in seconds. Longer results continue in another invocation. Raise it for very large results."),
                choice("DeadLetterTimeoutSeconds", &["5", "10", "60", "90", "120"], "Time limit of dead-letter, in seconds. Raise it if its log shows timeouts."),
                // Lambda accepts no MaximumConcurrency below 2.
                number("JobsMaximumConcurrency", 2..=1000, "Files that are split at the same time; of jobs with high priority as many besides. Raise it if jobs stay waiting.").default("10"),
                number("ItemsMaximumConcurrency", 2..=1000, "Workers that process chunks at the same time. Jobs with high priority have as many workers of their own, those with low priority have ItemsLowMaximumConcurrency; all of them may call the same target. Raise it for throughput; lower both to protect what items call."),
                number("ItemsLowMaximumConcurrency", 2..=1000, "Workers that process chunks of jobs with low priority, beside ItemsMaximumConcurrency. Raise it if these jobs miss their deadlines; lower it to leave more to others."),
                number("ChunksPerInvocation", 1..=10, "Chunks that one worker processes side by side. Lower it to 1 if items need much processor time or memory. Chunks of job types with a concurrency in JobTypes always have a worker of their own."),
                number("LanesMaximumConcurrency", 2..=1000, "Workers that process chunks of job types with a concurrency in JobTypes, beside ItemsMaximumConcurrency. Raise it above the sum of these concurrencies.").default("50"),
            ],
        ),
        section(
            "Custom job types",
            "",
            vec![
                text("JobTargets", r#"Job types that call a target, as JSON: {"geocode": {"invoke": "arn:aws:lambda:..."}, "notify": {"webhook": "https://..."}}. Empty for none. It shares the 4 KB that Lambda allows for all variables of process-items."#).max_length(3000),
                text("WebhookSecretArn", "ARN of the secret in Secrets Manager, of this region, that signs the calls of webhooks; 16 characters or more. If it is empty and JobTargets is not, the stack makes one, which costs $0.40 a month.").pattern(r#"^(arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[^\s*?]+)?$"#, "must be the ARN of a secret, or empty."),
                text("InvokeTargetArns", "ARNs of the Lambda functions in JobTargets, written exactly as there. Commas between them, no spaces. process-items may invoke them. Empty for none.").pattern(r#"^(arn:[^,\s]+(,arn:[^,\s]+)*)?$"#, "must be ARNs separated by commas, or empty."),
            ],
        ),
        section(
            "Breakers of job types",
            "",
            vec![
                number("BreakerFailures", 0..=10_000, "Failed runs of a job type within BreakerWindowSeconds after which its target counts as down and its jobs are paused, if they are at least half of the runs. A run failed if transient errors let it finish no item. 0 for no breakers. Raise it if a target with short outages should not pause jobs."),
                number("BreakerWindowSeconds", 1..=86_400, "Seconds in which failed runs count together. A failed chunk comes again after six times ProcessTimeoutSeconds. Raise it to see the outages of job types with few chunks, lower it to forget short ones sooner."),
                number("BreakerProbeSeconds", 1..=3600, "Seconds from the first opening of a breaker until one of its jobs is tried again. Doubles with each failed probe, up to 16 times as long. Ten times of it must be above ProcessTimeoutSeconds and StopGraceSeconds together. Lower it to notice sooner that a target is back, raise it to call a broken target less."),
            ],
        ),
        section(
            "Recovery",
            "",
            vec![
                number("StaleSeconds", 5..=86_400, "Seconds without a sign of life after which the sweep recovers a job. It must be above every time limit. Lower it together with the time limits."),
                number("StopGraceSeconds", 5..=3600, "Seconds after a stop or a pause for which running chunks may still commit; then open chunks of a stopped job are closed as skipped, and those of a resumed one are sent again. It must be more than 20 seconds above ProcessTimeoutSeconds. Lower it together with that."),
                number("LongestPauseSeconds", 60..=259_200, "Longest time for which an owner may pause a job, in seconds; then the job is stopped with `paused_too_long`. The job's deadline goes on meanwhile and is three days at most. Lower it to end forgotten jobs sooner."),
                number("SweepBackoffMaxSeconds", 1..=86_400, "Longest wait between two recoveries of a job, in seconds. It doubles with each recovery that brings no sign of life. It must be above StaleSeconds. Lower it to retry long outages sooner."),
            ],
        ),
    ]
}
