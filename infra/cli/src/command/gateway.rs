//! `rowmill gateway`: serves the API of a stack that has no HTTP API.

use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::connection::FunctionsArgs;
use super::interrupt::interrupted;
use super::{CommandError, print};
use crate::gateway::serve;
use crate::progress::Progress;
use crate::stack::{self, StackOptions};

/// Serves the API on a loopback port and invokes the stack's functions for each request
///
/// For stacks without an HTTP API: on LocalStack, or deployed with WithHttpApi=false. Requests get the caller of the
/// token in $ROWMILL_TOKEN, or none. Standard output contains only the URL. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub struct GatewayArgs {
    /// The functions; without an argument those of the running local stack.
    #[command(flatten)]
    pub functions: FunctionsArgs,
    /// The port on 127.0.0.1; 0 for any free one
    #[arg(long, value_name = "N", default_value = "8787")]
    pub port: u16,
}

pub async fn execute(args: GatewayArgs) -> Result<ExitCode, CommandError> {
    let gateway = match args.functions.gateway().await? {
        Some(gateway) => gateway,
        None => {
            let options = StackOptions::for_current_workspace()?;
            let (record, _) = stack::running(&options.state_dir).await?;
            stack::gateway(&record).await
        }
    };
    let unusable = |source| CommandError::Port { port: args.port, source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await.map_err(unusable)?;
    let address = listener.local_addr().map_err(unusable)?;
    print(&format!("http://{address}\n"))?;
    tokio::select! {
        never = serve(listener, Arc::new(gateway), Progress::Shown) => match never {},
        () = interrupted() => {}
    }
    Ok(ExitCode::SUCCESS)
}
