//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_HIGH_QUEUE, JOBS_QUEUE,
    JOBS_TABLE, JobTypeSettings, LANES_QUEUE, RECORDS_TABLE, STARTS_QUEUE, SettingsGroup,
};

use crate::limits::SplitLimits;

pub static FUNCTION: Function = Function {
    name: "split-job",
    purpose: "Cuts a file on record borders into chunks and sends one message for each.",
    triggers: &[
        Trigger::single(JOBS_QUEUE, Figure::Set("JobsMaximumConcurrency"), ""),
        Trigger::single(JOBS_HIGH_QUEUE, Figure::Set("JobsMaximumConcurrency"), ""),
    ],
    timeout: Figure::Set("SplitTimeoutSeconds"),
    memory_megabytes: Figure::Set("ProcessMemoryMegabytes"),
    settings: &[SplitLimits::GROUP, JobTypeSettings::GROUP],
    uses: &[
        Use::of(
            "Jobs",
            &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query"],
            &[JOBS_TABLE],
        ),
        Use::FILES,
        Use::of("Records", &["dynamodb:GetItem", "dynamodb:Query"], &[RECORDS_TABLE])
            .why("Input of an export or an undo. GetItem reads how many partitions the dataset has."),
        Use::RESULTS.why(
            "Chunk indexes, the text of chunks that are no range of an upload, and the failed items of a redrive.",
        ),
        Use::INPUTS,
        Use::MISSING_OBJECTS,
        Use::send(&[
            ITEMS_QUEUE,
            ITEMS_HIGH_QUEUE,
            ITEMS_LOW_QUEUE,
            ISOLATE_QUEUE,
            LANES_QUEUE,
            JOBS_QUEUE,
            JOBS_HIGH_QUEUE,
            COMPLETIONS_QUEUE,
            STARTS_QUEUE,
        ])
        .why("Its own queue too: a long file continues in another invocation. Isolated chunks of a resumed job.")
        .unseen(&[("sqs:SendMessage", "IsolateQueue", "sending the isolated chunks of a resumed job again")]),
    ],
    loops: "A long file takes more. Each invocation stores how far it cut and the next continues there, so the loop \
            ends with the file.",
    errors: Errors::Share(Advice {
        meanwhile: "messages come back, in the end as dead letters",
        todo: "its log; raise `SplitTimeoutSeconds` if it times out",
    }),
};
