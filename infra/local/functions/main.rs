//! All functions in one executable, for the local stack: it is linked once. Each function's own `main.rs` is part of it.
//!
//! The argument names the function. Without one it lists them, a line each.

/// Serves a function until its execution environment ends.
type Start = fn() -> Result<(), lambda_runtime::Error>;

macro_rules! functions {
    ($($module:ident::main in $path:literal,)*) => {
        $(#[path = $path] mod $module;)*

        const FUNCTIONS: &[(&str, Start)] = &[$((stringify!($module), $module::main)),*];
    };
}

functions! {
    announce_job::main in "../../../functions/integration/announce-job/src/main.rs",
    browse_datasets::main in "../../../functions/api/browse-datasets/src/main.rs",
    cancel_job::main in "../../../functions/api/cancel-job/src/main.rs",
    complete_job::main in "../../../functions/pipeline/complete-job/src/main.rs",
    create_job::main in "../../../functions/api/create-job/src/main.rs",
    dead_letter::main in "../../../functions/recovery/dead-letter/src/main.rs",
    erase_job::main in "../../../functions/pipeline/erase-job/src/main.rs",
    fetch_file::main in "../../../functions/integration/fetch-file/src/main.rs",
    job_status::main in "../../../functions/api/job-status/src/main.rs",
    live_connection::main in "../../../functions/live/live-connection/src/main.rs",
    live_subscription::main in "../../../functions/live/live-subscription/src/main.rs",
    live_ticket::main in "../../../functions/live/live-ticket/src/main.rs",
    process_items::main in "../../../functions/pipeline/process-items/src/main.rs",
    push_progress::main in "../../../functions/live/push-progress/src/main.rs",
    receive_file::main in "../../../functions/integration/receive-file/src/main.rs",
    redrive_job::main in "../../../functions/api/redrive-job/src/main.rs",
    split_job::main in "../../../functions/pipeline/split-job/src/main.rs",
    start_job::main in "../../../functions/pipeline/start-job/src/main.rs",
    sweep::main in "../../../functions/recovery/sweep/src/main.rs",
    upload::main in "../../../functions/api/upload/src/main.rs",
    web::main in "../../../functions/api/web/src/main.rs",
    work_task::main in "../../../functions/api/work-task/src/main.rs",
}

fn main() -> Result<(), lambda_runtime::Error> {
    let mut functions = FUNCTIONS.iter().map(|(module, start)| (module.replace('_', "-"), start));
    let Some(name) = std::env::args().nth(1) else {
        functions.for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let (_, start) = functions.find(|(function, _)| *function == name).ok_or(format!("there is no function {name}"))?;
    start()
}
