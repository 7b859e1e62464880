//! The function as data.

use rowmill_core::model::breaker::BreakerLimits;
use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_TABLE,
    JobTargets, JobTypeSettings, LANES_QUEUE, Links, RECORDS_TABLE, SettingsGroup, TASKS_TABLE, WEBHOOK_SECRET,
};

use crate::limits::RunLimits;

const BATCH: Figure = Figure::Set("ChunksPerInvocation");

pub static FUNCTION: Function = Function {
    name: "process-items",
    purpose: "Runs the job type's processor over the items of a chunk and commits the chunk. The items of an isolated \
              chunk run one at a time.",
    triggers: &[
        Trigger::queue(ITEMS_QUEUE, BATCH, Figure::Set("ItemsMaximumConcurrency")),
        Trigger::queue(ITEMS_HIGH_QUEUE, BATCH, Figure::Set("ItemsMaximumConcurrency")),
        Trigger::queue(ITEMS_LOW_QUEUE, BATCH, Figure::Set("ItemsLowMaximumConcurrency")),
        Trigger::single(
            ISOLATE_QUEUE,
            Figure::Is(2),
            "An item that kills the process kills the run of one chunk \
                                                       only.",
        ),
        Trigger::single(
            LANES_QUEUE,
            Figure::Set("LanesMaximumConcurrency"),
            "A lane lets one chunk through at a time. A batch could hold several of one lane, which would run side by \
             side.",
        ),
    ],
    timeout: Figure::Set("ProcessTimeoutSeconds"),
    memory_megabytes: Figure::Set("ProcessMemoryMegabytes"),
    settings: &[RunLimits::GROUP, BreakerLimits::GROUP, JobTypeSettings::GROUP, JobTargets::GROUP, Links::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"], &[JOBS_TABLE])
            .why("Query reads the counters of the job that probes whether its target is back."),
        Use::of("Breakers", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("The breakers of the job types."),
        Use::of(
            "Records",
            &[
                "dynamodb:BatchGetItem",
                "dynamodb:GetItem",
                "dynamodb:PartiQLDelete",
                "dynamodb:PartiQLInsert",
                "dynamodb:PartiQLUpdate",
                "dynamodb:PutItem",
                "dynamodb:UpdateItem",
            ],
            &[RECORDS_TABLE],
        )
        .why(
            "PartiQL statements upsert records, many in a request, each with its own condition. The others find \
                  out, once for each dataset, how many partitions it has, store it, and list the dataset. BatchGetItem \
                  reads the records that an import, an undo or a deletion changes.",
        ),
        Use::of("Tasks", &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], &[TASKS_TABLE])
            .why("Offers chunks to workers and calls services with them, which may answer at once."),
        Use::FILES,
        Use::INPUTS,
        Use::MISSING_OBJECTS,
        Use::RESULTS.why(
            "Its own run outputs, those of an earlier run of the chunk, the input of a redrive, chunk \
                          indexes.",
        ),
        Use::on("Targets", &["lambda:InvokeFunction"], "!Split [\",\", !Ref InvokeTargetArns]", "InvokeTargetArns")
            .only_if("HasInvokeTargets"),
        Use::on("Tables", &["dynamodb:PutItem"], "!Split [\",\", !Ref ImportTables]", "ImportTables")
            .only_if("HasImportTables")
            .why("Imports rows into tables of the application, see JobTargets."),
        Use::names(&[WEBHOOK_SECRET]),
        Use::on(
            "WebhookSecret",
            &["secretsmanager:GetSecretValue"],
            "!If [NamesWebhookSecret, !Ref WebhookSecretArn, !GetAtt WebhookSecret.Id]",
            "WebhookSecretArn or WebhookSecret",
        )
        .only_if("HasJobTargets")
        .why(
            "The process reads the secret itself, at its start: a variable would show it to everyone who may see the \
              function.",
        ),
        Use::send(&[ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ISOLATE_QUEUE, LANES_QUEUE, COMPLETIONS_QUEUE])
            .why("Its own queues too: a long chunk continues in another invocation.")
            .unseen(&[(
                "sqs:SendMessage",
                "IsolateQueue",
                "handing an isolated chunk over, after a death in its run or when its time is over",
            )]),
        Use::of("HoldLane", &["sqs:ChangeMessageVisibility"], &[LANES_QUEUE])
            .why("A lane stays busy until its run has certainly ended."),
    ],
    loops: "Each invocation commits a chunk or stores more of its items as done, and the chunks of a job are counted, \
            so the loop ends with the job.",
    errors: Errors::Share(Advice {
        meanwhile: "chunks come back, in the end one item at a time",
        todo: "its log: `signal: killed` asks for `ProcessMemoryMegabytes`; an error at the start for [a \
               setting](#webhooks-do-not-start)",
    }),
};
