//! What happens when somebody presses Ctrl-C, or asks the process to end.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// 128 + SIGINT, as shells count.
const INTERRUPTED: u8 = 130;

/// Ends with the first SIGINT or SIGTERM. From the first call on neither ends the process by itself.
pub async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without a handler the signals keep their own effect, which is to end the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// The exit code of an interrupted command.
pub fn exit_code() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}
