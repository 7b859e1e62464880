//! Interruption by Ctrl-C or SIGTERM.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// 128 + SIGINT, as shells do it.
const INTERRUPTED: u8 = 130;

/// Returns at the first SIGINT or SIGTERM. After the first call, neither signal ends the process any more.
pub async fn interrupted() {
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        // Without a handler the signals keep their default effect: they end the process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

pub fn exit_code() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}
