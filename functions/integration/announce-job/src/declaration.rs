//! The function as data.

use rowmill_settings::ANNOUNCEMENTS_GIVEN_UP;
use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Stream, Trigger, Use};
use rowmill_settings::{EVENT_BUS, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE};

pub static FUNCTION: Function = Function {
    name: "announce-job",
    purpose: "Publishes an event when an attempt of a job starts and when it ends. Starts the jobs that wait for an ended one.",
    triggers: &[Trigger::Stream(&Stream {
        name: "Announcements",
        table: JOBS_TABLE,
        note: "Most changes of the jobs table are commits. Only the start of an attempt (split begins, or redrive) \
               and its end invoke the function; changes that the filter drops cost nothing. Failed batches are \
               retried during an outage of the bus. Stream records live for a day; after 23 hours a record is given \
               up and its position goes to the dead-letter queue.",
        from: "TRIM_HORIZON",
        batch: 100,
        window: 0,
        age_max: 23 * 60 * 60,
        partial: true,
        given_up: Some(ANNOUNCEMENTS_GIVEN_UP),
        filters: &[
            r#"{"dynamodb":{"Keys":{"row":{"S":["job"]}},"OldImage":{"status":{"S":["waiting","completed","failed","cancelled"]}},"NewImage":{"status":{"S":["running"]}}}}"#,
            r#"{"dynamodb":{"Keys":{"row":{"S":["job"]}},"OldImage":{"status":{"S":["waiting","running","paused","cancelling"]}},"NewImage":{"status":{"S":["completed","failed","cancelled"]}}}}"#,
        ],
        late: 15 * 60,
        says: "Events of jobs have waited for fifteen minutes. The bus refuses events, or announce-job fails.",
        means: "events of jobs wait for 15 minutes: the bus refuses events, or `announce-job` fails",
        advice: Advice {
            meanwhile: "it is tried again for 23 hours, in order",
            todo: "does `EventBusName` exist? the log of `announce-job`",
        },
    })],
    timeout: Figure::Is(60),
    memory_megabytes: Figure::Is(128),
    uses: &[
        Use::names(&[EVENT_BUS]),
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query"], &[JOBS_TABLE])
            .why("The jobs that wait for an ended one."),
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]).why("Starts the jobs that wait for an ended one."),
        Use::on(
            "Publish",
            &["events:PutEvents"],
            "!Sub arn:${AWS::Partition}:events:${AWS::Region}:${AWS::AccountId}:event-bus/${EventBusName}",
            "event-bus/EventBusName",
        ),
    ],
    errors: Errors::Stream,
    ..Function::DEFAULT
};
