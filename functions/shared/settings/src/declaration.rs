//! Declarations: what a function is, and what it needs, as data.
//!
//! Each function declares itself in its `declaration.rs`. `infra/template` writes from these `template.yaml` (the
//! function, its log, its role, its environment, its triggers and its alarms) and the tables in `docs/`. A function can
//! read only what it declares: see `rowmill_aws::start`.

use crate::{BUCKET, Resource, Setting};

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Its package.
    pub name: &'static str,
    /// A comment in the template.
    pub purpose: &'static str,
    pub triggers: &'static [Trigger],
    /// Seconds after which Lambda kills an invocation.
    pub timeout: Figure,
    pub memory_megabytes: Figure,
    /// The settings that it reads, without those that every function behind the HTTP API reads.
    pub settings: &'static [Group],
    pub uses: &'static [Use],
    /// Why its messages may invoke it again and again; empty if they do not. Lambda stops a loop of messages after
    /// about 16 invocations, unless it is allowed.
    pub loops: &'static str,
    /// Alarm on its errors.
    pub errors: Errors,
}

impl Function {
    /// What functions have in common: the time limit of a request, no settings and nothing that they use.
    pub const DEFAULT: Self = Self {
        name: "",
        purpose: "",
        triggers: &[],
        // HTTP APIs give up after 30 s.
        timeout: Figure::Is(29),
        memory_megabytes: Figure::Is(256),
        settings: &[],
        uses: &[],
        loops: "",
        errors: Errors::Share(Advice { meanwhile: "clients get an error and try again", todo: "its log" }),
    };

    /// True if it reads this group of settings.
    pub fn declares(&self, group: &str) -> bool {
        self.settings.iter().any(|declared| declared.name == group)
    }

    pub fn serves_http(&self) -> bool {
        self.triggers.iter().any(|trigger| matches!(trigger, Trigger::Http))
    }

    pub fn serves_web_socket(&self) -> bool {
        self.triggers.iter().any(|trigger| matches!(trigger, Trigger::WebSocket(_)))
    }

    /// The streams that invoke it.
    pub fn streams(&self) -> impl Iterator<Item = &'static Stream> {
        self.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Stream(stream) => Some(*stream),
            _ => None,
        })
    }
}

/// A group of settings, as data. See [`SettingsGroup::GROUP`](crate::SettingsGroup::GROUP).
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub name: &'static str,
    pub settings: fn() -> Vec<Setting>,
}

/// A number in the template.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    Is(u32),
    /// The value of this parameter.
    Set(&'static str),
}

/// The event that invokes a function.
#[derive(Clone, Copy, Debug)]
pub enum Trigger {
    /// The routes of the HTTP API that name the function, by the table of routes.
    Http,
    /// These routes of the WebSocket API, each with the reason why it needs no authorizer.
    WebSocket(&'static [(&'static str, &'static str, &'static str)]),
    Queue {
        queue: Resource,
        /// Messages of an invocation.
        batch: Figure,
        /// Invocations at once.
        workers: Figure,
        note: &'static str,
    },
    /// The dead letters of these queues.
    DeadLetters(&'static [Resource]),
    Stream(&'static Stream),
    /// A rate of EventBridge.
    Schedule(&'static str),
}

impl Trigger {
    pub const fn queue(queue: Resource, batch: Figure, workers: Figure) -> Self {
        Self::Queue { queue, batch, workers, note: "" }
    }

    /// One message in an invocation, for this reason.
    pub const fn single(queue: Resource, workers: Figure, note: &'static str) -> Self {
        Self::Queue { queue, batch: Figure::Is(1), workers, note }
    }
}

/// The stream of a table as a trigger.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Names the mapping: `Announcements`.
    pub name: &'static str,
    pub table: Resource,
    pub note: &'static str,
    /// `TRIM_HORIZON` or `LATEST`: where a new mapping begins.
    pub from: &'static str,
    /// Changes of an invocation.
    pub batch: u32,
    /// Seconds for which a batch may wait for further changes.
    pub window: u32,
    /// Age in seconds at which a change is given up.
    pub age_max: u32,
    /// True if the function says from which change of a batch to read again.
    pub partial: bool,
    /// The queue that receives the positions of what was given up, by its stem.
    pub given_up: Option<Resource>,
    /// Patterns of EventBridge: the other changes invoke nothing.
    pub filters: &'static [&'static str],
    /// Age in seconds of the oldest change at which an alarm is raised.
    pub late: u32,
    pub says: &'static str,
    pub means: &'static str,
    pub advice: Advice,
}

/// The ARNs of the objects in the buckets of `InputBuckets`. The delimiter of a join must be a text.
const INPUT_OBJECTS: &str =
    r#"!Split [",", !Sub ["${Buckets}/*", {Buckets: !Join ["/*,", !Split [",", !Ref InputBuckets]]}]]"#;

/// Those of the objects in the buckets of `OutputBuckets`.
const OUTPUT_OBJECTS: &str =
    r#"!Split [",", !Sub ["${Buckets}/*", {Buckets: !Join ["/*,", !Split [",", !Ref OutputBuckets]]}]]"#;

/// The ARNs of these buckets.
pub const INPUT_BUCKETS: &str = r#"!Split [",", !Ref InputBuckets]"#;

/// A right of a function: a statement of its role. Variables name the resources to the function.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Name of the statement.
    pub sid: &'static str,
    /// None if the function only has to know the names.
    pub actions: &'static [&'static str],
    pub resources: &'static [Resource],
    /// Parts of the resource, if not the whole of it: an index of a table, objects of the bucket.
    pub parts: &'static [&'static str],
    /// What else it is on: a value in YAML, and how documents name it.
    pub value: Option<(&'static str, &'static str)>,
    /// The names of objects that it may list, as a pattern; empty if it is no right to list.
    pub listed: &'static str,
    /// The condition of the template without which there is no such statement.
    pub condition: &'static str,
    /// A comment in the template.
    pub why: &'static str,
    /// What no test uses in every run: action, resource, and what needs it.
    pub unseen: &'static [(&'static str, &'static str, &'static str)],
}

impl Use {
    pub const fn of(sid: &'static str, actions: &'static [&'static str], resources: &'static [Resource]) -> Self {
        Self { sid, actions, resources, parts: &[], value: None, listed: "", condition: "", why: "", unseen: &[] }
    }

    /// The function knows the names of these resources, and needs no right.
    pub const fn names(resources: &'static [Resource]) -> Self {
        Self::of("", &[], resources)
    }

    pub const fn send(queues: &'static [Resource]) -> Self {
        Self::of("Send", &["sqs:SendMessage"], queues)
    }

    /// Of a value in YAML, and how documents name it.
    pub const fn on(
        sid: &'static str,
        actions: &'static [&'static str],
        yaml: &'static str,
        text: &'static str,
    ) -> Self {
        Self { value: Some((yaml, text)), ..Self::of(sid, actions, &[]) }
    }

    /// Reads uploads and dropped files.
    pub const FILES: Self = Self::of("Files", &["s3:GetObject"], &[BUCKET]).parts(&["/uploads/*", "/inbox/*"]);

    /// Reads the files of jobs in external buckets.
    pub const INPUTS: Self = Self::on("Inputs", &["s3:GetObject"], INPUT_OBJECTS, "InputBuckets/*")
        .only_if("HasInputBuckets")
        .why("Files of jobs that lie in external buckets.");

    /// Stores copies of results in external buckets.
    pub const OUTPUTS: Self =
        Self::on("Outputs", &["s3:PutObject", "s3:ListMultipartUploadParts"], OUTPUT_OBJECTS, "OutputBuckets/*")
            .only_if("HasOutputBuckets")
            .why("Copies of results. A long file is stored in parts, of which those are listed that are there.");

    /// Reads and writes results, and what lies beside them.
    pub const RESULTS: Self = Self::of("Results", &["s3:GetObject", "s3:PutObject"], &[BUCKET]).parts(&["/results/*"]);

    pub const MISSING_OBJECTS: Self = Self::of("MissingObjects", &["s3:ListBucket"], &[BUCKET])
        .why("Without it S3 answers 403 instead of 404 for a missing object.");

    #[must_use]
    pub const fn parts(self, parts: &'static [&'static str]) -> Self {
        Self { parts, ..self }
    }

    #[must_use]
    pub const fn listed(self, listed: &'static str) -> Self {
        Self { listed, ..self }
    }

    #[must_use]
    pub const fn why(self, why: &'static str) -> Self {
        Self { why, ..self }
    }

    #[must_use]
    pub const fn only_if(self, condition: &'static str) -> Self {
        Self { condition, ..self }
    }

    #[must_use]
    pub const fn unseen(self, unseen: &'static [(&'static str, &'static str, &'static str)]) -> Self {
        Self { unseen, ..self }
    }
}

/// The alarm on the errors of a function.
#[derive(Clone, Copy, Debug)]
pub enum Errors {
    /// Raised if more than a tenth of the invocations fail.
    Share(Advice),
    /// Raised if any invocation fails, of a function with few of them.
    Any(Advice),
    /// None: the alarm on the age of its stream tells.
    Stream,
}

/// The columns of the runbook beside an alarm and its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What happens by itself.
    pub meanwhile: &'static str,
    pub todo: &'static str,
}
