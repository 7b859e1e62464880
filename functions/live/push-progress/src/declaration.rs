//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Stream, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, CONNECTIONS_TABLE, JOBS_TABLE, LIVE_URL};

pub static FUNCTION: Function = Function {
    name: "push-progress",
    purpose: "Tells live connections how their jobs change. It writes no job row.",
    triggers: &[Trigger::Stream(&Stream {
        name: "Pushes",
        table: JOBS_TABLE,
        note: "The second reader of this stream, which has room for two. A batch waits for a second, so that a busy \
               job costs one invocation a second. A change older than any connection is given up: nobody is left to \
               hear of it.",
        from: "LATEST",
        batch: 1000,
        window: 1,
        age_max: 2 * 60 * 60 + 10 * 60,
        partial: false,
        given_up: None,
        filters: &[
            r#"{"eventName":["INSERT","MODIFY"],"dynamodb":{"Keys":{"row":{"S":["job"]}}}}"#,
            r#"{"eventName":["MODIFY"],"dynamodb":{"Keys":{"row":{"S":[{"prefix":"tally#"}]}}}}"#,
        ],
        late: 5 * 60,
        says: "Live messages have waited for five minutes. push-progress fails, or cannot keep up.",
        means: "live messages have waited for five minutes: `push-progress` fails, or cannot keep up",
        advice: Advice {
            meanwhile: "jobs are not affected; it is tried again until a message is older than any connection (2 h 10 \
                        min)",
            todo: "the log of `push-progress`",
        },
    })],
    timeout: Figure::Is(60),
    memory_megabytes: Figure::Is(128),
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query"], &[JOBS_TABLE]),
        Use::of("Connections", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:DeleteItem"], &[CONNECTIONS_TABLE]),
        Use::of("Admission", &["dynamodb:GetItem"], &[ADMISSION_TABLE])
            .why("Looks whether the owner of a connection is blocked."),
        Use::of("Send", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/POST/@connections/*"]),
        Use::of("HangUp", &["execute-api:ManageConnections"], &[LIVE_URL]).parts(&["/live/DELETE/@connections/*"]).unseen(&[(
            "execute-api:ManageConnections",
            "LiveApi/live/DELETE/@connections/*",
            "closing a connection that takes no messages; on the local stack it happens by chance, on a busy machine",
        )]),
    ],
    errors: Errors::Stream,
    ..Function::DEFAULT
};
