//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, INPUT_BUCKETS, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, RECORDS_TABLE, STARTS_QUEUE, UPLOADS_TABLE,
};

pub static FUNCTION: Function = Function {
    name: "start-job",
    purpose: "Looks for what jobs wait for, and has those split for which all is there.",
    triggers: &[Trigger::single(STARTS_QUEUE, Figure::Is(5), "")],
    // A list of a million objects takes two minutes, and is held in memory.
    timeout: Figure::Is(180),
    memory_megabytes: Figure::Is(512),
    // It looks with the code of create-job.
    settings: create_job::declaration::FUNCTION.settings,
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[JOBS_TABLE]),
        Use::of("Admission", &["dynamodb:BatchGetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("The slots that a job takes when it starts.")
            .unseen(&[("dynamodb:BatchGetItem", "AdmissionTable", "starting a job whose shards have no slot left")]),
        Use::of("Uploads", &["dynamodb:GetItem"], &[UPLOADS_TABLE]),
        Use::of("Datasets", &["dynamodb:GetItem"], &[RECORDS_TABLE])
            .why("Whether the dataset of an export exists now."),
        Use::FILES.unseen(&[("s3:GetObject", "Bucket/inbox/*", "reading a file of the inbox, which is never fetched")]),
        Use::of("Results", &["s3:GetObject"], &[BUCKET])
            .parts(&["/results/*"])
            .why("A result of a job that it waited for."),
        Use::on("ListInputs", &["s3:ListBucket"], INPUT_BUCKETS, "InputBuckets").only_if("HasInputBuckets"),
        Use::INPUTS,
        Use::of("Lists", &["s3:PutObject"], &[BUCKET])
            .parts(&["/results/*/inputs/*"])
            .why("The list of the files of a job over many, and the item that stands for them."),
        Use::MISSING_OBJECTS,
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]),
    ],
    loops: "split-job passes a job that waits to it, and it sends the job back once, when all is there.",
    errors: Errors::Share(Advice { meanwhile: "jobs that wait start late, or fail in the end", todo: "its log" }),
};
