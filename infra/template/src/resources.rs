//! The queues, and their dead-letter queues.

use rowmill_settings::declaration::{Figure, Trigger};
use rowmill_settings::{ANNOUNCEMENTS_GIVEN_UP, ATTACHED_TABLES, QUEUES, Queue};
use serde::Serialize;

use crate::functions;

/// Of a table or bucket that may be attached: the condition that the stack makes it; else its name and its ARN, both as texts
/// of `!Sub`. None of all other resources.
fn attached(id: &str) -> Option<(&'static str, String, String)> {
    const BUCKET: &str = "${AttachedBucket}";
    match ATTACHED_TABLES.iter().find(|table| table.id == id).and_then(|table| table.attached_end()) {
        Some(end) => {
            let name = format!("${{AttachedTables}}-{end}");
            let arn = format!("arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/{name}");
            Some(("MakesTables", name, arn))
        }
        None => (id == "Bucket")
            .then(|| ("MakesBucket", BUCKET.to_owned(), format!("arn:${{AWS::Partition}}:s3:::{BUCKET}"))),
    }
}

/// The name of a resource.
pub fn name_of(id: &str) -> String {
    match attached(id) {
        Some((makes, name, _)) => format!("!If [{makes}, !Ref {id}, !Sub \"{name}\"]"),
        None => format!("!Ref {id}"),
    }
}

/// The ARN of a resource, or of a part of it: an index of a table, objects of the bucket.
pub fn arn_of(id: &str, part: &str) -> String {
    let own = if part.is_empty() { format!("!GetAtt {id}.Arn") } else { format!("!Sub \"${{{id}.Arn}}{part}\"") };
    match attached(id) {
        Some((makes, _, arn)) => format!("!If [{makes}, {own}, !Sub \"{arn}{part}\"]"),
        None => own,
    }
}

/// The ARN of the stream of a table.
pub fn stream_of(table: &str) -> String {
    format!("!If [MakesTables, !GetAtt {table}.StreamArn, !Ref AttachedStreamArn]")
}

/// A queue, or a dead-letter queue.
#[derive(Serialize)]
pub struct QueueResource {
    pub stem: &'static str,
    pub id: String,
    about: &'static str,
    /// Its visibility timeout, by the time limit of its reader; none if nobody reads it.
    limit: Option<String>,
    lanes: bool,
    deliveries: u32,
    deliveries_note: &'static str,
    dead_letters: String,
}

/// The declarations of all queues.
pub fn declared() -> impl Iterator<Item = &'static Queue> {
    QUEUES.iter().filter_map(|resource| resource.queue)
}

pub fn queues() -> Vec<QueueResource> {
    declared().map(described).collect()
}

pub fn dead_letters_of(stem: &str) -> String {
    format!("{stem}DeadLetterQueue")
}

fn described(queue: &'static Queue) -> QueueResource {
    let reads = |trigger: &Trigger| matches!(trigger, Trigger::Queue { queue: read, .. } if read.queue == Some(queue));
    QueueResource {
        stem: queue.stem,
        id: format!("{}Queue", queue.stem),
        about: queue.about,
        limit: limit_of(reads),
        lanes: queue.lanes,
        deliveries: queue.deliveries.0,
        deliveries_note: queue.deliveries.1,
        dead_letters: dead_letters_of(queue.dead_letters),
    }
}

/// The dead-letter queues: one of each queue that shares none, and those of streams.
pub fn dead_letter_queues() -> Vec<QueueResource> {
    let own = declared().filter(|queue| queue.dead_letters == queue.stem);
    let of_queue = |queue: &'static Queue| {
        let settles = |trigger: &Trigger| match trigger {
            Trigger::DeadLetters(of) => of.iter().any(|read| read.queue == Some(queue)),
            _ => false,
        };
        QueueResource { id: dead_letters_of(queue.stem), about: "", limit: limit_of(settles), ..described(queue) }
    };
    let announcements = QueueResource {
        stem: "Announcements",
        id: ANNOUNCEMENTS_GIVEN_UP.id.to_owned(),
        about: "Stream positions of changes that could not be announced for almost a day.",
        limit: None,
        lanes: false,
        deliveries: 0,
        deliveries_note: "",
        dead_letters: String::new(),
    };
    own.map(of_queue).chain([announcements]).collect()
}

impl QueueResource {
    /// True if a function reads it.
    pub const fn is_read(&self) -> bool {
        self.limit.is_some()
    }
}

fn limit_of(reads: impl Fn(&Trigger) -> bool) -> Option<String> {
    let reader = functions::all().into_iter().find(|function| function.triggers.iter().any(&reads))?;
    Some(match reader.timeout {
        Figure::Is(seconds) => (seconds * rowmill_settings::VISIBILITY_TIMEOUTS).to_string(),
        Figure::Set(parameter) => format!("!FindInMap [SixTimes, !Ref {parameter}, Seconds]"),
    })
}
