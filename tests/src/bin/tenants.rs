//! Two tenants on the local stack: `cargo run --bin tenants -- --seconds 300`.

use std::process::ExitCode;
use std::time::Duration;

use acceptance::tenants::SharedStack;
use rowmill::stack::StackOptions;

const USAGE: &str = "tenants [--seconds SECONDS]

One tenant sends every hostile input in turn for SECONDS (300), another one runs jobs of 10,000 rows, which must all end with
exact counts. Prints what came of the inputs and how long the jobs took. Fails if the slowest job beside the hostile tenant took
more than three times the median of jobs alone.";

/// Maximum slowdown of a job beside the hostile tenant, compared with the median alone.
const RATIO_MAX: f64 = 3.0;

#[tokio::main]
async fn main() -> ExitCode {
    let mut seconds = 300;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next().and_then(|value| value.parse().ok())) {
            ("--seconds", Some(value)) => seconds = value,
            _ => {
                println!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let folder = match StackOptions::for_current_workspace() {
        Ok(options) => options.state_dir.join("tenants"),
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    let report = SharedStack::up(&folder, &[]).await.run(Duration::from_secs(seconds)).await;
    println!("{report}");
    if report.ratio() > RATIO_MAX {
        println!("the slowest job took more than {RATIO_MAX} times the median alone");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
