//! The function as data.

use rowmill_core::model::breaker::BreakerLimits;
use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE,
    JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, JobTargets, JobTypeSettings, LANES_QUEUE, SettingsGroup, TASKS_TABLE,
};

use crate::limits::{SweepLimits, TIMEOUT};

pub static FUNCTION: Function = Function {
    name: "sweep",
    purpose: "Recovers jobs after a crash, and stops overdue jobs.",
    // The shortest rate that EventBridge has.
    triggers: &[Trigger::Schedule("rate(1 minute)")],
    timeout: Figure::Is(TIMEOUT.as_secs() as u32),
    settings: &[SweepLimits::GROUP, BreakerLimits::GROUP, JobTypeSettings::GROUP, JobTargets::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"], &[JOBS_TABLE]),
        Use::of("JobsDue", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/wake-index"]),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("The slots of jobs that wait for one or no longer need theirs, and the breakers of the job types."),
        Use::of("Tasks", &["dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:DeleteItem"], &[TASKS_TABLE])
            .why(
                "What workers have done of a stopped job counts, whether they ask again or not. A service that died is \
                 called again. Tasks that nobody asks for are counted.",
            )
            .unseen(&[
                ("dynamodb:DeleteItem", "TasksTable", "removing a task whose worker never asks again"),
                (
                    "dynamodb:UpdateItem",
                    "TasksTable",
                    "calling a service again that died, unless its message comes again",
                ),
            ]),
        Use::of("TasksDue", &["dynamodb:Query"], &[TASKS_TABLE]).parts(&["/index/due-index"]),
        Use::of("ChunkIndexes", &["s3:GetObject"], &[BUCKET]).parts(&["/results/*"]),
        Use::send(&[
            JOBS_QUEUE,
            JOBS_HIGH_QUEUE,
            ITEMS_QUEUE,
            ITEMS_HIGH_QUEUE,
            ITEMS_LOW_QUEUE,
            ISOLATE_QUEUE,
            LANES_QUEUE,
            COMPLETIONS_QUEUE,
        ]),
        Use::of(
            "Backlog",
            &["sqs:GetQueueAttributes"],
            &[ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ISOLATE_QUEUE, LANES_QUEUE],
        )
        .why("A silent chunk may still be queued."),
    ],
    errors: Errors::Any(Advice { meanwhile: "the next one continues", todo: "its log" }),
    ..Function::DEFAULT
};
